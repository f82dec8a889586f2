#pragma once

#include <memprof/backend/torch/simulation/cuda_reduction.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/WrapDimUtils.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

/// @file
/// Sums, extremes and sorting: operators whose shape function libtorch has only in Python, and those whose CPU kernel needs
/// scratch memory.

namespace memprof::inline MEMPROF_ABI::detail {

inline constexpr const char* unknown_scratch_on_cuda = "results are exact; scratch memory on CUDA is unknown";

/// The sizes that remain of `input` when `dimensions` are reduced, all of them if none are given.
[[nodiscard]] inline std::vector<std::int64_t> reduced_sizes(const at::Tensor& input, const std::vector<std::int64_t>& dimensions,
                                                             bool keeps_dimensions) {
  const std::vector<bool> is_reduced = reduced_dimensions(input, dimensions);
  std::vector<std::int64_t> sizes;
  for (std::size_t index = 0; index < is_reduced.size(); ++index) {
    if (!is_reduced[index])
      sizes.push_back(input.sizes()[index]);
    else if (keeps_dimensions)
      sizes.push_back(1);
  }
  return sizes;
}

/// Reduces all elements to one number.
inline void scalar_rule(torch_call& call) { call.returns(torch_call::empty({}, call.tensor(0))); }
/// The same, for elements without gaps.
inline void contiguous_scalar_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  at::Tensor result = torch_call::empty({}, input);
  const at::Tensor contiguous = torch_call::is_on_cuda(input) ? input : torch_call::contiguous(input);
  call.returns(std::move(result));
}

/// (self, dim, *, correction, keepdim)
inline void variance_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  if (input.is_complex()) return call.run_without_rule();
  call.returns(torch_call::empty(reduced_sizes(input, call.integers(1), call.flag(3)), input));
}
inline void variance_and_mean_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  if (input.is_complex()) return call.run_without_rule();
  const std::vector<std::int64_t> sizes = reduced_sizes(input, call.integers(1), call.flag(3));
  at::Tensor variance = torch_call::empty(sizes, input);
  call.returns(std::move(variance), torch_call::empty(sizes, input));
}

/// The copy that the CPU kernel makes of an input that it sums in another type.
[[nodiscard]] inline at::Tensor widened(const at::Tensor& input, at::ScalarType to) {
  return torch_call::is_on_cuda(input) || input.scalar_type() == to ? at::Tensor{} : torch_call::empty_like(input, to);
}
/// Whether the reduced dimensions of contiguous elements are apart, so that they do not become one.
[[nodiscard]] inline bool are_apart(const at::Tensor& input, const std::vector<std::int64_t>& dimensions) {
  std::vector<bool> is_reduced(static_cast<std::size_t>(input.dim()), false);
  for (const std::int64_t one : dimensions) is_reduced[static_cast<std::size_t>(at::maybe_wrap_dim(one, input.dim()))] = true;
  int groups = 0;
  bool is_in_group = false;
  for (std::size_t index = 0; index < is_reduced.size(); ++index) {
    if (input.sizes()[index] == 1) continue;
    if (is_reduced[index] && !is_in_group) ++groups;
    is_in_group = is_reduced[index];
  }
  return groups > 1;
}
/// (self, dim, keepdim, ...)
inline void sum_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const bool is_on_cpu = !torch_call::is_on_cuda(input);
  const bool is_narrow = input.scalar_type() != accumulation_type(input.scalar_type());
  if (is_narrow && is_on_cpu && !input.is_contiguous()) return call.run_without_rule();
  const bool is_apart = is_narrow && is_on_cpu && input.numel() != 0 && are_apart(input, call.integers(1));
  call.run_shape_function();
  const at::Tensor result = call.stack().back().toTensor();
  const bool sums_in_buffer = is_apart && result.scalar_type() == input.scalar_type();  // should_use_acc_buffer (ReduceOps.cpp)
  const at::Tensor sums = torch_call::scratch(result.sizes(), input, at::kFloat, sums_in_buffer);
  const at::Tensor wide = widened(input, sums_in_buffer ? at::kFloat : result.scalar_type());
}
/// (self, *, dtype)
inline void prod_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  if (at::isIntegralType(input.scalar_type(), true) && !torch_call::is_on_cuda(input)) return call.run_without_rule();
  const at::ScalarType own = at::isIntegralType(input.scalar_type(), true) ? at::kLong : input.scalar_type();
  at::Tensor result = torch_call::empty({}, input, call.dtype(1).value_or(own));
  const at::Tensor wide = widened(input, result.scalar_type());
  call.returns(std::move(result));
}

/// (self, bins, min, max): CUDA also counts integers, which the CPU's kernel refuses.
inline void histogram_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  if (!torch_call::is_on_cuda(input)) return call.run_without_rule();
  call.approximate(unknown_scratch_on_cuda);
  call.returns(torch_call::empty({call.integer(1)}, input));
}

/// (self, dim): CUDA sums what is not zero.
inline void count_nonzero_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  if (!torch_call::is_on_cuda(input)) return call.run_without_rule();
  const std::vector<std::int64_t> dimensions = call.integers(1);
  const at::Tensor are_not_zero = torch_call::empty_like(input, at::kBool);
  at::Tensor result = torch_call::empty(reduced_sizes(input, dimensions, false), input, at::kLong);
  const at::Tensor wide = torch_call::empty_like(input, at::kLong);
  hold_partial_results(wide, dimensions, static_cast<std::int64_t>(sizeof(std::int64_t)));
  call.returns(std::move(result));
}

/// (self, dim, keepdim, *, out)
inline void logsumexp_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const at::Tensor result = call.tensor(3);
  const std::vector<std::int64_t> kept = reduced_sizes(input, call.integers(1), true);
  const at::Tensor greatest = torch_call::empty(kept, input);
  const bool is_on_cuda = torch_call::is_on_cuda(input) && !input.is_complex();
  const auto hold = [&](const at::Tensor& reduced, std::int64_t bytes) {
    if (is_on_cuda) hold_partial_results(reduced, call.integers(1), bytes);
  };
  hold(input, static_cast<std::int64_t>(input.element_size()));
  {
    const at::Tensor magnitudes = torch_call::empty(kept, input);
    const at::Tensor are_infinite = torch_call::empty(kept, input, at::kBool);
  }
  const at::Tensor differences = torch_call::empty_like(input);
  const std::vector<std::int64_t> sizes = reduced_sizes(input, call.integers(1), call.flag(2));
  if (result.sizes() != at::IntArrayRef{sizes}) result.resize_(sizes);
  hold(differences, static_cast<std::int64_t>(c10::elementSize(accumulation_type(input.scalar_type()))));
  call.returns(result);
}

/// Gives `values` and `indices`, the last two arguments, the sizes that remain after reducing one dimension.
inline void resize_values_and_indices(torch_call& call, std::int64_t reduced, bool keeps_dimension) {
  const std::vector<std::int64_t> sizes = reduced_sizes(call.tensor(0), {reduced}, keeps_dimension);
  for (const std::size_t from_end : {2U, 1U}) {
    const at::Tensor result = call.tensor(call.size() - from_end);
    if (result.sizes() != at::IntArrayRef{sizes}) result.resize_(sizes);
  }
}
/// (self, k, dim, keepdim, *, values, indices)
inline void kth_value_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  resize_values_and_indices(call, call.integer(2), call.flag(3));
  if (torch_call::is_on_cuda(input)) return call.returns(call.tensor(4), call.tensor(5));
  const at::Tensor partly_sorted = torch_call::empty(input.sizes(), input);
  const at::Tensor their_indices = torch_call::empty(input.sizes(), input, at::kLong);
  call.returns(call.tensor(4), call.tensor(5));
}

/// (self, *, stable, dim, descending): the CPU first creates the indices of one row.
inline void sort_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const std::int64_t row = input.dim() == 0 ? 1 : input.size(call.integer(2));
  if (torch_call::is_on_cuda(input)) call.approximate(unknown_scratch_on_cuda);
  call.run_shape_function();
  at::Tensor indices_of_row;
  if (!torch_call::is_on_cuda(input)) indices_of_row = torch_call::empty({row}, input, at::kLong);
}

/// (input, dim, half_to_float)
inline void softmax_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  call.run_shape_function();
  const at::Tensor contiguous = torch_call::contiguous(input);
}
/// (grad_output, output, dim, input_dtype)
inline void softmax_backward_rule(torch_call& call) {
  const at::Tensor gradient = call.tensor(0);
  const at::Tensor output = call.tensor(1);
  call.run_shape_function();
  // CUDA's kernel of softmax gets the product, which that of log_softmax computes itself.
  const bool multiplies =
      torch_call::is_on_cuda(gradient) && call.called().operator_name().name == "aten::_softmax_backward_data";
  const at::Tensor product = torch_call::scratch(gradient.sizes(), gradient, {}, multiplies);
  if (multiplies && output.is_contiguous()) return;
  const at::Tensor contiguous_gradient = torch_call::contiguous(gradient);
  const at::Tensor contiguous_output = torch_call::contiguous(output);
}

/// (self, dim, keepdim, *, dtype): the CPU sums 16-bit types in a wider type, and rounds the mean.
inline void mean_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  call.run_shape_function();
  const at::Tensor& result = call.stack().back().toTensor();
  if (torch_call::is_on_cuda(input)) return;
  if (result.scalar_type() == accumulation_type(result.scalar_type())) {
    const at::Tensor wide = widened(input, result.scalar_type());
    return;
  }
  const at::Tensor wide_result = torch_call::scratch(result.sizes(), result, at::kFloat);
  const at::Tensor wide = torch_call::converted(input, at::kFloat);
}

inline constexpr known_rule reduction_rules[] = {
    {"aten::max", contiguous_scalar_rule},
    {"aten::min", contiguous_scalar_rule},
    {"aten::trace", scalar_rule},
    {"aten::var.correction", variance_rule},
    {"aten::std.correction", variance_rule},
    {"aten::var_mean.correction", variance_and_mean_rule},
    {"aten::std_mean.correction", variance_and_mean_rule},
    {"aten::histc", histogram_rule},
    {"aten::count_nonzero", count_nonzero_rule},
    {"aten::count_nonzero.dim_IntList", count_nonzero_rule},
    {"aten::sum.dim_IntList", sum_rule},
    {"aten::sum.IntList_out", sum_rule},
    {"aten::prod", prod_rule},
    {"aten::prod.dim_int", sum_rule},
    {"aten::logsumexp.out", logsumexp_rule},
    {"aten::kthvalue.values", kth_value_rule},
    {"aten::sort.stable", sort_rule},
    {"aten::_softmax", softmax_rule},
    {"aten::_log_softmax", softmax_rule},
    {"aten::_softmax_backward_data", softmax_backward_rule},
    {"aten::_log_softmax_backward_data", softmax_backward_rule},
    {"aten::mean.dim", mean_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
