#pragma once

#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <cstddef>

/// @file
/// Optimizers in one kernel, and the scaling of losses for half precision. What is written was there before; `_foreach_`
/// operators need no rule: they are simulated as what they are made of.

namespace memprof::inline MEMPROF_ABI::detail {

/// Writes its arguments and makes nothing.
inline void no_result_rule(torch_call& call) { call.returns(); }
/// Steps of an optimizer, (parameters, gradients, ...): the kernels of the CPU copy what has gaps.
inline void fused_step_rule(torch_call& call) {
  for (std::size_t index = 0; index < call.size(); ++index) {
    if (!call.argument(index).isTensorList()) continue;
    for (const at::Tensor& tensor : call.tensors(index)) {
      if (!torch_call::is_on_cuda(tensor) && !tensor.is_contiguous()) return call.run_without_rule();
    }
  }
  call.returns();
}
/// Writes its first argument and gives it back.
inline void first_argument_rule(torch_call& call) { call.returns(call.tensor(0)); }

inline constexpr known_rule optimizer_rules[] = {
    {"aten::_fused_sgd_", fused_step_rule},
    {"aten::_fused_sgd_.tensor_lr", fused_step_rule},
    {"aten::_fused_adam_", fused_step_rule},
    {"aten::_fused_adam_.tensor_lr", fused_step_rule},
    {"aten::_fused_adamw_", fused_step_rule},
    {"aten::_fused_adamw_.tensor_lr", fused_step_rule},
    {"aten::_fused_adagrad_", fused_step_rule},
    {"aten::_fused_adagrad_.tensor_lr", fused_step_rule},
    {"aten::_amp_foreach_non_finite_check_and_unscale_", no_result_rule},
    {"aten::_amp_update_scale_", first_argument_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
