#pragma once

#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// What a thread does whose ring is full.
enum class overflow : std::uint8_t {
  drain,  ///< empties all rings into the ledger itself: nothing is lost
  drop,   ///< drops the event and counts it: for threads that must not wait. `snapshot` and `end_capture` empty the rings
};

/// What a trace file does when events come faster than its disk takes them, for longer than its buffers last.
enum class slow_disk : std::uint8_t {
  leave_gap,  ///< leaves events out, and says how many; the capture's own numbers stay exact
  wait,       ///< lets the thread that empties the rings wait, and others whose rings are full
};

class trace;

/// How a capture records. The defaults lose nothing.
struct capture_options {
  run_mode mode = run_mode::normal;            ///< `no_dispatch` records allocations of memprof's resources without making them
  device_description device = {};              ///< what limits the memory spaces of its names; empty: nothing does
  std::uint32_t ring_capacity = 1024;          ///< events of 32 bytes per thread; at least 2
  overflow overflow_policy = overflow::drain;  ///< with `drop` the profile says `exact: false` once anything was dropped
  std::uint32_t timeline_points = 4096;        ///< per memory space; at least 2
  std::uint32_t largest_blocks = 10;           ///< listed for each peak; at most 4096
  std::uint32_t owners_per_segment = 32;       ///< operations listed for each segment's peak; the overall peak lists all
  std::uint32_t kept_segments = 64;  ///< kept in full, at least 4: the newest, the first of each name, those with an extreme
  std::uint32_t segment_names = 64;  ///< whose segments are summed up in a row of their own; all others share one
  std::uint32_t operations = 4096;   ///< operations with a row of their own; the others within each share one
  memprof::trace* trace = nullptr;   ///< gets everything that happens, to be read when the capture has ended; empty
  /// The file that gets everything that happens while it happens, so that it can be read whatever becomes of the process; empty:
  /// none. `%p` stands for the process id, `%r` for its rank, `%h` for its host. A trace that has the name gets `.old` behind it.
  /// If the file cannot be made or written, the capture goes on and a line on stderr says why.
  std::string trace_file = {};
  slow_disk on_slow_disk = slow_disk::leave_gap;
  /// Bytes of events that `trace` keeps, and those that `trace_file` keeps: the newest; 0: all, else at least 65,536. What was
  /// known before the first that is kept comes on top, some 20 bytes a live block, so that profiles stay those of the whole
  /// capture. The file has at least half of them, and takes 12 MiB and more beside them while it is written.
  std::uint64_t trace_limit = 0;
};

}  // namespace memprof::inline MEMPROF_ABI
