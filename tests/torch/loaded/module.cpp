// What a plugin or a Python extension is: a library with captures of libtorch in it, loaded by a program that links neither.
#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/memprof.hpp>

#include <torch/torch.h>

#include <cstdint>

namespace {

template <class Backend>
std::int64_t bytes_of_product() {
  auto capture = memprof::begin_capture<Backend>();
  const auto left = torch::ones({100, 300});
  const auto product = left.mm(torch::ones({300, 200}));
  return capture.profile().space("cpu").cumulative_peak;
}

}  // namespace

extern "C" bool captures_are_right() {
  constexpr std::int64_t expected = (100 * 300 + 300 * 200 + 100 * 200) * 4;
  return bytes_of_product<memprof::torch_backend>() == expected && bytes_of_product<memprof::torch_no_dispatch>() == expected;
}
