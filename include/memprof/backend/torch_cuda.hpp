#pragma once

/// @file
/// Captures of libtorch programs on CUDA: `memprof::begin_capture<memprof::torch_backend, memprof::torch_cuda_backend>()`.
///
/// Needs libtorch with CUDA and the headers of the CUDA toolkit, which is why `torch.hpp` does not include it. docs/torch.md
/// lists the tested versions.

#include <memprof/config.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/options.hpp>

#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/backend/torch/capture/cuda_trace.hpp>
#include <memprof/backend/torch/version.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/trace/fact_table.hpp>

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
namespace detail {

/// libtorch has no way to remove a trace listener, so the process has a single one, which records only during a capture.
struct cuda_trace_listener {
  cuda_trace trace;
  std::atomic<bool> is_recording{false};
  const void* attached_to = nullptr;  ///< the allocator that calls it; used by control calls only
};

[[nodiscard]] inline cuda_trace_listener& process_cuda_trace_listener() {
  const recording_suppressor hidden;
  static auto* const listener = new cuda_trace_listener;
  return *listener;
}

template <class Allocator>
concept has_trace = requires(Allocator& allocator) {
  allocator.attachAllocatorTraceTracker([](const c10::cuda::CUDACachingAllocator::TraceEntry&) {});
};

/// Initialises CUDA, as the first CUDA tensor would.
template <class Context>
void initialize_cuda(Context& context) {
  if constexpr (requires { context.lazyInitDevice(c10::DeviceType::CUDA); }) {
    context.lazyInitDevice(c10::DeviceType::CUDA);
  } else {
    context.lazyInitCUDA();
  }
}

/// The message of an exception, without the stack trace that libtorch adds.
[[nodiscard]] inline std::string words_of(const std::exception& fault) {
  const auto* const of_libtorch = dynamic_cast<const c10::Error*>(&fault);
  return of_libtorch == nullptr ? fault.what() : of_libtorch->what_without_backtrace();
}

/// Initialises CUDA if necessary. Returns why there is no allocator to listen to; empty on success.
template <class Allocator>
[[nodiscard]] std::string prepare_cuda(Allocator& allocator) {
  if (c10::cuda::device_count() == 0) return "there is no CUDA device";
  try {
    if (!allocator.initialized()) initialize_cuda(at::globalContext());
  } catch (const std::exception& fault) {
    return "CUDA failed to initialise (" + words_of(fault) + ")";
  }
  return allocator.initialized() ? "" : "libtorch did not initialise CUDA";
}

/// Attaches the listener to the allocator and records what is already reserved. Returns why that failed; empty on success.
template <class Allocator>
[[nodiscard]] std::string listen_to(Allocator& allocator, cuda_trace_listener& listener) {
  if constexpr (!has_trace<Allocator>) {
    return "the CUDA allocator of libtorch " TORCH_VERSION " has no trace; 2.2 and later have one";
  } else {
    using entry_of_trace = c10::cuda::CUDACachingAllocator::TraceEntry;
    std::string why_not = prepare_cuda(allocator);
    if (!why_not.empty()) return why_not;
    try {
      listener.trace.name_devices(static_cast<std::size_t>(c10::cuda::device_count()));
      if (listener.attached_to != &allocator) {
        allocator.attachAllocatorTraceTracker([&listener](const entry_of_trace& entry) {
          if (listener.is_recording.load(std::memory_order_relaxed)) listener.trace.record(entry);
        });
      }
      listener.attached_to = &allocator;
      listener.trace.template record_reserved<entry_of_trace>(allocator.snapshot().segments);
    } catch (const std::exception& refusal) {
      return "the allocator '" + allocator.name() + "' has no trace (" + words_of(refusal) +
             "); remove backend:cudaMallocAsync from PYTORCH_CUDA_ALLOC_CONF, and custom allocators from the program";
    }
    listener.is_recording.store(true, std::memory_order_relaxed);
    return {};
  }
}

}  // namespace detail

inline namespace enabled {

/// Counts the blocks of CUDA tensors in the spaces "cuda:0", ...: also what the caching allocator reserves, by stream and pool,
/// what is freed while streams still use it (`space_profile::active`), and each failed allocation. Covers all threads, streams
/// and private pools. Memory that the allocator has reserved before the capture counts as reserved in it. Attach at a quiet
/// point, when no other thread allocates.
///
/// Initialises CUDA if necessary. If that fails, or if the allocator has no trace (`backend:cudaMallocAsync`, a custom allocator,
/// libtorch 2.1), the capture goes on without CUDA and says why on stderr and in the table of missing sources (`missing_source`).
/// Cost: one event per allocation and two per free, under the allocator's own lock.
class torch_cuda_backend {
 public:
  static constexpr std::string_view name = "torch_cuda";

  void attach(extend::event_sink&, const capture_options&) {
    why_not_ = detail::listen_to(*c10::cuda::CUDACachingAllocator::get(), detail::process_cuda_trace_listener());
    if (!why_not_.empty()) std::fprintf(stderr, "memprof: CUDA is not captured: %s\n", why_not_.c_str());
  }
  void detach(extend::event_sink&) noexcept {
    detail::process_cuda_trace_listener().is_recording.store(false, std::memory_order_relaxed);
  }

  void report_facts(extend::event_sink& writer) const {
    if (!why_not_.empty()) writer.add_facts(extend::to_table<missing_source>({{"CUDA", why_not_}}));
  }

 private:
  std::string why_not_;  ///< empty: CUDA is captured
};

}  // namespace enabled
#else
inline namespace disabled {

class torch_cuda_backend {
 public:
  static constexpr std::string_view name = "torch_cuda";
  void attach(extend::event_sink&, const capture_options&) noexcept {}
  void detach(extend::event_sink&) noexcept {}
  void report_facts(extend::event_sink&) noexcept {}
};

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
