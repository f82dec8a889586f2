#pragma once

/// @file
/// Captures of libtorch programs on CUDA: `memprof::begin_capture<memprof::torch_backend, memprof::torch_cuda_backend>()`.
///
/// Needs libtorch with CUDA, and the CUDA toolkit's headers; that is why `torch.hpp` does not include it. docs/torch.md says with
/// which versions it was run.

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

/// libtorch never lets go of a trace's listener, so there is one for the process, which is heard while a capture wants it.
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

/// Brings CUDA into use, as the first CUDA tensor would.
template <class Context>
void initialize_cuda(Context& context) {
  if constexpr (requires { context.lazyInitDevice(c10::DeviceType::CUDA); }) {
    context.lazyInitDevice(c10::DeviceType::CUDA);
  } else {
    context.lazyInitCUDA();
  }
}

/// What an exception of libtorch says, without the stack that it adds.
[[nodiscard]] inline std::string words_of(const std::exception& fault) {
  const auto* const of_libtorch = dynamic_cast<const c10::Error*>(&fault);
  return of_libtorch == nullptr ? fault.what() : of_libtorch->what_without_backtrace();
}

/// Why there is no allocator to listen to; empty: there is one.
template <class Allocator>
[[nodiscard]] std::string prepare_cuda(Allocator& allocator) {
  if (c10::cuda::device_count() == 0) return "there is no CUDA device";
  try {
    if (!allocator.initialized()) initialize_cuda(at::globalContext());
  } catch (const std::exception& fault) {
    return "CUDA could not be brought into use (" + words_of(fault) + ")";
  }
  return allocator.initialized() ? "" : "CUDA is not in use, and libtorch did not bring it into use";
}

/// Lets the listener hear the allocator from now on, and tells it what is reserved already. Why it could not be done; empty: it
/// was.
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
             "); leave backend:cudaMallocAsync out of PYTORCH_CUDA_ALLOC_CONF, and other allocators out of the program";
    }
    listener.is_recording.store(true, std::memory_order_relaxed);
    return {};
  }
}

}  // namespace detail

inline namespace enabled {

/// Counts the blocks of CUDA tensors in the spaces "cuda:0", ..., with what the caching allocator reserves of the device, by
/// stream and pool, with what is freed while streams still use it (`space_profile::active`), and with each allocation that the
/// device had no memory for. All threads, all streams and private pools. What the allocator has reserved when the capture begins
/// counts as reserved in it. Attach it at a quiet point, where no other thread allocates.
///
/// Brings CUDA into use if it is not. Where that fails, and where the allocator has no trace (`backend:cudaMallocAsync`, one that
/// the program brought, libtorch 2.1), the capture goes on without CUDA: it says why on stderr, and in
/// the table of missing sources (`missing_source`). Cost: an event for each allocation and two for each free, under the
/// allocator's own lock.
class torch_cuda_backend {
 public:
  static constexpr std::string_view name = "torch_cuda";

  void attach(event_sink&, const capture_options&) {
    why_not_ = detail::listen_to(*c10::cuda::CUDACachingAllocator::get(), detail::process_cuda_trace_listener());
    if (!why_not_.empty()) std::fprintf(stderr, "memprof: CUDA is not captured: %s\n", why_not_.c_str());
  }
  void detach(event_sink&) noexcept {
    detail::process_cuda_trace_listener().is_recording.store(false, std::memory_order_relaxed);
  }

  void report_facts(event_sink& writer) const {
    if (!why_not_.empty()) writer.add_facts(to_table<missing_source>({{"CUDA", why_not_}}));
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
  void attach(event_sink&, const capture_options&) noexcept {}
  void detach(event_sink&) noexcept {}
  void report_facts(event_sink&) noexcept {}
};

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
