#pragma once

#include <memprof/backend/torch/capture/block_sizes.hpp>
#include <memprof/backend/torch/capture/operator_table.hpp>
#include <memprof/backend/torch/capture/shared_by_two_threads.hpp>
#include <memprof/backend/torch/capture/torch_thread.hpp>
#include <memprof/record/recorder.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

/// @file
/// What the operators counted by `track_pytorch_ops` allocate and free themselves.

namespace memprof::inline MEMPROF_ABI::detail {

/// One call of an operator, shared by the call chain of the thread on which it began and by libtorch's context for it. The
/// context may be destroyed first, by another thread that ends the operator, and the address in the chain must not dangle.
struct pytorch_operator_call : shared_by_two_threads<pytorch_operator_call> {
  pytorch_operator_call* outer = nullptr;     ///< the enclosing call on the same thread
  std::atomic<std::int64_t> self_bytes{0};    ///< allocated minus freed, without nested calls; written only by that thread
  std::atomic<std::int64_t> device_bytes{0};  ///< the same on CUDA devices

  /// Called only by the thread of the call, so that no atomic addition is needed.
  void add(std::int64_t bytes) noexcept { add_to(self_bytes, bytes); }
  void add_on_device(std::int64_t bytes) noexcept { add_to(device_bytes, bytes); }
  [[nodiscard]] operator_memory memory() const noexcept {
    return {self_bytes.load(std::memory_order_relaxed), device_bytes.load(std::memory_order_relaxed)};
  }

 private:
  static void add_to(std::atomic<std::int64_t>& total, std::int64_t bytes) noexcept {
    total.store(total.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
};

/// Removes a call from anywhere in the thread's chain: operators need not end in the order in which they began.
inline void unlink_call(torch_thread& self, const pytorch_operator_call& ended) noexcept {
  pytorch_operator_call** place = &self.call;
  while (*place != nullptr && *place != &ended) place = &(*place)->outer;
  if (*place == nullptr) return;
  pytorch_operator_call* const found = *place;
  *place = found->outer;
  found->release();
}

/// The innermost running call, or null. Removes calls that other threads have ended.
[[nodiscard]] inline pytorch_operator_call* innermost_call(torch_thread& self) noexcept {
  while (self.call != nullptr && self.call->is_released_by_other()) {
    pytorch_operator_call* const ended = self.call;
    self.call = ended->outer;
    ended->release();
  }
  return self.call;
}

/// The sizes of live blocks; null while no operators are counted.
inline constinit std::atomic<block_sizes*> counted_blocks{nullptr};

/// The table used whenever operators are counted. Never destroyed: tensors are freed until the process ends.
[[nodiscard]] inline block_sizes& process_block_sizes() {
  const recording_suppressor hidden;
  static auto* const sizes = new block_sizes;
  return *sizes;
}

inline void count_allocation(torch_thread& self, const void* address, std::size_t bytes) noexcept {
  // Acquire, here and below, pairs with the release in `track_pytorch_ops`: the table is complete.
  block_sizes* const sizes = counted_blocks.load(std::memory_order_acquire);
  if (sizes == nullptr) [[likely]]
    return;
  sizes->insert(address, bytes);
  if (pytorch_operator_call* const call = innermost_call(self)) call->add(static_cast<std::int64_t>(bytes));
}

inline void count_deallocation(torch_thread& self, const void* address) noexcept {
  block_sizes* const sizes = counted_blocks.load(std::memory_order_acquire);
  if (sizes == nullptr) [[likely]]
    return;
  const std::size_t bytes = sizes->take(address);
  if (pytorch_operator_call* const call = innermost_call(self)) call->add(-static_cast<std::int64_t>(bytes));
}

/// A device's allocator reports the size of what it frees, so no table of blocks is needed.
inline void count_on_device(torch_thread& self, std::int64_t change) noexcept {
  if (pytorch_operator_call* const call = innermost_call(self)) call->add_on_device(change);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
