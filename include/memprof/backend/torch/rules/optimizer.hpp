#pragma once

#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

/// @file
/// Single-kernel optimizers, and the loss scaling for half precision. They only write existing tensors. Most `_foreach_`
/// operators need no rule: their component operators are simulated.

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

/// (tensors, ord, dtype): on CUDA one kernel, which holds a number for each chunk (cuda/ForeachReduceOp.cu).
inline void foreach_norm_rule(torch_call& call) {
  const std::vector<at::Tensor> tensors = call.tensors(0);
  const double order = call.number(1);
  const bool has_kernel = order == 1 || order == 2 || order == std::numeric_limits<double>::infinity();
  if (tensors.empty() || !has_kernel) return call.run_without_rule();
  const at::Tensor& first = tensors.front();
  constexpr std::int64_t chunk = 65536;
  std::int64_t most_chunks = 0;
  for (const at::Tensor& tensor : tensors) {
    const bool is_alike = torch_call::is_on_cuda(tensor) && tensor.scalar_type() == first.scalar_type() &&
                          at::isFloatingType(tensor.scalar_type()) && tensor.is_non_overlapping_and_dense();
    if (!is_alike) return call.run_without_rule();
    most_chunks = std::max(most_chunks, (tensor.numel() + chunk - 1) / chunk);
  }
  const at::ScalarType dtype = call.dtype(2).value_or(first.scalar_type());
  const auto count = static_cast<std::int64_t>(tensors.size());
  const at::Tensor of_chunks = torch_call::scratch({count * most_chunks}, first, accumulation_type(dtype));
  std::vector<at::Tensor> norms;
  for (std::int64_t number = 0; number < count; ++number) norms.push_back(torch_call::empty({}, first, dtype));
  call.returns(std::move(norms));
}

inline constexpr known_rule optimizer_rules[] = {
    {"aten::_foreach_norm.Scalar", foreach_norm_rule},    {"aten::_fused_sgd_", fused_step_rule},
    {"aten::_fused_sgd_.tensor_lr", fused_step_rule},     {"aten::_fused_adam_", fused_step_rule},
    {"aten::_fused_adam_.tensor_lr", fused_step_rule},    {"aten::_fused_adamw_", fused_step_rule},
    {"aten::_fused_adamw_.tensor_lr", fused_step_rule},   {"aten::_fused_adagrad_", fused_step_rule},
    {"aten::_fused_adagrad_.tensor_lr", fused_step_rule}, {"aten::_amp_foreach_non_finite_check_and_unscale_", no_result_rule},
    {"aten::_amp_update_scale_", first_argument_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
