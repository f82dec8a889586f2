#pragma once

#include <memprof/backend/torch/capture/forwarding_allocator.hpp>
#include <memprof/backend/torch/capture/tensor_events.hpp>

#include <atomic>
#include <cstddef>

namespace memprof::inline MEMPROF_ABI::detail {

/// Records the blocks of CPU tensors.
struct tensor_recorder {
  static void check(std::size_t) noexcept {}
  static void allocated(const void* address, std::size_t bytes) noexcept { record_tensor_allocation(address, bytes); }
  static void freeing(const void* address) noexcept { record_tensor_deallocation(address); }
};

using torch_cpu_allocator = forwarding_allocator<tensor_recorder>;

/// Throws `memprof::error` if tensors are already recorded, or if libtorch keeps its own allocator.
inline void begin_recording_tensors() {
  check_no_tensors_are_recorded();
  torch_cpu_allocator::instance().begin();
  are_tensors_recorded.store(true, std::memory_order_relaxed);
}

inline void end_recording_tensors() noexcept {
  are_tensors_recorded.store(false, std::memory_order_relaxed);
  torch_cpu_allocator::instance().end();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
