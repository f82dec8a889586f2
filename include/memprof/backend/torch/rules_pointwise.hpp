#pragma once

#include <memprof/backend/torch/torch_call.hpp>

#include <ATen/ExpandUtils.h>
#include <ATen/native/TypeProperties.h>

#include <cstddef>
#include <cstdint>
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
  const at::Tensor like = call.tensor(1).dim() == 0 ? call.tensor(2) : call.tensor(1);
  call.returns(torch_call::empty(where_sizes(call), like, at::native::result_type({call.tensor(1), call.tensor(2)})));
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

inline constexpr known_rule pointwise_rules[] = {
    {"aten::relu", like_first_rule},          {"aten::hardtanh", like_first_rule},
    {"aten::hardswish", like_first_rule},     {"aten::hardswish_backward", like_second_rule},
    {"aten::angle", like_first_rule},         {"aten::logit", like_first_rule},
    {"aten::flip", like_first_rule},          {"aten::roll", like_first_rule},
    {"aten::where.self", where_rule},         {"aten::where.self_out", where_out_rule},
    {"aten::abs.out", out_like_first_rule},   {"aten::nan_to_num.out", out_like_first_rule},
    {"aten::angle.out", out_like_first_rule}, {"aten::sign.out", out_like_first_rule},
};

}  // namespace memprof::detail
