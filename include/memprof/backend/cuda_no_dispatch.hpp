#pragma once

/// @file
/// NO_DISPATCH for programs that call CUDA's runtime themselves: `begin_capture<cuda_no_dispatch>()` runs them on a machine
/// without a GPU. The program is linked with a runtime that takes the place of CUDA's,
/// <memprof/backend/cuda_no_dispatch_runtime.hpp>; see `docs/cuda.md`. Needs no header and no library of CUDA.

#include <memprof/config.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/options.hpp>
#include <memprof/trace/run_mode.hpp>

#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/backend/cuda/simulated_runtime.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/record/no_dispatch_fault.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>

#include <atomic>
#endif

#if MEMPROF_ENABLED
/// Defined where the replacement is.
extern "C" [[gnu::weak]] void memprof_cuda_runtime_is_replaced();
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
inline namespace enabled {

/// A backend under which CUDA's runtime has devices without memory and without processors: `cudaMalloc` and the other calls that
/// allocate and free are recorded, with their sizes and lifetimes, in the spaces that `cuda_backend` uses; kernels are left out.
///
/// `capture_options::device` says how many devices there are (its spaces "cuda:0", "cuda:1" and so on; one if it names none), and
/// how much each can hold: then `cudaMalloc` fails, which is recorded, and `cudaMemGetInfo` says what is left. Outside such a
/// capture there is no device: calls return `cudaErrorNoDevice`, except those that free what was made in one.
///
/// It is a NO_DISPATCH capture throughout: `dispatching()` is false, and a `memory_resource` hands out addresses without memory.
///
/// `attach` throws `memprof::error` if the program has CUDA's own runtime, or if the system has no addresses to reserve.
class cuda_no_dispatch {
 public:
  static constexpr std::string_view name = "cuda_no_dispatch";
  static constexpr run_mode mode = run_mode::no_dispatch;

  void attach(extend::event_sink&, const capture_options& options) {
    if (&memprof_cuda_runtime_is_replaced == nullptr) {
      detail::raise(
          "cuda_no_dispatch: the program has CUDA's own runtime; include <memprof/backend/cuda_no_dispatch_runtime.hpp> in one "
          ".cpp of it, and link with nvcc -cudart none");
    }
    registry& shared = abi_1::process_registry;
    bool is_prepared = false;
    {
      const detail::internal_control_guard lock{shared};
      is_prepared = detail::prepare_no_dispatch(shared);
      // Relaxed, as in `start_capture`.
      if (is_prepared) shared.no_dispatch.store(shared.capture_count, std::memory_order_relaxed);
    }
    if (!is_prepared) {
      detail::raise(
          "cuda_no_dispatch: the system cannot reserve an address range; raise the limit on address space "
          "(`ulimit -v unlimited`)");
    }
    detail::cuda::process_runtime().begin(options.device);
  }
  void detach(extend::event_sink&) noexcept { detail::cuda::process_runtime().end(); }
  void report_facts(extend::event_sink&) const noexcept {}
};

}  // namespace enabled
#else
inline namespace disabled {

class cuda_no_dispatch {
 public:
  static constexpr std::string_view name = "cuda_no_dispatch";
  void attach(extend::event_sink&, const capture_options&) noexcept {}
  void detach(extend::event_sink&) noexcept {}
  void report_facts(extend::event_sink&) noexcept {}
};

}  // namespace disabled
#endif

static_assert(extend::backend<cuda_no_dispatch>);

}  // namespace memprof::inline MEMPROF_ABI
