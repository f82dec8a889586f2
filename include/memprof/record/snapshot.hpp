#pragma once

#include <memprof/config.hpp>

#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/segment_end.hpp>
#include <memprof/trace/event.hpp>

#include <atomic>
#include <cstdio>
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
namespace detail {

/// Warns, once, that there was no segment to end. Silent if no capture has ended: the program is then running unprofiled.
[[gnu::cold, gnu::noinline]] inline void warn_of_late_snapshot(std::string_view name) noexcept {
  static constinit std::atomic<bool> is_said{false};
  if (abi_1::process_registry.capture == nullptr || is_said.exchange(true, std::memory_order_relaxed)) return;
  const internal_guard hidden;
  std::fprintf(
      stderr,
      "memprof: snapshot '%.*s': its capture has ended, so there is no segment to end (a capture ends with the guard that "
      "begin_capture returns); this is said once\n",
      static_cast<int>(name.size()), name.data());
}

}  // namespace detail

inline namespace enabled {

/// Ends the current segment and begins the next. `name` is given to the stretch since the last snapshot, or since the capture
/// began; equal names stay separate segments.
///
/// Does nothing without a capture, so that an instrumented program also runs unprofiled; if a capture has ended, a line on stderr
/// says so once. Costs one event; the accounting is a pass over the operations and never walks the live blocks. For at most a
/// thousandth of the run's time, apart from its first 5 ms, it also reads how much memory the whole process holds.
inline void snapshot(std::string_view name) noexcept {
  if (!detail::record_segment_end(0, name)) detail::warn_of_late_snapshot(name);
}

/// Keeps what is live at this moment, under `name`: bytes and blocks of every memory space, and the largest blocks
/// (`profile::checkpoints`). Ends no segment. Does nothing without a capture.
///
/// Costs one event. The thread that empties the rings then looks at all live blocks, which takes about a millisecond per million.
inline void memory_checkpoint(std::string_view name) noexcept {
  (void)detail::record_moment(0, extend::event_kind::checkpoint, name);
}

}  // namespace enabled

#else
inline namespace disabled {

inline void snapshot(std::string_view) noexcept {}
inline void memory_checkpoint(std::string_view) noexcept {}

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
