#pragma once

#include "recorded_events.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// @file
/// Single operators, each run for real and simulated, forward and with its backward pass, with what both allocate.

namespace battery {

using torch::Tensor;
using tensors = std::vector<Tensor>;

struct op_case {
  std::string name;
  std::vector<std::vector<std::int64_t>> shapes;  ///< of the inputs
  std::function<Tensor(const tensors&)> run;
};

/// Where cases make tensors of their own.
inline torch::Device& own_device() {
  static torch::Device device{torch::kCPU};
  return device;
}
template <class Run>
Tensor on_device(torch::Device device, Run run) {
  own_device() = device;
  Tensor result = run();
  own_device() = torch::kCPU;
  return result;
}

/// All of them, in the order of the table.
[[nodiscard]] const std::vector<op_case>& all_cases();

/// What one run allocated, without scalars, and how it ended.
struct outcome {
  recorded::totals totals;   ///< `net`: with the result, the inputs and their gradients alive
  std::string fault;         ///< text of what was thrown; empty: nothing was
  std::string approximated;  ///< names of operators that the simulation only estimated
};

struct comparison {
  std::string name;
  bool has_backward;
  outcome real;
  outcome simulated;
};

[[nodiscard]] std::vector<comparison> compare_all();

}  // namespace battery
