#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// What the whole process held at one of the moments at which a capture looked: when it began and ended, when a profile was made,
/// and at snapshots. Shows how much memory no source recorded. Bytes; -1: unknown.
struct process_memory {
  std::string moment;                     ///< why the row is kept: one of `process_moments`
  std::int64_t time_ns = 0;               ///< since the capture began
  std::int64_t resident_bytes = -1;       ///< in physical memory
  std::int64_t peak_resident_bytes = -1;  ///< the greatest since the process started, according to the system
  std::int64_t anonymous_bytes = -1;      ///< the part of `resident_bytes` that belongs to no file: heaps and stacks
  std::int64_t swapped_bytes = -1;        ///< swapped out
  std::int64_t heap_bytes = -1;           ///< in blocks of `malloc`, with its own overhead, resident or not
  std::int64_t free_heap_bytes = -1;      ///< kept by `malloc` for later blocks
  std::int64_t heap_before_bytes = -1;    ///< `heap_bytes` when the capture began
  /// Live blocks of the capture in the host's memory; 0 if they are simulated. -1 in a trace: as many as it has at this place.
  std::int64_t recorded_bytes = 0;
  std::int64_t unrecorded_heap_bytes = -1;  ///< blocks of `malloc` since the capture began that no source recorded, at least
  std::int64_t profiler_bytes = 0;          ///< the profiler's own
  std::int64_t records_operator_new = 0;    ///< 1: <memprof/backend/new_delete.hpp> is part of the program, or malloc.hpp
  std::int64_t records_malloc = 0;          ///< 1: <memprof/backend/malloc.hpp> is part of the program

  std::int64_t container_limit_bytes = -1;  ///< what its control group may take, when the capture began; -1 also: no limit

  bool operator==(const process_memory&) const = default;

  static constexpr std::string_view table = "process_memory";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("moment", row.moment);
    visit("time_ns", row.time_ns);
    visit("resident_bytes", row.resident_bytes);
    visit("peak_resident_bytes", row.peak_resident_bytes);
    visit("anonymous_bytes", row.anonymous_bytes);
    visit("swapped_bytes", row.swapped_bytes);
    visit("heap_bytes", row.heap_bytes);
    visit("free_heap_bytes", row.free_heap_bytes);
    visit("heap_before_bytes", row.heap_before_bytes);
    visit("recorded_bytes", row.recorded_bytes);
    visit("unrecorded_heap_bytes", row.unrecorded_heap_bytes);
    visit("profiler_bytes", row.profiler_bytes);
    visit("records_operator_new", row.records_operator_new);
    visit("records_malloc", row.records_malloc);
    visit("container_limit_bytes", row.container_limit_bytes);
  }
};

namespace detail {

/// The moments that are kept, in the order of the rows: the first and the last, and those with the most resident, recorded and
/// unrecorded bytes. None of the names needs memory beyond a string's own buffer.
inline constexpr std::string_view process_moments[] = {"first", "last", "most_resident", "most_recorded", "most_unrecorded"};

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
