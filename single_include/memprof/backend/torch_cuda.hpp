#pragma once

#include <memprof/memprof.hpp>

/// @file
/// Captures of libtorch programs on CUDA: `memprof::begin_capture<memprof::torch_backend, memprof::torch_cuda_backend>()`.
///
/// Needs libtorch with CUDA, and the CUDA toolkit's headers; that is why `torch.hpp` does not include it. Written for 2.2 and
/// later, compiled with 2.13 alone.


#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/backend/torch/cuda_trace.hpp>
#include <memprof/backend/torch/version.hpp>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <string>
#endif

namespace memprof {

#if MEMPROF_ENABLED
namespace detail {

/// libtorch never lets go of a trace's listener, so there is one for the process, which is heard while a capture wants it.
struct cuda_trace_listener {
  cuda_trace trace;
  std::atomic<bool> is_recording{false};
  bool is_attached = false;  ///< used by control calls only
};

[[nodiscard]] inline cuda_trace_listener& process_cuda_trace_listener() {
  const nested_allocation hidden;
  static auto* const listener = new cuda_trace_listener;
  return *listener;
}

template <class Allocator>
concept has_trace = requires(Allocator& allocator) {
  allocator.attachAllocatorTraceTracker([](const c10::cuda::CUDACachingAllocator::TraceEntry&) {});
};

template <class Allocator>
void attach_cuda_trace(Allocator& allocator, cuda_trace_listener& listener) {
  static_assert(has_trace<Allocator>, "<memprof/backend/torch_cuda.hpp> needs libtorch 2.2 or later");
  if (!allocator.initialized()) {
    raise("begin_capture: CUDA is not in use yet, so there is no allocator to listen to; make a CUDA tensor first");
  }
  try {
    allocator.attachAllocatorTraceTracker([&listener](const c10::cuda::CUDACachingAllocator::TraceEntry& entry) {
      if (listener.is_recording.load(std::memory_order_relaxed)) listener.trace.record(entry);
    });
  } catch (const std::exception& refusal) {
    raise("begin_capture: this CUDA allocator has no trace (" + std::string{refusal.what()} +
          "); leave backend:cudaMallocAsync out of PYTORCH_CUDA_ALLOC_CONF, and no pluggable allocator in, or capture without "
          "torch_cuda_backend");
  }
}

}  // namespace detail

inline namespace enabled {

/// Counts the blocks of CUDA tensors in the spaces "cuda:0", ..., with what the caching allocator reserves of the device, and
/// until their streams are done with them in "cuda:0 active", .... All threads, all streams and private pools. What the allocator
/// has reserved when the capture begins counts as reserved in it. Attach it at a quiet point, where no other thread allocates.
///
/// Throws `memprof::error` if CUDA is not in use yet, or if the allocator has no trace. Cost: two events for each allocation and
/// each free, under the allocator's own lock.
class torch_cuda_backend {
 public:
  static constexpr std::string_view name = "torch_cuda";

  void attach(event_sink&) {
    detail::cuda_trace_listener& listener = detail::process_cuda_trace_listener();
    listener.trace.name_devices(static_cast<std::size_t>(c10::cuda::device_count()));
    if (!listener.is_attached) detail::attach_cuda_trace(*c10::cuda::CUDACachingAllocator::get(), listener);
    listener.is_attached = true;
    listener.trace.record_reserved(c10::cuda::CUDACachingAllocator::snapshot().segments);
    listener.is_recording.store(true, std::memory_order_relaxed);
  }
  void detach() noexcept { detail::process_cuda_trace_listener().is_recording.store(false, std::memory_order_relaxed); }
};

}  // namespace enabled
#else
inline namespace disabled {

class torch_cuda_backend {
 public:
  static constexpr std::string_view name = "torch_cuda";
  void attach(event_sink&) noexcept {}
  void detach() noexcept {}
};

}  // namespace disabled
#endif

}  // namespace memprof
