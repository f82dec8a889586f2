#pragma once

#include <memprof/backend/torch/simulation/fake_tensor.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/ops/_embedding_bag_sparse_backward.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

/// @file
/// Sums of rows with the same index, for which CUDA sorts the indices: gradients of embeddings, and `index_put` that accumulates.

namespace memprof::inline MEMPROF_ABI::detail {

/// What cub's radix sort of so many pairs of 8-byte keys and values holds: a second place for both if it takes several passes,
/// counts of digits, and the progress of its blocks. Compared with CUDA 13 on an H200.
[[nodiscard]] constexpr std::int64_t radix_sort_bytes(std::int64_t pairs, std::int64_t key_bits) noexcept {
  constexpr std::int64_t pairs_of_one_block = 2304;
  if (pairs <= pairs_of_one_block) return 1;
  constexpr std::int64_t alignment = 256;
  constexpr std::int64_t digits = 256;
  constexpr std::int64_t pairs_of_block = 4608;
  const std::int64_t passes = (key_bits + 7) / 8;
  const std::int64_t column = (8 * pairs + alignment - 1) / alignment * alignment;
  return (passes > 1 ? 2 * column : 0) + passes * digits * 8 + (pairs + pairs_of_block - 1) / pairs_of_block * digits * 4 +
         2 * alignment - 1;
}

/// Sorts indices, with their order: creates both, and what is held meanwhile.
struct sorted_indices {
  sorted_indices(std::int64_t count, std::int64_t key_bits, const at::Tensor& like)
      : sorted(torch_call::scratch({count}, like, at::kLong)), order(torch_call::scratch({count}, like, at::kLong)) {
    const at::Tensor range = torch_call::scratch({count}, like, at::kLong);
    const at::Tensor held = torch_call::scratch_bytes(radix_sort_bytes(count, key_bits), like);
  }
  at::Tensor sorted;
  at::Tensor order;
};

/// On CUDA, of more indices than are added one by one (EmbeddingBackwardKernel.cu): they are sorted, and rows of gradients for
/// the same index are summed in parts of 10. The numbers of indices and parts are the greatest that there can be.
inline void embedding_backward_of_many(torch_call& call) {
  constexpr std::int64_t rows_of_part = 10;
  constexpr std::int64_t scan_bytes = 1279;
  const at::Tensor gradient = call.tensor(0);
  const std::int64_t count = call.tensor(1).numel();
  const std::int64_t most = std::min(count, call.integer(2));
  const auto numbers = [&](std::int64_t length) { return torch_call::scratch({length}, gradient, at::kLong); };
  const at::Tensor contiguous_indices = torch_call::contiguous(call.tensor(1));
  const at::Tensor contiguous = torch_call::contiguous(gradient);
  constexpr std::int64_t key_bits = 64;
  const sorted_indices sorted{count, key_bits, gradient};
  at::Tensor of_weight = torch_call::empty({call.integer(2), gradient.size(-1)}, gradient);
  const at::Tensor first_of_index = numbers(count);
  const at::Tensor indices_found = numbers(1);
  {
    const at::Tensor each = numbers(count);
    const at::Tensor held = torch_call::scratch_bytes(scan_bytes, gradient);
  }
  const at::Tensor parts_of_index = numbers(most);
  const at::Tensor first_part = numbers(most);
  (void)torch_call::scratch_bytes(scan_bytes, gradient);
  const at::Tensor parts_found = numbers(1);
  const std::int64_t parts = count / rows_of_part + most;
  const at::Tensor first_of_part = numbers(parts);
  const at::Tensor sums = torch_call::scratch({parts, (gradient.size(-1) + 31) / 32 * 32}, gradient, at::kFloat);
  call.returns(std::move(of_weight));
}

/// (self, indices, values, accumulate, unsafe): CUDA sorts indices by which it accumulates (cuda/Indexing.cu).
inline void index_put_rule(torch_call& call) {
  const at::Tensor self = call.tensor(0);
  std::vector<at::Tensor> given;
  for (const c10::IValue& index : call.argument(1).toListRef()) {
    if (index.isTensor() && index.toTensor().defined()) given.push_back(index.toTensor());
  }
  const bool is_simple = given.size() == 1 && given[0].scalar_type() == at::kLong && given[0].is_contiguous() &&
                         given[0].numel() != 0 && call.argument(1).toListRef().front().isTensor();
  if (!torch_call::is_on_cuda(self) || !call.flag(3) || !call.flag(4) || !is_simple) return call.run_without_rule();
  const std::int64_t count = given[0].numel();
  const at::Tensor linear = torch_call::scratch({count}, self, at::kLong);
  (void)torch_call::scratch({count}, self, at::kLong);
  const auto key_bits = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(self.size(0) - 1)));
  const sorted_indices sorted{count, key_bits, self};
  call.returns(self);
}

/// (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
inline void embedding_backward_rule(torch_call& call) {
  const at::Tensor gradient = call.tensor(0);
  const at::Tensor indices = call.tensor(1);
  constexpr std::int64_t greatest_unsorted = 3072;
  if (torch_call::is_on_cuda(gradient) && indices.numel() > greatest_unsorted) return embedding_backward_of_many(call);
  at::Tensor of_weight = torch_call::empty({call.integer(2), gradient.size(-1)}, gradient);
  const at::Tensor contiguous_indices = torch_call::contiguous(indices);
  const at::Tensor contiguous = torch_call::contiguous(gradient);
  call.returns(std::move(of_weight));
}

/// (weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx) -> sums,
/// bag of each index, sizes of bags, places of maxima: CUDA always notes the bags (cuda/EmbeddingBag.cu).
inline void embedding_bag_rule(torch_call& call) {
  constexpr std::int64_t mode_of_maxima = 2;
  const at::Tensor weight = call.tensor(0);
  const at::Tensor indices = call.tensor(1);
  const at::Tensor offsets = call.tensor(2);
  if (!torch_call::is_on_cuda(weight) || indices.scalar_type() != offsets.scalar_type()) return call.run_without_rule();
  const std::int64_t bags = std::max<std::int64_t>(offsets.numel() - (call.flag(7) ? 1 : 0), 0);
  const bool has_maxima = call.integer(4) == mode_of_maxima;
  at::Tensor sizes_of_bags = torch_call::empty(offsets.sizes(), indices);
  at::Tensor bag_of_index = torch_call::empty({indices.numel()}, indices);
  at::Tensor sums = torch_call::empty({bags, weight.size(1)}, weight);
  at::Tensor maxima = has_maxima ? torch_call::empty({bags, weight.size(1)}, indices) : torch_call::empty({0}, indices);
  call.returns(std::move(sums), std::move(bag_of_index), std::move(sizes_of_bags), std::move(maxima));
}

/// (grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, sparse,
/// per_sample_weights, padding_idx), if the result is large. A sparse one is composed.
inline void embedding_bag_backward_rule(torch_call& call) {
  constexpr std::int64_t max_run_elements = std::int64_t{1} << 26;
  const at::Tensor gradient = call.tensor(0);
  const at::Tensor indices = call.tensor(1);
  const std::int64_t rows = call.integer(6);
  if (call.flag(9) && torch_call::is_on_cuda(gradient)) {
    return call.returns(at::_embedding_bag_sparse_backward(gradient, indices, call.tensor(2), call.tensor(3), call.tensor(4),
                                                           rows, call.flag(7), call.integer(8), call.tensor(10),
                                                           call.integer(11)));
  }
  const bool can_run = rows * gradient.size(1) <= max_run_elements || call.flag(9);
  if (!torch_call::is_on_cuda(gradient) && can_run) return call.run_without_rule();
  call.approximate("a table too large to run its kernel: indices are assumed to be sorted in three copies");
  at::Tensor of_weight = torch_call::empty({rows, gradient.size(1)}, gradient);
  const at::Tensor contiguous = torch_call::contiguous(gradient);
  const at::Tensor sorted = torch_call::scratch(indices.sizes(), indices);
  const at::Tensor order = torch_call::scratch(indices.sizes(), indices);
  const at::Tensor bags = torch_call::scratch(indices.sizes(), indices);
  call.returns(std::move(of_weight));
}

}  // namespace memprof::inline MEMPROF_ABI::detail
