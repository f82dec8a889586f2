#pragma once

#include <memprof/backend/torch/rules/copied_inputs.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

/// @file
/// Padding with the values near the edge.

namespace memprof::inline MEMPROF_ABI::detail {

/// (input, padding), with a shape function that does not support channels-last.
inline void pad_rule(torch_call& call) {
  if (!torch_call::is_on_cuda(call.tensor(0)) && call.tensor(0).suggest_memory_format() != c10::MemoryFormat::Contiguous) {
    return call.run_without_rule();
  }
  copies_inputs_rule<0>(call);
}
/// (grad_output, input, padding), of which either may be channels-last
inline void pad_backward_rule(torch_call& call) {
  const auto is_channels_last = [](const at::Tensor& of) { return of.suggest_memory_format() != c10::MemoryFormat::Contiguous; };
  if (!torch_call::is_on_cuda(call.tensor(0)) && (is_channels_last(call.tensor(0)) || is_channels_last(call.tensor(1)))) {
    return call.run_without_rule();
  }
  copies_inputs_contiguously_rule<0>(call);
}

inline constexpr known_rule padding_rules[] = {
    {"aten::reflection_pad1d", copies_inputs_contiguously_rule<0>},
    {"aten::reflection_pad1d_backward", copies_inputs_contiguously_rule<0>},
    {"aten::reflection_pad3d", pad_rule},
    {"aten::reflection_pad3d_backward", pad_backward_rule},
    {"aten::replication_pad1d", copies_inputs_contiguously_rule<0>},
    {"aten::replication_pad1d_backward", copies_inputs_contiguously_rule<0>},
    {"aten::replication_pad2d", pad_rule},
    {"aten::replication_pad3d", pad_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
