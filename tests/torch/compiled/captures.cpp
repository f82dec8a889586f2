// What a program of several files calls of `memprof::torch_compiled` in captures of real steps; simulated.cpp has those of
// NO_DISPATCH.
#include "simulated.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>

#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <string_view>

#if !MEMPROF_SEPARATE_COMPILATION || !MEMPROF_TORCH_SEPARATE_COMPILATION
#error "memprof::torch_compiled says to all files that link it that they leave the rest to the library"
#endif

namespace {

int faults = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("fault: %s\n", what);
  ++faults;
}

std::int64_t live_bytes(const memprof::profile& profile, std::string_view category) {
  for (const memprof::owned_bytes& each : profile.space("cpu").current_by_category) {
    if (each.owner == category) return each.bytes;
  }
  return 0;
}

/// A step of a layer of 100 by 100, without bias, whose optimizer keeps a momentum.
void check_a_step() {
  constexpr std::int64_t matrix = 100 * 100 * 4;
  auto capture = memprof::begin_capture<memprof::torch_backend>();
  torch::nn::Linear layer{torch::nn::LinearOptions{100, 100}.bias(false)};
  memprof::annotate_module(layer);
  torch::optim::SGD optimizer{layer->parameters(), torch::optim::SGDOptions{0.1}.momentum(0.9)};
  const auto states = memprof::annotate_optimizer(optimizer);
  const auto counted = memprof::track_pytorch_ops();
  const auto input = torch::ones({1, 100});
  memprof::annotate_input(input, "batch");
  layer->forward(input).sum().backward();
  optimizer.step();
  const memprof::profile profile = capture.profile();
  check(live_bytes(profile, "parameter") == matrix, "the parameter is annotated");
  check(live_bytes(profile, "gradient") == matrix, "its gradient is");
  check(live_bytes(profile, "optimizer_state") == matrix, "its momentum is");
  check(live_bytes(profile, "input") == 400, "the input is");
  bool is_sum_counted = false;
  for (const auto& row : memprof::rows_of<memprof::pytorch_operation>(profile.facts)) is_sum_counted |= row.name == "aten::sum";
  check(is_sum_counted, "operators are counted");
}

void check_allocations_alone() {
  auto capture = memprof::begin_capture<memprof::torch_allocations>();
  const auto block = torch::ones({1000});
  check(capture.profile().space("cpu").cumulative_current == 4000, "torch_allocations counts a block");
}

}  // namespace

int main() {
  check_a_step();
  check_allocations_alone();
  for (const simulated_check& each : simulated_checks()) check(each.holds, each.what);
  return faults == 0 ? 0 : 1;
}
