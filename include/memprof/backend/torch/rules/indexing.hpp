#pragma once

#include <memprof/backend/torch/rules/sums_by_index.hpp>
#include <memprof/backend/torch/simulation/fake_tensor.hpp>
#include <memprof/backend/torch/simulation/likely_shares.hpp>
#include <memprof/backend/torch/simulation/real_kernel.hpp>
#include <memprof/backend/torch/simulation/stand_ins.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/unique_dim.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

/// @file
/// Gathering, embedding, and operators whose result has a size that depends on data.

namespace memprof::inline MEMPROF_ABI::detail {

/// The fraction of the elements assumed to be selected if that depends on data, as the program says
/// (`set_torch_selected_fraction`); negative: it says nothing.
[[gnu::visibility("default")]] inline constinit std::atomic<double> selected_fraction{-1.0};

/// What `find` returns for the values of a tensor, if these are known. Nothing is recorded.
template <class Find>
[[nodiscard]] auto found_in_values(const at::Tensor& tensor, Find find) -> std::optional<decltype(find(tensor))> {
  if (!tensor.defined() || tensor.is_meta() || !is_dense(tensor) || !is_small(tensor) || !detail::has_values(tensor)) return {};
  stand_ins replaced;
  const at::Tensor memory = replaced.stand_in_of(tensor, false);
  const kernel_scope scope{max_kernel_bytes, true};
  const c10::impl::ExcludeDispatchKeyGuard no_graph{c10::autograd_dispatch_keyset_with_ADInplaceOrView};
  return find(memory);
}
[[nodiscard]] inline std::optional<std::int64_t> known_nonzeros(const at::Tensor& tensor) {
  return found_in_values(tensor, [](const at::Tensor& values) { return values.count_nonzero().item<std::int64_t>(); });
}

[[nodiscard]] inline std::int64_t assume_fraction(torch_call& call, double fraction, std::int64_t elements, const char* cause) {
  return call.assume_length(std::llround(fraction * static_cast<double>(elements)), elements, cause);
}
/// How many of so many elements are selected by `mask`, or by anything if it is undefined.
[[nodiscard]] inline std::int64_t selected_of(torch_call& call, std::int64_t elements, const at::Tensor& mask = {}) {
  if (const std::optional<std::int64_t> known = known_nonzeros(mask)) return *known;
  const double set = selected_fraction.load(std::memory_order_relaxed);
  const std::optional<double> likely = mask.defined() ? likely_share(mask) : std::nullopt;
  if (likely.has_value() && is_share_said(mask)) {
    return assume_fraction(call, *likely, elements, "the size of the result depends on data: as the program says of it");
  }
  if (set >= 0) {
    return assume_fraction(call, set, elements,
                           "the size of the result depends on data: assumed to be the fraction that was set");
  }
  return likely.has_value()
             ? assume_fraction(call, *likely, elements, "the size of the result depends on data: assumed to be the likely share")
             : assume_fraction(call, 1, elements, "the size of the result depends on data: assumed to be the greatest");
}

[[nodiscard]] inline std::size_t dimension(std::int64_t index, const at::Tensor& of) {
  return static_cast<std::size_t>(at::maybe_wrap_dim(index, of.dim()));
}

/// (self, dim, index)
inline void index_select_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  std::vector<std::int64_t> sizes = input.sizes().vec();
  if (!sizes.empty()) sizes[dimension(call.integer(1), input)] = call.tensor(2).numel();
  at::Tensor result = torch_call::empty(sizes, input);
  // The CPU has a kernel for the second dimension only.
  const bool is_on_cpu = !torch_call::is_on_cuda(input);
  const bool is_copied = is_on_cpu && input.dim() > 1 && dimension(call.integer(1), input) == 1;
  const at::Tensor contiguous_index = is_on_cpu ? torch_call::contiguous(call.tensor(2)) : call.tensor(2);
  const at::Tensor contiguous = is_copied ? torch_call::contiguous(input) : input;
  call.returns(std::move(result));
}

inline void nonzero_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  const std::int64_t selected = selected_of(call, input.numel(), input);
  // The transpose of a (dimensions, selected) matrix, in the kernels of both devices.
  const at::Tensor coordinates = torch_call::empty({input.dim(), selected}, input, at::kLong);
  call.returns(input.dim() > 1 ? torch_call::transposed(coordinates, 0, 1)
                               : torch_call::viewed(coordinates, {selected, input.dim()}));
}

/// (self, indices), where a mask may be among the indices: the shape function reads its elements.
inline void index_rule(torch_call& call) {
  at::Tensor known_mask;
  for (const c10::IValue& index : call.argument(1).toListRef()) {
    if (!index.isTensor() || !index.toTensor().defined()) continue;
    const at::Tensor& tensor = index.toTensor();
    const bool is_mask = tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte;
    if (is_mask && detail::has_values(tensor)) known_mask = tensor;
    if (is_mask && !detail::has_values(tensor)) {
      (void)selected_of(call, tensor.numel(), tensor);
      const mask_share_scope of_mask{tensor};
      return call.run_shape_function();
    }
  }
  // On CUDA, the shape function runs here, too.
  const std::optional<std::int64_t> selected = torch_call::is_on_cuda(call.tensor(0)) ? known_nonzeros(known_mask) : std::nullopt;
  if (!selected.has_value() || known_mask.numel() == 0) return call.run_without_rule();
  const mask_share_scope of_mask{static_cast<double>(*selected) / static_cast<double>(known_mask.numel())};
  call.run_shape_function();
}

/// (grad, mask, sizes of the source): the source has room for all selected elements.
inline void masked_scatter_backward_rule(torch_call& call) {
  const at::Tensor gradient = call.tensor(0);
  if (detail::has_values(call.tensor(1))) return call.run_without_rule();
  const std::vector<std::int64_t> sizes = call.integers(2);
  const std::int64_t room = c10::multiply_integers(sizes);
  const std::int64_t selected = std::min(selected_of(call, gradient.numel(), call.tensor(1)), room);
  const at::Tensor selection = torch_call::scratch({selected}, gradient);
  if (selected == room) return call.returns(torch_call::viewed(selection, sizes));
  const at::Tensor rest = torch_call::scratch({room - selected}, gradient);
  call.returns(torch_call::empty(sizes, gradient));
}

/// (repeats, output_size): each index, repeated as often as given. The total is known only if the caller passes it.
inline void repeat_interleave_rule(torch_call& call) {
  const at::Tensor repeats = call.tensor(0);
  if (!call.has(1) || torch_call::is_on_cuda(repeats)) return call.run_without_rule();
  const at::Tensor ends = torch_call::scratch(repeats.sizes(), repeats, at::kLong);
  at::Tensor result = torch_call::empty({call.integer(1)}, repeats);
  const at::Tensor contiguous = torch_call::contiguous(repeats);
  call.returns(std::move(result));
}

/// (data, reduce, lengths, indices, offsets, axis, unsafe, initial): skips the checks, which unknown lengths would fail.
inline void segment_reduce_rule(torch_call& call) {
  call.argument(6) = true;
  call.run_without_rule();
}

/// Without a source, a tensor releases its storage.
inline void set_nothing_rule(torch_call& call) {
  const at::Tensor self = call.tensor(0);
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(detail::fake_storage(0, self.device()));
  self.unsafeGetTensorImpl()->set_sizes_contiguous(std::array<std::int64_t, 1>{0});
  call.returns(self);
}

/// A lazy clone shares its bytes until either tensor is written.
inline void lazy_clone_rule(torch_call& call) {
  call.approximate("cloned at once, not only when the clone or its original is written");
  call.returns(call.tensor(0).clone(at::MemoryFormat::Preserve));
}

/// (self, mask)
inline void masked_select_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  if (detail::has_values(call.tensor(1))) return call.run_without_rule();
  const std::vector<std::int64_t> both = at::infer_size(input.sizes(), call.tensor(1).sizes());
  std::int64_t elements = 1;
  for (const std::int64_t size : both) elements *= size;
  const bool is_on_cuda = torch_call::is_on_cuda(input);
  (void)torch_call::scratch(both, input, at::kLong, !is_on_cuda);  // sums the mask
  at::Tensor selected = torch_call::empty({selected_of(call, elements, call.tensor(1))}, input);
  // Several threads first determine where each element goes.
  constexpr std::int64_t grain_size = 32768;  // at::internal::GRAIN_SIZE
  const bool is_parallel = !is_on_cuda && input.numel() >= grain_size && at::get_num_threads() > 1;
  const at::Tensor counted = torch_call::scratch(both, input, at::kLong, is_parallel);
  const at::Tensor places = torch_call::scratch(both, input, at::kLong, is_parallel);
  call.returns(std::move(selected));
}

/// The sizes of the distinct values of a tensor, as `find` makes them, or of as many as are likely.
template <class Find>
[[nodiscard]] std::vector<std::int64_t> distinct_sizes(torch_call& call, Find find) {
  const at::Tensor input = call.tensor(0);
  if (auto known = found_in_values(input, [&](const at::Tensor& values) { return find(values).sizes().vec(); })) return *known;
  const auto choices = static_cast<std::int64_t>(choices_of(input));
  return {selected_of(call, choices >= 1 ? std::min(choices, input.numel()) : input.numel())};  // indices of n things
}

/// Distinct values of all elements: (self, sorted, return_inverse, return_counts), and others whose flags begin at `first_flag`.
inline void return_unique(torch_call& call, std::size_t first_flag, const std::vector<std::int64_t>& distinct) {
  const at::Tensor input = call.tensor(0);
  const at::Tensor values = torch_call::empty(distinct, input);
  const at::Tensor inverse = torch_call::empty(call.flag(first_flag) ? input.sizes() : at::IntArrayRef{0}, input, at::kLong);
  const at::Tensor counts =
      torch_call::empty(call.flag(first_flag + 1) ? at::IntArrayRef{distinct} : at::IntArrayRef{0}, input, at::kLong);
  call.returns(values, inverse, counts);
}
inline void unique_rule(torch_call& call) {
  return_unique(call, 2, distinct_sizes(call, [](const at::Tensor& values) { return std::get<0>(at::_unique2(values)); }));
}

/// (self, dim, ...)
inline void unique_of_dimension_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  std::vector<std::int64_t> sizes = input.sizes().vec();
  const std::int64_t dim = call.integer(1);
  const std::int64_t all = input.size(dim);  // refuses a tensor without dimensions, as libtorch does
  const auto known = found_in_values(input, [&](const at::Tensor& of) { return std::get<0>(at::unique_dim(of, dim)).size(dim); });
  const std::int64_t distinct = known.has_value() ? *known : selected_of(call, all);
  sizes[dimension(dim, input)] = distinct;
  const at::Tensor values = torch_call::empty(sizes, input);
  const at::Tensor inverse = torch_call::empty({all}, input, at::kLong);
  const at::Tensor counts = torch_call::empty({distinct}, input, at::kLong);
  call.returns(values, inverse, counts);
}

/// (self, return_inverse, return_counts, dim)
inline void unique_consecutive_rule(torch_call& call) {
  if (call.has(3)) return call.run_without_rule();
  const auto find = [](const at::Tensor& values) { return std::get<0>(at::unique_consecutive(values)); };
  return_unique(call, 1, distinct_sizes(call, find));
}

/// (self, repeats)
inline void repeat_rule(torch_call& call) {
  const at::Tensor input = call.tensor(0);
  std::vector<std::int64_t> sizes = call.integers(1);
  TORCH_CHECK(std::ssize(sizes) >= input.dim(),
              "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  const std::size_t added = sizes.size() - static_cast<std::size_t>(input.dim());
  for (std::size_t index = added; index < sizes.size(); ++index) sizes[index] *= input.sizes()[index - added];
  call.returns(torch_call::empty(sizes, input));
}

/// (grad_in, input_sizes, dim, size, step)
inline void unfold_backward_rule(torch_call& call) {
  const at::Tensor gradient = call.tensor(0);
  const std::vector<std::int64_t> sizes = call.integers(1);
  at::Tensor of_input = torch_call::empty(sizes, gradient);
  const auto unfolded = static_cast<std::size_t>(at::maybe_wrap_dim(call.integer(2), std::ssize(sizes)));
  const at::Tensor positions = torch_call::empty({sizes.empty() ? 1 : sizes[unfolded]}, gradient, at::kLong);
  call.returns(std::move(of_input));
}

/// (self, src, non_blocking)
inline void copy_rule(torch_call& call) {
  const at::Tensor to = call.tensor(0);
  const at::Tensor from = call.tensor(1);
  // The CPU transposes a matrix tile by tile, through a temporary tile (Copy.cpp).
  constexpr std::int64_t tile = 60;
  const bool is_transposition = !torch_call::is_on_cuda(to) && !torch_call::is_on_cuda(from) && from.dim() == 2 &&
                                to.is_contiguous() && from.stride(0) == 1 && from.stride(1) == from.size(0) &&
                                to.sizes() == from.sizes() && to.scalar_type() == from.scalar_type() && to.numel() >= tile * tile;
  call.run_shape_function();
  at::Tensor transposed_tile;
  if (is_transposition) transposed_tile = torch_call::empty({tile, tile}, to);
}

inline constexpr known_rule indexing_rules[] = {
    {"aten::index_select", index_select_rule},
    {"aten::embedding_dense_backward", embedding_backward_rule},
    {"aten::index.Tensor", index_rule, rule_use::without_values},
    {"aten::_index_put_impl_", index_put_rule},
    {"aten::nonzero", nonzero_rule, rule_use::without_values},
    {"aten::masked_select", masked_select_rule, rule_use::without_values},
    {"aten::masked_scatter_backward", masked_scatter_backward_rule, rule_use::without_values},
    {"aten::repeat_interleave.Tensor", repeat_interleave_rule, rule_use::without_values},
    {"aten::segment_reduce", segment_reduce_rule, rule_use::without_values},
    {"aten::_lazy_clone", lazy_clone_rule, rule_use::without_values},
    {"aten::_unique2", unique_rule, rule_use::without_values},
    {"aten::unique_consecutive", unique_consecutive_rule, rule_use::without_values},
    {"aten::unique_dim", unique_of_dimension_rule, rule_use::without_values},
    {"aten::set_", set_nothing_rule, rule_use::always},
    {"aten::repeat", repeat_rule},
    {"aten::unfold_backward", unfold_backward_rule},
    {"aten::copy_", copy_rule},
    {"aten::_embedding_bag", embedding_bag_rule},
    {"aten::_embedding_bag_forward_only", embedding_bag_rule},
    {"aten::_embedding_bag_backward", embedding_bag_backward_rule},
};

}  // namespace memprof::inline MEMPROF_ABI::detail
