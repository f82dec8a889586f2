#include "captures.hpp"
#include "recorded_events.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>

#include <ATen/Version.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace {

struct convolution {
  std::int64_t batch;
  std::int64_t channels_in;
  std::int64_t size;
  std::int64_t channels_out;
  std::int64_t kernel;
  std::int64_t stride;
};

/// Forward and backward. Pictures, which have three channels, need no gradient.
void run(const convolution& chosen) {
  const auto image =
      torch::ones({chosen.batch, chosen.channels_in, chosen.size, chosen.size}, torch::requires_grad(chosen.channels_in != 3));
  const auto weight =
      torch::ones({chosen.channels_out, chosen.channels_in, chosen.kernel, chosen.kernel}, torch::requires_grad());
  const auto bias = torch::ones({chosen.channels_out}, torch::requires_grad());
  const auto result = torch::conv2d(image, weight, bias, chosen.stride, chosen.kernel / 2);
  result.backward(torch::ones_like(result));
}

}  // namespace

TEST_CASE("torch no_dispatch: convolutions hold the copies that oneDNN's kernels with AVX2 or AVX-512 take, and are listed") {
  const std::string capability = at::get_cpu_capability();
  if (capability != "AVX2" && capability != "AVX512") SKIP("other kernels take other copies");
  at::set_num_threads(1);
  // Channels fill whole blocks: else their sizes depend on the processor.
  for (const convolution& chosen : std::vector<convolution>{{4, 16, 32, 32, 3, 1},
                                                            {8, 64, 16, 128, 1, 2},
                                                            {8, 3, 128, 32, 7, 2},
                                                            {8, 32, 32, 64, 3, 2},
                                                            {8, 128, 8, 128, 3, 1},
                                                            {16, 64, 28, 64, 5, 1}}) {
    INFO(chosen.channels_in << " to " << chosen.channels_out << " channels, kernel " << chosen.kernel << ", stride "
                            << chosen.stride);
    auto& allocations = recorded::cpu_allocations::instance();
    run(chosen);
    allocations.start();
    run(chosen);
    const auto real = recorded::totals_of(recorded::without_scalars(allocations.stop()));
    auto capture = begin_no_dispatch();
    recorded::capture_events events{"cpu"};
    run(chosen);
    const auto simulated = recorded::totals_of(recorded::without_scalars(events.so_far()));
    CHECK(simulated.peak == real.peak);
    CHECK(simulated.net == real.net);
    CHECK(estimates_of(capture.profile()).size() == 2);
  }
}
