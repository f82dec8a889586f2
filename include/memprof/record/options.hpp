#pragma once

#include <memprof/record/growth_warning.hpp>
#include <memprof/record/stack_recorder.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// What a thread does when its ring is full.
enum class overflow : std::uint8_t {
  drain,  ///< the thread empties all rings into the ledger; nothing is lost
  drop,   ///< drops and counts the event, for threads that must not wait; `snapshot` and `end_capture` empty the rings
};

/// What a trace file does when events arrive faster than the disk takes them, for longer than its buffers last.
enum class slow_disk : std::uint8_t {
  leave_gap,  ///< omits events and records how many; the capture's own numbers stay exact
  wait,       ///< blocks the thread that empties the rings, and others whose rings are full
};

class trace;

/// How a capture records. The defaults lose nothing.
struct capture_options {
  run_mode mode = run_mode::normal;            ///< `no_dispatch` records allocations of memprof's resources without making them
  device_description device = {};              ///< limits the memory spaces it names; empty: no limits
  std::uint32_t ring_capacity = 1024;          ///< events of 32 bytes per thread; at least 2
  overflow overflow_policy = overflow::drain;  ///< with `drop`, the profile says `exact: false` once an event was dropped
  std::uint32_t timeline_points = 4096;        ///< per memory space; at least 2
  std::uint32_t largest_blocks = 10;           ///< listed for each peak; at most 4096
  std::uint32_t owners_per_segment = 32;       ///< operations listed for each segment's peak; the overall peak lists all
  std::uint32_t full_segments = 64;  ///< kept in full; at least 4: the newest, the first of each name, and those with an extreme
  std::uint32_t segment_names = 64;  ///< names whose segments get a summary row of their own; all others share one
  std::uint32_t operations = 4096;   ///< operations with a row of their own; the others within each operation share one
  /// Threads without an operation work for the one that is open on the thread that begins the capture. A guess, which the profile
  /// marks (`operation_usage::inferred`); `adopt_operation` is exact.
  bool infer_operations = false;
  memprof::trace* trace = nullptr;  ///< records all events, to be read after the capture has ended; must be empty
  /// File to which all events are written as they happen, so that it is readable whatever becomes of the process; empty: none.
  /// `%p` stands for the process id, `%r` for the rank, `%h` for the host. An existing trace with that name is renamed to end in
  /// `.old`. If the file cannot be created or written, the capture goes on and a line on stderr says why.
  std::string trace_file = {};
  slow_disk on_slow_disk = slow_disk::leave_gap;
  /// Whether a thread of the profiler's writes `trace_file`. If not, the threads that empty the rings do, and wait for the disk;
  /// a file that the program closes is opened again by its name.
  bool trace_thread = true;
  /// Bytes of the newest events that `trace` and `trace_file` each keep; 0: all, otherwise at least 65,536. The state before the
  /// first kept event comes on top, about 20 bytes per live block, so that profiles still describe the whole capture. The file
  /// always keeps at least half the limit, and takes 12 MiB or more on top while it is being written. With a limit below 1 MiB it
  /// may keep 1 MiB of events all the same: it is written in large pieces.
  std::uint64_t trace_limit = 0;
  /// Of which blocks of the C++ heap `trace` and `trace_file` say what code asked for them: docs/stacks.md. The program needs
  /// <memprof/backend/malloc.hpp> or new_delete.hpp. A stack takes some 0.3 us with libunwind, and 10 without.
  stack_capture stacks = stack_capture::off;
  /// Whether `trace` and `trace_file` have the uses of blocks: what `mark_use` is called with and, with a backend of libtorch,
  /// what operators get and return. For `memprof what-if --free-at-last-use`.
  bool uses = false;
  /// Warns while the program runs: once an operation has grown for that many steps (0: never), a line on stderr says so, once for
  /// each, at most an eighth of the steps later. A cache that is still filling up grows, too. `snapshot` decides, at little cost
  /// even in a long run.
  std::uint32_t warn_growth_after = 0;
  /// Called with each such warning, in the thread that called `snapshot`, which waits; it may call memprof.
  void (*on_growth)(const growth_warning& found) noexcept = nullptr;
};

}  // namespace memprof::inline MEMPROF_ABI
