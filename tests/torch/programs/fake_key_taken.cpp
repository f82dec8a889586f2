// A program with another library that takes libtorch's Fake dispatch key: torch_no_dispatch says so, and all else goes on.

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/memprof.hpp>

#include <torch/library.h>

#include <cstdio>
#include <string>

TORCH_LIBRARY_IMPL(_, Fake, library) { library.fallback(torch::CppFunction::makeFallthrough()); }

namespace {

int faults = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("fault: %s\n", what);
  ++faults;
}

std::string refusal() {
  try {
    auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
  } catch (const memprof::error& refused) {
    return refused.what();
  }
  return "";
}

}  // namespace

int main() {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const std::string said = refusal();
    check(said.find("another library of this process has taken libtorch's Fake dispatch key") != std::string::npos,
          "the message says what is in the way");
    check(said.find("link without it") != std::string::npos, "and what to do");
    check(at::ones({10}).sum().item<float>() == 10.0F, "the program computes as before");
  }
  auto capture = memprof::begin_capture<memprof::torch_backend>();
  const at::Tensor tensor = at::empty({10});
  capture.end();
  check(capture.profile().space("cpu").cumulative_current == 40, "other backends capture");
  return faults == 0 ? 0 : 1;
}
