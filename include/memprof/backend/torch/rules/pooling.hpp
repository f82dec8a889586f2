#pragma once

#include <memprof/backend/torch/rules/copied_inputs.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

/// @file
/// Pooling. Sizes are (batch, channels, space...).

namespace memprof::inline MEMPROF_ABI::detail {

/// `input` with other spatial sizes.
[[nodiscard]] inline std::vector<std::int64_t> with_space(const at::Tensor& input, const std::vector<std::int64_t>& space) {
  std::vector<std::int64_t> sizes = input.sizes().vec();
  const std::size_t first = sizes.size() - space.size();
  for (std::size_t index = 0; index < space.size(); ++index) sizes[first + index] = space[index];
  return sizes;
}

/// (self, output_size)
inline void adaptive_average_pool2d_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const c10::MemoryFormat format = input.suggest_memory_format();
  at::Tensor result = torch_call::in_format(with_space(input, call.integers(1)), input, format);
  const at::Tensor copy = torch_call::is_on_cuda(input) ? input : torch_call::contiguous(input, format);
  call.returns(std::move(result));
}
inline void adaptive_average_pool3d_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  call.returns(torch_call::empty(with_space(input, call.integers(1)), input));
}
/// (grad_output, self)
inline void adaptive_average_pool3d_backward_rule(torch_call& call) {
  at::Tensor of_input = torch_call::empty(call.tensor(1).sizes(), call.tensor(1));
  const at::Tensor copy = torch_call::contiguous(call.tensor(0));
  call.returns(std::move(of_input));
}

/// What kernels for the backward pass on images hold besides their result: the result, the gradient and the indices in one
/// format.
inline void hold_in_format(c10::MemoryFormat format, const at::Tensor& gradient, const at::Tensor& result,
                           const at::Tensor& indices = {}) {
  if (torch_call::is_on_cuda(gradient)) return;
  const at::Tensor result_copy = torch_call::contiguous(result, format);
  const at::Tensor gradient_copy = torch_call::contiguous(gradient, format);
  const at::Tensor indices_copy = indices.defined() ? torch_call::contiguous(indices, format) : at::Tensor{};
}
/// (grad_output, self)
inline void adaptive_average_pool2d_backward_rule(torch_call& call) {
  const at::Tensor input = call.tensor(1);
  at::Tensor of_input = torch_call::in_format(input.sizes(), input, input.suggest_memory_format());
  hold_in_format(call.tensor(0).suggest_memory_format(), call.tensor(0), of_input);
  call.returns(std::move(of_input));
}
/// (grad_output, self, ...) with a shape function.
inline void average_pool_backward_rule(torch_call& call) {
  const at::Tensor gradient = call.tensor(0);
  call.run_shape_function();
  hold_in_format(gradient.suggest_memory_format(), gradient, call.stack().back().toTensor());
}
/// The same, with the indices of the maxima as the last argument.
inline void max_pool_backward_rule(torch_call& call) {
  const at::Tensor gradient = call.tensor(0);
  const at::Tensor indices = call.tensor(call.size() - 1);
  call.run_shape_function();
  hold_in_format(gradient.suggest_memory_format(), gradient, call.stack().back().toTensor(), indices);
}
/// (grad_output, self, indices), in the format of the input.
inline void adaptive_max_pool_backward_rule(torch_call& call) {
  const at::Tensor gradient = call.tensor(0);
  const at::Tensor input = call.tensor(1);
  const at::Tensor indices = call.tensor(2);
  call.run_shape_function();
  hold_in_format(input.suggest_memory_format(), gradient, call.stack().back().toTensor(), indices);
}

inline constexpr known_rule pooling_rules[] = {
    {"aten::_adaptive_avg_pool2d", adaptive_average_pool2d_rule},
    {"aten::_adaptive_avg_pool3d", adaptive_average_pool3d_rule},
    {"aten::_adaptive_avg_pool2d_backward", adaptive_average_pool2d_backward_rule},
    {"aten::_adaptive_avg_pool3d_backward", adaptive_average_pool3d_backward_rule},
    {"aten::adaptive_max_pool2d", copies_inputs_rule<0>},
    {"aten::adaptive_max_pool2d_backward", adaptive_max_pool_backward_rule},
    {"aten::adaptive_max_pool3d_backward", copies_inputs_contiguously_rule<0>},
    {"aten::avg_pool2d", copies_inputs_rule<0>},
    {"aten::avg_pool2d_backward", average_pool_backward_rule},
    {"aten::avg_pool3d", copies_inputs_contiguously_rule<0>},
    {"aten::avg_pool3d_backward", copies_inputs_contiguously_rule<0>},
    {"aten::fractional_max_pool2d", copies_inputs_contiguously_rule<3, 0>},
    {"aten::fractional_max_pool3d", copies_inputs_contiguously_rule<3, 0>},
    {"aten::max_pool2d_with_indices", copies_inputs_rule<0>},
    {"aten::max_pool2d_with_indices_backward", max_pool_backward_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
