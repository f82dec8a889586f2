#include "op_battery.hpp"
#include "captures.hpp"

#include "op_cases.hpp"

#include <algorithm>
#include <utility>

namespace battery {
namespace {

/// Lets a case run; `so_far` tells the changes up to now.
template <class SoFar>
outcome run_case(const op_case& chosen, bool has_backward, SoFar so_far) {
  outcome result;
  torch::manual_seed(1);
  try {
    tensors kept;
    for (const auto& shape : chosen.shapes) kept.push_back(torch::randn(shape).requires_grad_(has_backward));
    Tensor made = chosen.run(kept);
    if (has_backward) made.sum().backward();
    result.totals.net = recorded::totals_of(recorded::without_scalars(so_far())).net;
  } catch (const std::exception& thrown) {
    const std::string text = thrown.what();
    result.fault = text.substr(0, text.find('\n'));
  }
  const recorded::totals all = recorded::totals_of(recorded::without_scalars(so_far()));
  result.totals.peak = all.peak;
  result.totals.allocated = all.allocated;
  return result;
}

outcome run_real(const op_case& chosen, bool has_backward) {
  auto& allocations = recorded::cpu_allocations::instance();
  allocations.start();
  const outcome result = run_case(chosen, has_backward, [&] { return allocations.so_far(); });
  allocations.stop();
  return result;
}

outcome run_simulated(const op_case& chosen, bool has_backward) {
  auto capture = begin_no_dispatch();
  recorded::capture_events events{"cpu"};
  outcome result = run_case(chosen, has_backward, [&] { return events.so_far(); });
  for (const auto& row : estimates_of(capture.profile())) {
    result.approximated += (result.approximated.empty() ? "" : ", ") + row.name;
  }
  return result;
}

}  // namespace

const std::vector<op_case>& all_cases() {
  static const std::vector<op_case> cases = make_cases();
  return cases;
}

std::vector<comparison> compare_all() {
  at::set_num_threads(1);  // scratch memory of kernels may be one piece a thread
  std::vector<comparison> all;
  for (const op_case& chosen : all_cases()) {
    for (const bool has_backward : {false, true}) {
      (void)run_real(chosen, has_backward);  // oneDNN keeps some memory of its first call
      outcome real = run_real(chosen, has_backward);
      outcome simulated = run_simulated(chosen, has_backward);
      all.push_back({chosen.name, has_backward, std::move(real), std::move(simulated)});
    }
  }
  return all;
}

}  // namespace battery
