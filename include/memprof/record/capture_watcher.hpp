#pragma once

#include <memprof/config.hpp>

namespace memprof::inline MEMPROF_ABI {

class trace;
struct profile;

namespace detail {

/// Looks on each capture of the process: how memprof's tests see that a trace tells all that its capture knows.
struct capture_watcher {
  trace* (*trace_for_capture)() noexcept;                            ///< for one that begins and keeps no trace
  const char* (*file_for_capture)() noexcept;                        ///< for one that writes no trace file; empty: none
  void (*compare)(const trace& kept, const profile& live) noexcept;  ///< hidden from the capture, under the registry's lock
};

inline constinit const capture_watcher* watcher = nullptr;

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
