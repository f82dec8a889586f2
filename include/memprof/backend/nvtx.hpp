#pragma once

/// @file
/// NVTX's ranges as operations: `memprof::begin_capture<memprof::nvtx_backend>()`. Needs no header of NVTX, which need not be
/// there.

#include <memprof/config.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/options.hpp>

#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/backend/nvtx/nvtx_injection.hpp>
#include <memprof/backend/nvtx/nvtx_interface.hpp>
#include <memprof/backend/nvtx/nvtx_memory.hpp>
#include <memprof/backend/nvtx/nvtx_ranges.hpp>
#include <memprof/record/recorder.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#endif

#if MEMPROF_ENABLED
// NVTX's own variables, by other names, so that NVTX's headers can be included in the same file. A null address: the program has
// no NVTX. NVTX reads them with the program's first call.
extern "C"
    [[gnu::weak]] memprof::detail::nvtx::initialize_function memprof_nvtx_injection __asm__("InitializeInjectionNvtx2_fnptr");
extern "C" [[gnu::weak]] memprof::detail::nvtx::initialize_extension_function memprof_nvtx_extension_injection __asm__(
    "InitializeInjectionNvtxExtension_fnptr");
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
namespace detail::nvtx {

/// Makes this library NVTX's tool, unless the program has another. Returns whether the program has NVTX.
inline bool inject() noexcept {
  if (&memprof_nvtx_injection == nullptr) return false;
  if (memprof_nvtx_injection != nullptr) return true;
  memprof_nvtx_injection = initialize;
  if (&memprof_nvtx_extension_injection != nullptr) memprof_nvtx_extension_injection = initialize_extension;
  return true;
}
/// As soon as a program starts that has a capture with `Backend`, since NVTX asks once.
template <class Backend>
inline const bool has_nvtx = inject();

/// Says, once, why ranges will be missing from a program that has NVTX.
inline void warn_of_other_tool() noexcept {
  if (is_initialized.load(std::memory_order_relaxed)) return;
  const bool is_in_environment = std::getenv("NVTX_INJECTION64_PATH") != nullptr;
  if (!is_in_environment && memprof_nvtx_injection == initialize) return;
  static constinit std::atomic<bool> is_said{false};
  if (is_said.exchange(true, std::memory_order_relaxed)) return;
  const internal_guard hidden;
  std::fprintf(stderr, "memprof: NVTX's ranges are not captured: %s\n",
               is_in_environment ? "NVTX_INJECTION64_PATH names another tool for them, such as Nsight Systems"
                                 : "the program was linked with another tool for them");
}

}  // namespace detail::nvtx

inline namespace enabled {

/// Counts the ranges of NVTX (nvtxRangePush and Pop, nvtxRangeStart and End, in any domain) as operations, like those of
/// `track_operation`; their names are the messages. A range by start and end is an operation of the thread that started it, and
/// may end on any. Ranges that the program began before the capture are not in it.
///
/// With `cuda_backend` in the same capture, what the program registers of its blocks by NVTX's memory extension
/// (nvtxMemHeapRegister, nvtxMemRegionsRegister, Resize, Name, Unregister, nvtxMemHeapReset) divides these: each region is a
/// block of its own while it is registered, with its name, and what is left is the "rest of the block". A change of the rest
/// counts as a free and an allocation.
///
/// Include this header in a file of the program, not only of a library that is loaded while it runs: NVTX asks for its tool once,
/// when the program calls it first. Where a profiler of NVIDIA's has them (NVTX_INJECTION64_PATH), a line on stderr says so. Cost
/// of a range: that of an operation, and a look-up of its name; outside a capture, some nanoseconds.
class nvtx_backend {
 public:
  static constexpr std::string_view name = "nvtx";

  /// A template, so that a program that only includes this header is left alone.
  template <class Options>
  void attach(extend::event_sink&, const Options&) noexcept {
    if (detail::nvtx::has_nvtx<nvtx_backend>) detail::nvtx::warn_of_other_tool();
    detail::nvtx::are_ranges_recorded.store(true, std::memory_order_relaxed);
  }
  void detach(extend::event_sink&) noexcept { detail::nvtx::are_ranges_recorded.store(false, std::memory_order_relaxed); }

  void report_facts(extend::event_sink&) const noexcept {}
};

}  // namespace enabled
#else
inline namespace disabled {

class nvtx_backend {
 public:
  static constexpr std::string_view name = "nvtx";
  void attach(extend::event_sink&, const capture_options&) noexcept {}
  void detach(extend::event_sink&) noexcept {}
  void report_facts(extend::event_sink&) noexcept {}
};

}  // namespace disabled
#endif

static_assert(extend::backend<nvtx_backend>);

}  // namespace memprof::inline MEMPROF_ABI
