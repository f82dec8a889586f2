#pragma once

#include <memprof/backend/torch/simulation/torch_call.hpp>

/// @file
/// Optimizers in one kernel, and the scaling of losses for half precision. What is written was there before; `_foreach_`
/// operators need no rule: they are simulated as what they are made of.

namespace memprof::inline MEMPROF_ABI::detail {

/// Writes its arguments and makes nothing.
inline void no_result_rule(torch_call& call) { call.returns(); }
/// Writes its first argument and gives it back.
inline void first_argument_rule(torch_call& call) { call.returns(call.tensor(0)); }

inline constexpr known_rule optimizer_rules[] = {
    {"aten::_fused_sgd_", no_result_rule},
    {"aten::_fused_sgd_.tensor_lr", no_result_rule},
    {"aten::_fused_adam_", no_result_rule},
    {"aten::_fused_adam_.tensor_lr", no_result_rule},
    {"aten::_fused_adamw_", no_result_rule},
    {"aten::_fused_adamw_.tensor_lr", no_result_rule},
    {"aten::_fused_adagrad_", no_result_rule},
    {"aten::_fused_adagrad_.tensor_lr", no_result_rule},
    {"aten::_amp_foreach_non_finite_check_and_unscale_", no_result_rule},
    {"aten::_amp_update_scale_", first_argument_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
