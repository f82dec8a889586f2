#pragma once

#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/ExpandUtils.h>
#include <ATen/native/TypeProperties.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

/// @file
/// Element by element: operators whose shape function libtorch has in Python only.

namespace memprof::detail {

/// One result like the first argument.
inline void like_first_rule(torch_call& call) { call.returns(torch_call::empty_like(call.tensor(0))); }
/// A gradient: one result like the second argument.
inline void like_second_rule(torch_call& call) { call.returns(torch_call::empty_like(call.tensor(1))); }
/// (condition, self, other)
[[nodiscard]] inline std::vector<std::int64_t> where_sizes(const torch_call& call) {
  return at::infer_size(at::infer_size(call.tensor(0).sizes(), call.tensor(1).sizes()), call.tensor(2).sizes());
}
inline void where_rule(torch_call& call) {
  const at::Tensor left = call.tensor(1);
  const at::Tensor right = call.tensor(2);
  const at::Tensor& on = left.dim() == 0 ? right : left;  // a number on the host may choose among values on the device
  const at::ScalarType common = at::native::result_type({left, right});
  at::Tensor left_copy;
  at::Tensor right_copy;
  if (left.dim() != 0 && left.scalar_type() != common) left_copy = torch_call::empty_like(left, common);
  if (right.dim() != 0 && right.scalar_type() != common) right_copy = torch_call::empty_like(right, common);
  // A tensor of the result's sizes tells the order of its dimensions; none if all are broadcast.
  const std::vector<std::int64_t> sizes = where_sizes(call);
  for (const at::Tensor& input : {call.tensor(0), left, right}) {
    if (input.sizes() == at::IntArrayRef{sizes}) {
      return call.returns(detail::fake_strided(sizes, strides_like(input), c10::scalarTypeToTypeMeta(common), on.device()));
    }
  }
  call.returns(torch_call::empty(sizes, on, common));
}

/// Gives a tensor that is written to the sizes of its result, as kernels do.
inline void resize_result(const at::Tensor& result, at::IntArrayRef sizes) {
  if (result.sizes() != sizes) result.resize_(sizes);
}
inline void where_out_rule(torch_call& call) {
  const at::Tensor result = call.tensor(3);
  resize_result(result, where_sizes(call));
  call.returns(result);
}
/// The last argument is written, with the sizes of the first.
inline void out_like_first_rule(torch_call& call) {
  const at::Tensor result = call.tensor(call.size() - 1);
  resize_result(result, call.tensor(0).sizes());
  call.returns(result);
}

/// Both inputs are broadcast; the last argument is written.
inline void out_broadcast_rule(torch_call& call) {
  const at::Tensor result = call.tensor(call.size() - 1);
  resize_result(result, at::infer_size(call.tensor(0).sizes(), call.tensor(1).sizes()));
  call.returns(result);
}

/// What the CPU's kernels of two inputs do first: an input of a type that is not the common one is copied into it. Numbers are
/// left out.
inline void promoting_rule(torch_call& call) {
  const at::Tensor left = call.tensor(0);
  at::Tensor right;
  if (call.argument(1).isTensor()) right = call.tensor(1);
  at::Tensor left_copy;
  at::Tensor right_copy;
  if (right.defined() && left.scalar_type() != right.scalar_type() && !torch_call::is_on_cuda(left)) {
    const at::ScalarType common = at::native::result_type({left, right});
    const bool writes_left = call.called().schema().arguments()[0].alias_info() != nullptr;
    if (left.dim() != 0 && left.scalar_type() != common && !writes_left) left_copy = torch_call::empty_like(left, common);
    if (right.dim() != 0 && right.scalar_type() != common) right_copy = torch_call::empty_like(right, common);
  }
  call.run_meta_kernel();
}

/// A gradient of one-piece kernels (oneDNN) for an element-by-element function: the incoming one without gaps.
inline void gelu_backward_rule(torch_call& call) {
  const at::Tensor gradient = call.tensor(0);
  const bool is_exact = call.argument(2).toStringView() == "none";
  call.run_meta_kernel();
  at::Tensor contiguous;
  if (!torch_call::is_on_cuda(gradient) && is_exact) contiguous = torch_call::contiguous(gradient);
}

/// (grad_output, self, weight) -> gradients of both, the latter before it is added up
inline void prelu_backward_rule(torch_call& call) {
  const at::Tensor input = call.tensor(1);
  at::Tensor of_input = torch_call::empty_like(input);
  call.returns(std::move(of_input), torch_call::empty_like(input, call.tensor(2).scalar_type()));
}

inline constexpr known_rule pointwise_rules[] = {
    {"aten::relu", like_first_rule},
    {"aten::hardtanh", like_first_rule},
    {"aten::hardswish", like_first_rule},
    {"aten::hardswish_backward", like_second_rule},
    {"aten::mish_backward", like_second_rule},
    {"aten::gelu_backward", gelu_backward_rule},
    {"aten::_prelu_kernel", like_first_rule},
    {"aten::_prelu_kernel_backward", prelu_backward_rule},
    {"aten::angle", like_first_rule},
    {"aten::logit", like_first_rule},
    {"aten::flip", like_first_rule},
    {"aten::roll", like_first_rule},
    {"aten::where.self", where_rule},
    {"aten::where.self_out", where_out_rule},
    {"aten::abs.out", out_like_first_rule},
    {"aten::nan_to_num.out", out_like_first_rule},
    {"aten::angle.out", out_like_first_rule},
    {"aten::sign.out", out_like_first_rule},
    {"aten::logical_not.out", out_like_first_rule},
    {"aten::logical_and.out", out_broadcast_rule},
    {"aten::logical_or.out", out_broadcast_rule},
    {"aten::logical_xor.out", out_broadcast_rule},
    {"aten::add.Tensor", promoting_rule},
    {"aten::add_.Tensor", promoting_rule},
    {"aten::sub.Tensor", promoting_rule},
    {"aten::sub_.Tensor", promoting_rule},
    {"aten::mul.Tensor", promoting_rule},
    {"aten::mul_.Tensor", promoting_rule},
    {"aten::div.Tensor", promoting_rule},
    {"aten::div_.Tensor", promoting_rule},
    {"aten::maximum", promoting_rule},
    {"aten::minimum", promoting_rule},
    {"aten::atan2", promoting_rule},
    {"aten::pow.Tensor_Tensor", promoting_rule},
    {"aten::remainder.Tensor", promoting_rule},
    {"aten::fmod.Tensor", promoting_rule},
    {"aten::bitwise_and.Tensor", promoting_rule},
    {"aten::bitwise_or.Tensor", promoting_rule},
    {"aten::eq.Tensor", promoting_rule},
    {"aten::ne.Tensor", promoting_rule},
    {"aten::lt.Tensor", promoting_rule},
    {"aten::le.Tensor", promoting_rule},
    {"aten::gt.Tensor", promoting_rule},
    {"aten::ge.Tensor", promoting_rule},
};

}  // namespace memprof::detail
