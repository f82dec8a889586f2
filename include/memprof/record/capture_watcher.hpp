#pragma once

#include <memprof/config.hpp>

namespace memprof::inline MEMPROF_ABI {

class trace;
struct profile;

namespace detail {

/// Observes every capture of the process: memprof's tests use it to check that a trace holds everything its capture knows.
struct capture_watcher {
  trace* (*trace_for_capture)() noexcept;      ///< for a new capture that keeps no trace
  const char* (*file_for_capture)() noexcept;  ///< for a new capture that writes no trace file; empty: none
  void (*compare)(const trace& memory_trace,
                  const profile& live) noexcept;  ///< hidden from the capture, under the registry's lock
};

inline constinit const capture_watcher* watcher = nullptr;

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
