#pragma once

#include <memprof/memprof.hpp>

#include <memprof/backend/torch/block_sizes.hpp>
#include <memprof/backend/torch/torch_thread.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

/// @file
/// What the operators that `track_pytorch_ops` counts allocate and free themselves.

namespace memprof::detail {

/// One call of an operator, until it ends.
struct pytorch_operator_call {
  pytorch_operator_call* outer = nullptr;  ///< the call on the same thread within which this one was made
  std::int64_t self_bytes = 0;             ///< allocated less freed, without the calls within
};

/// The sizes of live blocks; null while no operators are counted.
inline constinit std::atomic<block_sizes*> counted_blocks{nullptr};

/// The one that is used whenever operators are counted. Never destroyed: tensors are freed until the process ends.
[[nodiscard]] inline block_sizes& process_block_sizes() {
  const nested_allocation hidden;
  static auto* const sizes = new block_sizes;
  return *sizes;
}

inline void count_allocation(torch_thread& self, const void* address, std::size_t bytes) noexcept {
  // Acquire, here and below, pairs with the release in `track_pytorch_ops`: the table is complete.
  block_sizes* const sizes = counted_blocks.load(std::memory_order_acquire);
  if (sizes == nullptr) [[likely]]
    return;
  sizes->insert(address, bytes);
  if (self.call != nullptr) self.call->self_bytes += static_cast<std::int64_t>(bytes);
}

inline void count_deallocation(torch_thread& self, const void* address) noexcept {
  block_sizes* const sizes = counted_blocks.load(std::memory_order_acquire);
  if (sizes == nullptr) [[likely]]
    return;
  const std::size_t bytes = sizes->take(address);
  if (self.call != nullptr) self.call->self_bytes -= static_cast<std::int64_t>(bytes);
}

}  // namespace memprof::detail
