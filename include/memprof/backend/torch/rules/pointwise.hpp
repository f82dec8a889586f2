#pragma once

#include <memprof/backend/torch/simulation/fake_tensor.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/TypeProperties.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

/// @file
/// Element-wise operators whose shape function libtorch has only in Python.

namespace memprof::inline MEMPROF_ABI::detail {

/// One result, like the first argument.
inline void like_first_rule(torch_call& call) { call.returns(torch_call::empty_like(call.tensor(0))); }

/// The sizes and strides of the result of libtorch's iterator for these inputs.
struct iterated_shape {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};
[[nodiscard]] inline iterated_shape shape_of_iteration(std::initializer_list<at::Tensor> inputs) {
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).declare_static_dtype_and_device(at::kByte, c10::Device{c10::kMeta});
  config.add_owned_output(at::Tensor{});
  for (const at::Tensor& input : inputs) {
    config.add_owned_const_input(at::detail::empty_strided_meta(input.sizes(), input.strides(), at::kByte));
  }
  const at::TensorBase& result = config.build().output();
  return {result.sizes().vec(), result.strides().vec()};
}

/// (grad_output, self): the order of dimensions is that of the gradient if it has one, else that of the input.
inline void gradient_rule(torch_call& call) {
  const at::Tensor gradient = call.tensor(0);
  const at::Tensor input = call.tensor(1);
  if (gradient.scalar_type() != input.scalar_type()) return call.run_without_rule();
  const auto [sizes, strides] = shape_of_iteration({gradient, input});
  call.returns(detail::fake_strided(sizes, strides, input.dtype(), input.device()));
}

/// (condition, self, other)
inline void where_rule(torch_call& call) {
  const at::Tensor left = call.tensor(1);
  const at::Tensor right = call.tensor(2);
  const at::Tensor& on = left.dim() == 0 ? right : left;  // a number on the host may choose among values on the device
  const at::ScalarType common = at::native::result_type({left, right});
  const at::Tensor left_copy = left.dim() == 0 ? at::Tensor{} : torch_call::converted(left, common);
  const at::Tensor right_copy = right.dim() == 0 ? at::Tensor{} : torch_call::converted(right, common);
  const auto [sizes, strides] = shape_of_iteration({call.tensor(0), left, right});
  call.returns(detail::fake_strided(sizes, strides, c10::scalarTypeToTypeMeta(common), on.device()));
}

/// Gives an output tensor the sizes of its result, and also the order of dimensions if it has none yet.
inline void resize_result(const at::Tensor& result, std::initializer_list<at::Tensor> inputs) {
  const auto [sizes, strides] = shape_of_iteration(inputs);
  if (result.sizes() == at::IntArrayRef{sizes}) return;
  result.resize_(sizes);
  result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
}
inline void where_out_rule(torch_call& call) {
  const at::Tensor result = call.tensor(3);
  resize_result(result, {call.tensor(0), call.tensor(1), call.tensor(2)});
  call.returns(result);
}
/// Writes the last argument, with the sizes of the first.
inline void out_like_first_rule(torch_call& call) {
  const at::Tensor result = call.tensor(call.size() - 1);
  resize_result(result, {call.tensor(0)});
  call.returns(result);
}
/// The same, but the length of a complex number is itself complex at first.
inline void abs_out_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const at::Tensor result = call.tensor(call.size() - 1);
  out_like_first_rule(call);
  at::Tensor complex;
  if (input.is_complex() && !result.is_complex()) complex = torch_call::empty_like(input);
}

/// Broadcasts both inputs and writes the last argument.
inline void out_broadcast_rule(torch_call& call) {
  const at::Tensor result = call.tensor(call.size() - 1);
  resize_result(result, {call.tensor(0), call.tensor(1)});
  call.returns(result);
}

/// The same where the CPU computes truth values: it copies what has another type than both inputs are promoted to, except truth
/// values that it writes.
inline void logical_out_rule(torch_call& call) {
  const at::Tensor left = call.tensor(0);
  const at::Tensor right = call.tensor(1);
  const at::Tensor result = call.tensor(call.size() - 1);
  if (torch_call::is_on_cuda(result)) return out_broadcast_rule(call);
  const bool has_size = result.numel() == 0 || result.sizes() == at::IntArrayRef{shape_of_iteration({left, right}).sizes};
  if (!has_size) return call.run_without_rule();
  out_broadcast_rule(call);
  const at::ScalarType common = at::native::result_type({left, right});
  const at::Tensor left_copy = torch_call::converted(left, common);
  const at::Tensor right_copy = torch_call::converted(right, common);
  const at::Tensor result_copy = torch_call::converted(result, result.scalar_type() == at::kBool ? at::kBool : common);
}

/// (grad_output, self, approximate): oneDNN, which computes some of them, requires a gradient without gaps.
inline void gelu_backward_rule(torch_call& call) {
  const bool is_on_cpu = !torch_call::is_on_cuda(call.tensor(0));
  if (is_on_cpu && !(call.tensor(0).is_contiguous() && call.tensor(1).is_contiguous())) return call.run_without_rule();
  call.run_shape_function();
}

/// (grad_output, self, weight) -> gradients of both, the latter before it is summed
inline void prelu_backward_rule(torch_call& call) {
  const at::Tensor input = call.tensor(1);
  const auto [sizes, strides] = shape_of_iteration({input, call.tensor(2), call.tensor(0)});
  at::Tensor of_input = detail::fake_strided(sizes, strides, input.dtype(), input.device());
  call.returns(std::move(of_input), detail::fake_strided(sizes, strides, input.dtype(), input.device()));
}

/// (self, shifts, dims): each dimension creates its own tensor.
inline void roll_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const std::size_t dimensions = call.integers(2).size();
  if (!torch_call::is_on_cuda(input)) {
    if (dimensions != 1) return call.run_without_rule();
    return call.returns(torch_call::empty(input.sizes(), input));
  }
  at::Tensor rolled = input;
  for (std::size_t turn = 0; turn < std::max<std::size_t>(dimensions, 1); ++turn) {
    const at::Tensor contiguous = torch_call::contiguous(rolled);
    rolled = torch_call::empty(input.sizes(), input);
  }
  call.returns(std::move(rolled));
}

/// (self) -> (output, buffer), which only the CPU uses
inline void log_sigmoid_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  if (!torch_call::is_on_cuda(input)) return call.run_without_rule();
  at::Tensor output = torch_call::empty_like(input);
  call.returns(std::move(output), torch_call::empty({0}, input));
}
/// (grad_output, self, buffer)
inline void log_sigmoid_backward_rule(torch_call& call) {
  if (!torch_call::is_on_cuda(call.tensor(0))) return call.run_without_rule();
  gradient_rule(call);
}

inline constexpr known_rule pointwise_rules[] = {
    {"aten::relu", like_first_rule},
    {"aten::hardtanh", like_first_rule},
    {"aten::hardswish", like_first_rule},
    {"aten::hardswish_backward", gradient_rule},
    {"aten::mish_backward", gradient_rule},
    {"aten::silu_backward", gradient_rule},
    {"aten::gelu_backward", gelu_backward_rule},
    {"aten::gelu_backward.grad_input", gelu_backward_rule},
    {"aten::_prelu_kernel", like_first_rule},
    {"aten::_prelu_kernel_backward", prelu_backward_rule},
    {"aten::flip", like_first_rule},
    {"aten::roll", roll_rule},
    {"aten::log_sigmoid_forward", log_sigmoid_rule},
    {"aten::log_sigmoid_backward", log_sigmoid_backward_rule},
    {"aten::where.self", where_rule},
    {"aten::where.self_out", where_out_rule},
    {"aten::abs.out", abs_out_rule},
    {"aten::nan_to_num.out", out_like_first_rule},
    {"aten::angle.out", out_like_first_rule},
    {"aten::sign.out", out_like_first_rule},
    {"aten::logical_not.out", out_like_first_rule},
    {"aten::logical_and.out", logical_out_rule},
    {"aten::logical_or.out", logical_out_rule},
    {"aten::logical_xor.out", logical_out_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
