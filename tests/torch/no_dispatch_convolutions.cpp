#include "captures.hpp"
#include "recorded_events.hpp"

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace memprof_tests::torch_no_dispatch_convolutions {

namespace {

struct convolution {
  std::string name;
  std::vector<std::int64_t> image;
  std::vector<std::int64_t> weight;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool is_transposed = false;
  bool has_channels_last = false;
};

/// Forward and backward.
void run(const convolution& chosen) {
  const auto dimensions = chosen.image.size() - 2;
  const auto format = !chosen.has_channels_last ? torch::MemoryFormat::Contiguous
                      : dimensions == 3         ? torch::MemoryFormat::ChannelsLast3d
                                                : torch::MemoryFormat::ChannelsLast;
  const auto image = torch::ones(chosen.image).contiguous(format).requires_grad_();
  const auto weight = torch::ones(chosen.weight).contiguous(format).requires_grad_();
  const auto bias = torch::ones({chosen.weight[chosen.is_transposed ? 1 : 0]}, torch::requires_grad());
  const std::vector<std::int64_t> stride(dimensions, chosen.stride);
  const std::vector<std::int64_t> padding(dimensions, chosen.padding);
  const std::vector<std::int64_t> dilation(dimensions, chosen.dilation);
  const std::vector<std::int64_t> output_padding(dimensions, 0);
  const auto result =
      torch::convolution(image, weight, bias, stride, padding, dilation, chosen.is_transposed, output_padding, chosen.groups);
  result.backward(torch::ones_like(result));
}

struct both_runs {
  recorded::totals real;
  recorded::totals simulated;
  bool is_estimated = false;
};

both_runs run_both(const convolution& chosen) {
  both_runs result;
  auto& allocations = recorded::cpu_allocations::instance();
  run(chosen);  // oneDNN keeps some memory of its first call
  allocations.start();
  run(chosen);
  result.real = recorded::totals_of(recorded::without_scalars(allocations.stop()));
  auto capture = begin_no_dispatch();
  recorded::capture_events events{"cpu"};
  run(chosen);
  result.simulated = recorded::totals_of(recorded::without_scalars(events.so_far()));
  result.is_estimated = !estimates_of(capture.profile()).empty();
  return result;
}

}  // namespace

TEST_CASE("torch no_dispatch: convolutions take the bytes of the real ones, whatever their kind") {
  at::set_num_threads(1);
  for (const convolution& chosen : std::vector<convolution>{
           {.name = "2d", .image = {4, 16, 32, 32}, .weight = {32, 16, 3, 3}, .padding = 1},
           {.name = "2d, channels that fill no block", .image = {4, 19, 33, 31}, .weight = {37, 19, 3, 3}, .padding = 1},
           {.name = "2d, kernel 1, stride 2", .image = {8, 64, 16, 16}, .weight = {128, 64, 1, 1}, .stride = 2},
           {.name = "2d, kernel 7, stride 2", .image = {4, 3, 64, 64}, .weight = {32, 3, 7, 7}, .stride = 2, .padding = 3},
           {.name = "2d, depthwise", .image = {4, 32, 28, 28}, .weight = {32, 1, 3, 3}, .padding = 1, .groups = 32},
           {.name = "2d, grouped", .image = {4, 32, 28, 28}, .weight = {64, 8, 3, 3}, .padding = 1, .groups = 4},
           {.name = "2d, dilated", .image = {4, 16, 32, 32}, .weight = {24, 16, 3, 3}, .padding = 2, .dilation = 2},
           {.name = "2d, transposed",
           .image = {4, 32, 14, 14},
           .weight = {32, 16, 4, 4},
           .stride = 2,
           .padding = 1,
           .is_transposed = true},
           {.name = "2d, channels last",
           .image = {4, 16, 32, 32},
           .weight = {32, 16, 3, 3},
           .padding = 1,
           .has_channels_last = true},
           {.name = "1d", .image = {4, 40, 200}, .weight = {80, 40, 5}, .padding = 2},
           {.name = "1d, dilated", .image = {4, 40, 200}, .weight = {80, 40, 5}, .padding = 4, .dilation = 2},
           {.name = "3d", .image = {2, 8, 12, 16, 16}, .weight = {16, 8, 3, 3, 3}, .padding = 1},
           {.name = "3d, channels last",
           .image = {2, 8, 12, 16, 16},
           .weight = {16, 8, 3, 3, 3},
           .padding = 1,
           .has_channels_last = true},
           {.name = "3d, transposed",
           .image = {2, 8, 6, 8, 8},
           .weight = {8, 16, 3, 3, 3},
           .stride = 2,
           .is_transposed = true}}) {
    INFO(chosen.name);
    const both_runs runs = run_both(chosen);
    CHECK(runs.simulated == runs.real);
    CHECK_FALSE(runs.is_estimated);
  }
}

TEST_CASE("torch no_dispatch: a convolution that would take long peaks within one per cent, and is listed") {
  at::set_num_threads(1);
  for (const convolution& chosen : std::vector<convolution>{
           {.name = "2d", .image = {32, 64, 56, 56}, .weight = {64, 64, 3, 3}, .padding = 1},
           {.name = "2d, stride 2", .image = {24, 64, 56, 56}, .weight = {128, 64, 3, 3}, .stride = 2, .padding = 1},
           {.name = "2d, grouped", .image = {32, 128, 56, 56}, .weight = {128, 32, 3, 3}, .padding = 1, .groups = 4},
           {.name = "2d, dilated", .image = {16, 64, 48, 48}, .weight = {64, 64, 3, 3}, .padding = 2, .dilation = 2},
           {.name = "2d, transposed",
           .image = {16, 64, 28, 28},
           .weight = {64, 64, 4, 4},
           .stride = 2,
           .padding = 1,
           .is_transposed = true},
           {.name = "2d, channels last",
           .image = {16, 64, 48, 48},
           .weight = {64, 64, 3, 3},
           .padding = 1,
           .has_channels_last = true},
           {.name = "1d", .image = {16, 128, 1000}, .weight = {128, 128, 5}, .padding = 2},
           {.name = "3d", .image = {12, 16, 16, 24, 24}, .weight = {32, 16, 3, 3, 3}, .padding = 1}}) {
    INFO(chosen.name);
    const both_runs runs = run_both(chosen);
    CHECK(runs.simulated.net == runs.real.net);
    CHECK(std::abs(runs.simulated.peak - runs.real.peak) * 100 <= runs.real.peak);
    CHECK(runs.is_estimated);
  }
}

}  // namespace memprof_tests::torch_no_dispatch_convolutions
