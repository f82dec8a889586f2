#pragma once

#include <memprof/backend/torch/simulation/nominal_values.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

/// @file
/// How many elements of a mask are true, where the simulation does not know its data: half for a comparison of numbers, one in n
/// for a comparison with indices of n things (argmax, top-k, randint), p for uniform numbers below p. Sizes that depend on masks
/// are assumed from that.

namespace memprof::inline MEMPROF_ABI::detail {

/// The block of a tensor of which nothing is known; null for others.
[[nodiscard]] inline fake_block* unknown_block(const at::Tensor& tensor) {
  if (!tensor.defined() || !is_dense(tensor)) return nullptr;
  fake_block* const block = block_of(*tensor.storage().unsafeGetStorageImpl());
  return block != nullptr && !block->has_values.load(std::memory_order_relaxed) ? block : nullptr;
}

/// The share of elements that are not zero, of a mask or integers that are known; none of others, or of many.
[[nodiscard]] inline std::optional<double> counted_share(const at::Tensor& tensor) {
  constexpr std::int64_t most_counted = 1 << 20;
  if (!tensor.defined() || !c10::isIntegralType(tensor.scalar_type(), true) || tensor.numel() > most_counted) return {};
  if (!is_dense(tensor) || !has_values(tensor) || !tensor.is_contiguous()) return {};
  stand_ins replaced;
  const at::Tensor memory = replaced.stand_in_of(tensor, false);
  const auto elements = static_cast<std::size_t>(memory.numel());
  if (elements == 0 || memory.storage().data() == nullptr) return {};
  std::size_t found = 0;
  const bool is_counted = with_element_type(memory.scalar_type(), [&]<class Element>(Element) {
    const auto* const first = static_cast<const Element*>(memory.storage().data()) + memory.storage_offset();
    found = elements - static_cast<std::size_t>(std::count(first, first + elements, Element{}));
  });
  return is_counted ? std::optional{static_cast<double>(found) / static_cast<double>(elements)} : std::nullopt;
}

/// The share of a tensor's elements that are not zero; none if nothing speaks for one.
[[nodiscard]] inline std::optional<double> likely_share(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.is_meta()) {  // a view within a shape function
    const double share = this_simulating_thread.mask_share;
    return std::isnan(share) ? std::nullopt : std::optional{share};
  }
  const fake_block* const block = unknown_block(tensor);
  if (block == nullptr) return std::nullopt;
  const double share = block->share.load(std::memory_order_relaxed);
  return std::isnan(share) ? std::nullopt : std::optional{share};
}

/// Sets what the program says of a mask.
inline void assume_share(const at::Tensor& mask, double share) {
  fake_block* const block = unknown_block(mask);
  if (block == nullptr) return;
  block->share.store(share, std::memory_order_relaxed);
  block->is_share_said.store(true, std::memory_order_relaxed);
}
/// Whether the program has said it.
[[nodiscard]] inline bool is_share_said(const at::Tensor& mask) {
  if (mask.defined() && mask.is_meta()) return this_simulating_thread.is_mask_share_said;
  const fake_block* const block = unknown_block(mask);
  return block != nullptr && block->is_share_said.load(std::memory_order_relaxed);
}

/// Lets masks that a shape function reads have the share of one outside, until the end of the scope.
class [[nodiscard]] mask_share_scope {
 public:
  explicit mask_share_scope(const at::Tensor& mask) {
    this_simulating_thread.mask_share = likely_share(mask).value_or(std::numeric_limits<double>::quiet_NaN());
    this_simulating_thread.is_mask_share_said = is_share_said(mask);
  }
  explicit mask_share_scope(double known) { this_simulating_thread.mask_share = known; }
  mask_share_scope(const mask_share_scope&) = delete;
  mask_share_scope& operator=(const mask_share_scope&) = delete;
  ~mask_share_scope() {
    this_simulating_thread.mask_share = std::numeric_limits<double>::quiet_NaN();
    this_simulating_thread.is_mask_share_said = false;
  }
};

/// Of how many things the elements of an integer tensor are indices; 0: unknown.
[[nodiscard]] inline double choices_of(const at::Tensor& tensor) {
  const fake_block* const block = unknown_block(tensor);
  return block == nullptr ? 0 : static_cast<double>(block->choices.load(std::memory_order_relaxed));
}

/// The number of choices of numbers that are uniform between 0 and 1.
inline constexpr std::int64_t uniform_choices = -1;

}  // namespace memprof::inline MEMPROF_ABI::detail
