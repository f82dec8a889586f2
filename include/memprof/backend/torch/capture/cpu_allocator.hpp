#pragma once

#include <memprof/backend/torch/capture/forwarding_allocator.hpp>
#include <memprof/backend/torch/capture/tensor_events.hpp>
#include <memprof/detail/process.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// Records the blocks of CPU tensors.
struct tensor_recorder {
  static void check(std::size_t) noexcept {}
  static void allocated(const void* address, std::size_t bytes) noexcept { record_tensor_allocation(address, bytes); }
  static void freeing(const void* address) noexcept { record_tensor_deallocation(address); }
};

using torch_cpu_allocator = forwarding_allocator<tensor_recorder>;

/// The process whose capture has tensors recorded through `torch_cpu_allocator`; 0: none has. Used by control calls only.
inline constinit std::atomic<std::int64_t> process_recording_tensors{0};

/// Throws `memprof::error` if tensors are already recorded, or if libtorch keeps its own allocator. A child after `fork` goes on
/// where its parent's capture recorded them.
inline void begin_recording_tensors() {
  const std::int64_t recording = process_recording_tensors.load(std::memory_order_relaxed);
  if (recording == 0 || recording == process_id()) check_no_tensors_are_recorded();
  torch_cpu_allocator::instance().begin();
  are_tensors_recorded.store(true, std::memory_order_relaxed);
  process_recording_tensors.store(process_id(), std::memory_order_relaxed);
}

inline void end_recording_tensors() noexcept {
  process_recording_tensors.store(0, std::memory_order_relaxed);
  are_tensors_recorded.store(false, std::memory_order_relaxed);
  torch_cpu_allocator::instance().end();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
