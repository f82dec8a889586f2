#pragma once

#include <memprof/backend/torch/simulation/fake_tensor.hpp>
#include <memprof/backend/torch/simulation/likely_shares.hpp>
#include <memprof/backend/torch/simulation/nominal_values.hpp>
#include <memprof/backend/torch/simulation/real_kernel.hpp>
#include <memprof/backend/torch/simulation/simulating_thread.hpp>
#include <memprof/backend/torch/simulation/skipped_draws.hpp>
#include <memprof/backend/torch/simulation/stand_ins.hpp>
#include <memprof/backend/torch/simulation/unknown_reads.hpp>
#include <memprof/backend/torch/simulation/values.hpp>
#include <memprof/trace/label.hpp>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>

/// @file
/// Reads that call no operator, but say so before: Python's `Tensor.tolist` and `Tensor.numpy`, which go to the memory of a
/// tensor on the CPU. Its elements become what `item()` would return. A pointer or an accessor says nothing.

namespace memprof::inline MEMPROF_ABI::detail {

/// The most memory that one read is given; beyond, it finds zeros.
inline constexpr std::size_t max_read_bytes = std::size_t{64} << 20;

/// Gives a block that no kernel has computed the nominal value of a tensor over it. What the program has written through a
/// pointer stays, as far as it is not zero.
inline void fill_for_read(fake_block& block, const at::Tensor& tensor) {
  const double number = nominal_element(tensor);
  if (number == 0 || block.data == nullptr || block.bytes > max_read_bytes) return;
  if (block.is_filled.exchange(true, std::memory_order_relaxed)) return;
  with_element_type(tensor.scalar_type(), [&]<class Element>(Element) {
    auto* const first = static_cast<Element*>(block.data);
    const auto is_zero = [](const Element& element) { return element == Element(0); };
    std::replace_if(first, first + block.bytes / sizeof(Element), is_zero, nominal_as<Element>(number));
  });
}

/// Whether a program that reads a tensor gets other numbers than in a real run.
[[nodiscard]] inline bool is_read_unknown(const at::Tensor& tensor) {
  if (runs_for_real() || !tensor.defined() || tensor.is_meta() || !is_dense(tensor)) return false;
  return !has_values(tensor) || is_drawn_after_skipped(tensor);
}

/// Whether a tensor has uniform numbers between 0 and 1 that were drawn after skipped ones.
[[nodiscard]] inline bool is_late_uniform_draw(const at::Tensor& tensor) {
  const fake_block* const block = block_of(*tensor.storage().unsafeGetStorageImpl());
  return block != nullptr && has_values(tensor) && block->choices.load(std::memory_order_relaxed) == uniform_choices;
}

/// Whether these are 0 to n - 1 in some order, as `randperm` draws them to shuffle data: too many for a coincidence.
[[nodiscard]] inline bool is_permutation(const at::Tensor& integers) {
  constexpr std::int64_t fewest = 8;  // of 8 numbers below 8 drawn one by one, 0.24 % are one
  if (integers.numel() < fewest) return false;
  return std::get<0>(integers.flatten().sort()).equal(at::arange(integers.numel(), integers.options()));
}

/// Whether a tensor has integers by which a program may decide otherwise than in a real run: see `list_late_read`. The order of
/// data is no such decision.
[[nodiscard]] inline bool has_late_sizes(const at::Tensor& tensor) {
  if (!is_drawn_after_skipped(tensor) || !c10::isIntegralType(tensor.scalar_type(), true)) return false;
  stand_ins replaced;
  const at::Tensor memory = replaced.stand_in_of(tensor, false);
  const kernel_scope scope{max_kernel_bytes, true};
  const c10::impl::ExcludeDispatchKeyGuard no_graph{c10::autograd_dispatch_keyset_with_ADInplaceOrView};
  const at::Tensor integers = memory.to(at::kLong);
  return integers.min().item<std::int64_t>() <= std::numeric_limits<std::int32_t>::max() && !is_permutation(integers);
}

/// Call before a program reads the memory of a CPU tensor in the function `called`. Throws `c10::Error` if it seems to wait for
/// what it reads: see `set_torch_read_limit`.
inline void read_memory(const at::Tensor& tensor, label called) {
  if (runs_for_real() || !tensor.defined() || !tensor.is_cpu() || !is_dense(tensor)) return;
  if (tensor.numel() == 0) return;
  if (has_values(tensor)) {
    if (has_late_sizes(tensor)) unknown_reads::instance().add(read_use::steers, called);
    return;
  }
  const c10::ScalarType dtype = tensor.scalar_type();
  unknown_reads::instance().add(c10::isIntegralType(dtype, true) ? read_use::steers : read_use::prints, called);
  fake_block* const block = block_of(*tensor.storage().unsafeGetStorageImpl());
  if (block == nullptr) return;  // of before the capture: the program's own data
  if (block->lacks_bytes.load(std::memory_order_relaxed)) return materialize(tensor);
  if (!has_bytes(*block, dtype)) fill_for_read(*block, tensor);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
