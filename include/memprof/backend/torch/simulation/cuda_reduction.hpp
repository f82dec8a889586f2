#pragma once

#include <memprof/backend/torch/simulation/cuda_properties.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/WrapDimUtils.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

/// @file
/// What a reduction holds on CUDA besides its result: where several thread blocks share the work for one number, their partial
/// results and a counter for each. `setReduceConfig` of aten/src/ATen/native/cuda/Reduce.cuh; compared with an H200.

namespace memprof::inline MEMPROF_ABI::detail {

struct partial_results {
  std::int64_t bytes = 0;
  std::int64_t counter_bytes = 0;
};

/// The division of a reduction's work among threads and blocks.
class reduction_layout {
 public:
  /// `iterator` iterates over the result, reduced dimensions with a stride of 0, and the input, both as bytes: strides are in
  /// elements. `offset` is the input's first element; `element_bytes` the size of a partial result.
  reduction_layout(const at::TensorIterator& iterator, std::int64_t offset, std::int64_t element_bytes)
      : outputs_(iterator.num_output_elements()),
        inputs_(iterator.numel() / std::max<std::int64_t>(outputs_, 1)),
        element_bytes_(element_bytes) {
    const at::IntArrayRef strides = iterator.strides(1);
    const int reduced = iterator.num_reduce_dims();
    const bool is_along_rows =
        iterator.ndim() == 0 || reduced == iterator.ndim() || strides[0] < strides[static_cast<std::size_t>(reduced)];
    std::int64_t width = is_along_rows ? inputs_ : outputs_;
    const std::int64_t height = is_along_rows ? outputs_ : inputs_;
    if (iterator.ndim() == 0) return;
    if (strides[is_along_rows ? 0 : static_cast<std::size_t>(reduced)] == 1) {
      constexpr std::int64_t long_row = 128;
      if (!is_along_rows)
        width /= outputs_at_once_ = outputs_at_once(iterator, offset);
      else if (width > long_row && iterator.ndim() == 1)
        width /= inputs_at_once;
    }
    set_block(width, height);
    std::int64_t inputs_of_threads = 1;  // how many inputs of one result are read at the same time
    std::int64_t outputs_of_block = 1;
    reduces_across_width_ = is_along_rows;
    (is_along_rows ? inputs_of_threads : outputs_of_block) *= block_width_;
    const auto inputs_each = [&] { return divided_up(inputs_, inputs_of_threads); };
    constexpr std::int64_t many_inputs = 256;
    const bool splits_across_height = inputs_each() >= std::min<std::int64_t>(block_height_ * 16, many_inputs);
    (splits_across_height ? inputs_of_threads : outputs_of_block) *= block_height_;
    blocks_ = divided_up(outputs_ / outputs_at_once_, outputs_of_block);

    const cuda_properties device = claimed_cuda.load(std::memory_order_relaxed);
    const std::int64_t resident = device.multiprocessors * (device.threads_per_multiprocessor / (block_width_ * block_height_));
    if (!splits_across_height || inputs_each() < many_inputs || blocks_ > resident) return;
    constexpr std::int64_t few_inputs = 16;
    blocks_of_result_ = std::max(std::min(divided_up(resident, blocks_), divided_up(inputs_each(), few_inputs)),
                                 divided_up(inputs_each(), many_inputs));
  }

  [[nodiscard]] partial_results partial() const noexcept {
    if (blocks_of_result_ <= 1) return {};
    const std::int64_t for_each_result = reduces_across_width_ ? 1 : block_width_ * outputs_at_once_;
    return {element_bytes_ * outputs_ * blocks_of_result_ * for_each_result, static_cast<std::int64_t>(sizeof(int)) * blocks_};
  }

 private:
  static constexpr std::int64_t inputs_at_once = 4;

  [[nodiscard]] static std::int64_t divided_up(std::int64_t value, std::int64_t by) noexcept { return (value + by - 1) / by; }

  /// How many results beside each other a thread computes.
  [[nodiscard]] static std::int64_t outputs_at_once(const at::TensorIterator& iterator, std::int64_t offset) {
    std::int64_t count = 4;
    const auto limit = [&](std::int64_t number) {
      while (number % count != 0) count /= 2;
    };
    const auto innermost = static_cast<std::size_t>(iterator.num_reduce_dims());
    limit(offset);
    limit(iterator.shape()[innermost]);
    const at::IntArrayRef strides = iterator.strides(1);
    for (std::size_t dimension = 0; dimension < strides.size(); ++dimension) {
      if (dimension != innermost) limit(strides[dimension]);
    }
    return count;
  }

  void set_block(std::int64_t width, std::int64_t height) noexcept {
    const std::int64_t most = 512 / outputs_at_once_;
    const auto power_of_two = [&](std::int64_t value) {
      return value < most
                 ? static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 1))))
                 : most;
    };
    constexpr std::int64_t warp = 32;
    block_width_ = std::min(power_of_two(width), warp);
    block_height_ = std::min(power_of_two(height), most / block_width_);
    block_width_ = std::min(power_of_two(width), most / block_height_);
  }

  std::int64_t outputs_;
  std::int64_t inputs_;  ///< of each result
  std::int64_t element_bytes_;
  std::int64_t outputs_at_once_ = 1;
  std::int64_t block_width_ = 1;
  std::int64_t block_height_ = 1;
  std::int64_t blocks_ = 1;  ///< not counting those that share results
  std::int64_t blocks_of_result_ = 1;
  bool reduces_across_width_ = true;
};

/// The dimensions that are reduced; all if none are given.
[[nodiscard]] inline std::vector<bool> reduced_dimensions(const at::Tensor& input, const std::vector<std::int64_t>& dimensions) {
  std::vector<bool> is_reduced(static_cast<std::size_t>(input.dim()), dimensions.empty());
  if (input.dim() == 0) return is_reduced;
  for (const std::int64_t one : dimensions) is_reduced[static_cast<std::size_t>(at::maybe_wrap_dim(one, input.dim()))] = true;
  return is_reduced;
}

[[nodiscard]] inline partial_results partial_results_of(const at::Tensor& input, const std::vector<std::int64_t>& dimensions,
                                                        std::int64_t element_bytes) {
  if (input.numel() == 0) return {};
  const std::vector<bool> is_reduced = reduced_dimensions(input, dimensions);
  std::vector<std::int64_t> sizes = input.sizes().vec();
  std::vector<std::int64_t> strides(sizes.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t index = sizes.size(); index-- > 0;) {
    if (is_reduced[index]) {
      sizes[index] = 1;
    } else {
      strides[index] = stride;
      stride *= sizes[index];
    }
  }
  at::TensorBase result = at::detail::empty_strided_meta(sizes, strides, at::kByte);
  const at::TensorBase elements = at::detail::empty_strided_meta(input.sizes(), input.strides(), at::kByte);
  const at::TensorIterator iterator = at::TensorIterator::reduce_op(result, elements);
  return reduction_layout{iterator, input.storage_offset(), element_bytes}.partial();
}

/// Creates and frees what the kernel holds, after its result.
inline void hold_partial_results(const at::Tensor& input, const std::vector<std::int64_t>& dimensions,
                                 std::int64_t element_bytes) {
  const partial_results partial = partial_results_of(input, dimensions, element_bytes);
  if (partial.bytes == 0) return;
  const at::Tensor buffer = torch_call::scratch_bytes(partial.bytes, input);
  const at::Tensor counters = torch_call::scratch_bytes(partial.counter_bytes, input);
}

/// The bytes of a partial result; 0 if that is not known.
[[nodiscard]] inline std::int64_t partial_result_bytes(std::string_view name, const at::Tensor& input, at::ScalarType summed) {
  if (input.is_complex()) return 0;
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto accumulated = static_cast<std::int64_t>(c10::elementSize(accumulation_type(summed)));
  const auto own = static_cast<std::int64_t>(input.element_size());
  constexpr std::int64_t number_and_index = 16;
  if (is_one_of({"aten::sum", "aten::nansum", "aten::mean", "aten::prod", "aten::linalg_vector_norm", "aten::norm"}))
    return accumulated;
  if (is_one_of({"aten::var", "aten::std", "aten::var_mean", "aten::std_mean"})) return 4 * accumulated;
  if (is_one_of({"aten::aminmax"})) return 2 * own;
  return is_one_of({"aten::argmax", "aten::argmin"}) ? number_and_index : own;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
