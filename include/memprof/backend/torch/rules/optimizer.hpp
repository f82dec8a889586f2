#pragma once

#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <cstddef>

/// @file
/// Single-kernel optimizers, and the loss scaling for half precision. They only write existing tensors. `_foreach_` operators
/// need no rule: their component operators are simulated.

namespace memprof::inline MEMPROF_ABI::detail {

/// Writes its arguments and allocates nothing.
inline void no_result_rule(torch_call& call) { call.returns(); }
/// Steps of an optimizer, (parameters, gradients, ...): CPU kernels copy tensors with gaps.
inline void fused_step_rule(torch_call& call) {
  for (std::size_t index = 0; index < call.size(); ++index) {
    if (!call.argument(index).isTensorList()) continue;
    for (const at::Tensor& tensor : call.tensors(index)) {
      if (!torch_call::is_on_cuda(tensor) && !tensor.is_contiguous()) return call.run_without_rule();
    }
  }
  call.returns();
}
/// Writes its first argument and returns it.
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
