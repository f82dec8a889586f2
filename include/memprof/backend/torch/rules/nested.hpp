#pragma once

#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/core/Tensor.h>

#include <cstdint>

/// @file
/// Nested tensors of strided layout, into which `TransformerEncoder` packs what a mask leaves of a batch. On a claimed CUDA
/// device, which has no kernels for them, the batch stays padded, as if the mask left all of it.

namespace memprof::inline MEMPROF_ABI::detail {

/// (t, mask, mask_check)
inline void nested_tensor_from_mask_rule(torch_call& call) {
  const at::Tensor padded = call.tensor(0);
  if (!torch_call::is_on_cuda(padded)) return call.run_without_rule();
  const std::int64_t rows = call.tensor(1).numel();
  (void)call.assume_length(rows, rows, "the rows of a nested tensor depend on a mask: assumed to be all");
  call.returns(torch_call::empty(padded.sizes(), padded));
}

/// (self, padding, output_size)
inline void to_padded_tensor_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  if (!torch_call::is_on_cuda(input) || input.is_nested()) return call.run_without_rule();
  call.returns(torch_call::empty(call.has(2) ? at::IntArrayRef{call.integers(2)} : input.sizes(), input));
}

inline constexpr known_rule nested_rules[] = {
    {"aten::_nested_tensor_from_mask", nested_tensor_from_mask_rule, rule_use::always},
    {"aten::to_padded_tensor", to_padded_tensor_rule, rule_use::always},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
