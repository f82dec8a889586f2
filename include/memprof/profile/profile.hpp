#pragma once

#include <memprof/ledger/live_set.hpp>
#include <memprof/ledger/tally.hpp>
#include <memprof/ledger/value_summary.hpp>
#include <memprof/profile/space_facets.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/requires_grad.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What a capture found out, as plain structs with integer bytes. Everything after the ledger (reports, files, analyses) is a
/// function of a `profile`. All byte counts are signed 64-bit; all times are nanoseconds since the capture began.
///
/// A struct's fields appear in JSON under the same names and in the same order (`profile/reflect.hpp`).

namespace memprof::inline MEMPROF_ABI {

/// The stretch between two snapshots: a phase of training.
struct segment {
  std::string name;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t number = -1;  ///< among all segments of the capture, from 0; -1: not known
  std::int64_t step = -1;    ///< in which round of the repeating names it was, from 0; -1: not known

  bool operator==(const segment&) const = default;
};

/// The straight line that fits a number best over the steps, by least squares.
struct growth_line {
  double per_step = 0;  ///< its slope: bytes a step; 0 if all segments were in one step
  /// How much of the variation the line explains, 0 to 1; 1 if there is none. It means little below three segments.
  double r_squared = 0;

  bool operator==(const growth_line&) const = default;
};

/// All segments of one name, whether they are kept in full or not.
struct named_segments {
  std::string name;
  bool stands_for_others = false;  ///< the row of all names beyond `capture_options::segment_names`
  std::int64_t count = 0;
  std::int64_t kept = 0;  ///< how many of them `profile::segments` has
  std::int64_t first_number = -1;
  std::int64_t last_number = -1;
  value_summary duration_ns;

  bool operator==(const named_segments&) const = default;
};

/// All segments of one name in one memory space. The numbers are those of `segment_usage`; their sums over all names are the
/// space's totals.
struct named_segments_usage {
  std::string segment;  ///< the name
  value_summary segment_peak;
  value_summary live_at_peak;  ///< bytes live at the segment's peak, those of earlier segments included
  value_summary allocations;
  value_summary deallocations;
  value_summary segment_change;
  value_summary cumulative_current;
  value_summary allocation_count;
  value_summary deallocation_count;
  growth_line growth;  ///< of `cumulative_current`: how a leak shows

  bool operator==(const named_segments_usage&) const = default;
};

/// One memory space within one segment.
struct segment_usage {
  std::string segment;
  std::int64_t segment_peak = 0;        ///< greatest (live - live at the segment's start), at least 0
  std::int64_t allocations = 0;         ///< bytes allocated
  std::int64_t deallocations = 0;       ///< bytes freed
  std::int64_t segment_change = 0;      ///< allocations - deallocations
  std::int64_t cumulative_peak = 0;     ///< greatest live bytes from the capture's begin to this segment's end
  std::int64_t cumulative_current = 0;  ///< live bytes at this segment's end
  std::int64_t allocation_count = 0;
  std::int64_t deallocation_count = 0;
  std::int64_t peak_time_ns = 0;  ///< when `segment_peak` was first reached
  std::string peak_operation;     ///< path of the operation that reached it, empty if none was open
  live_set live_at_peak;

  bool operator==(const segment_usage&) const = default;
};

/// A stretch of a timeline, from its first event to the next stretch: `peak` is the greatest and `current` the last value of live
/// bytes within it.
struct timeline_point {
  std::int64_t time_ns = 0;  ///< of its first event
  std::int64_t peak = 0;
  std::int64_t current = 0;

  bool operator==(const timeline_point&) const = default;
};

/// Live bytes over time. Every point covers the same number of events (the last one perhaps fewer), so no maximum is lost.
struct memory_timeline {
  std::int64_t events_per_point = 1;
  std::vector<timeline_point> points;

  bool operator==(const memory_timeline&) const = default;
};

/// What in a space's events was unusual. None of it is fatal.
struct space_anomalies {
  event_tally unmatched_frees;        ///< of blocks allocated before the capture or never seen; bytes as given, if given
  event_tally replaced_allocations;   ///< a second allocation at a live address: the older block counts as deallocated
  event_tally mismatched_sizes;       ///< frees with another size than was allocated; bytes: sum of the differences
  event_tally cross_thread_frees;     ///< frees by another thread than allocated; usual in pipelines
  event_tally unknown_annotations;    ///< `annotate` of an address that was not live
  event_tally untracked_allocations;  ///< could not be kept because the profiler itself got no memory
  event_tally null_allocations;       ///< at a null address: they have failed and count for nothing else
  /// Blocks, live at the end, that begin within another live one; bytes: what they share. A pool's slab and its pieces, for
  /// example, when both were recorded in one space: then that memory is counted twice.
  event_tally overlapping_blocks;

  bool operator==(const space_anomalies&) const = default;
};

/// One memory space (`cpu`, `cuda:0`, `dram`, ...) over the whole capture.
struct space_profile {
  std::string name;
  std::int64_t cumulative_peak = 0;     ///< greatest live bytes of the capture, relative to its begin
  std::int64_t cumulative_current = 0;  ///< live bytes at the end
  std::int64_t allocations = 0;         ///< bytes allocated
  std::int64_t deallocations = 0;       ///< bytes freed
  std::int64_t allocation_count = 0;
  std::int64_t deallocation_count = 0;
  std::int64_t peak_segment = -1;  ///< index into `segments` of the one that holds the overall peak; -1 if there is none
  std::int64_t peak_time_ns = 0;
  std::string peak_operation;
  live_set live_at_peak;
  std::vector<owned_bytes> current_by_category;  ///< what `cumulative_current` consists of, greatest first
  std::int64_t capacity = 0;                     ///< bytes, of `capture_options::device`; 0: no limit
  bool capacity_is_per_core = false;             ///< that of each core: only blocks on cores are compared with it
  capacity_shortfall first_shortfall;
  std::vector<segment_usage> segments;                 ///< one for each of `profile::segments`, in the same order
  std::vector<named_segments_usage> segments_by_name;  ///< one for each of `profile::segments_by_name`, in the same order
  memory_timeline timeline;
  space_anomalies anomalies;
  core_profile cores;                 ///< what lay on single cores, if the space is that of cores
  reserved_profile reserved;          ///< what its allocator held of the device, if that keeps freed memory for later
  active_profile active;              ///< what streams use of it, freed blocks among it, if blocks were allocated on streams
  std::vector<stream_usage> streams;  ///< most reserved first; empty without streams
  std::vector<out_of_memory_failure> out_of_memory;  ///< the first 32 for which the device had no memory
  event_tally further_out_of_memory;                 ///< those after them
  bool stands_for_others = false;                    ///< the space of all that were asked for when there were too many
  space_facets facets;                               ///< what a trace tells beyond that, if it was asked

  bool operator==(const space_profile&) const = default;
};

/// A memory in which several spaces lie, as the host's: together they held at most `cumulative_peak` bytes at one moment, which
/// is not the sum of their peaks. Relative to the capture's begin, as in `space_profile`.
struct memory_profile {
  std::string name;
  std::int64_t cumulative_peak = 0;
  std::int64_t cumulative_current = 0;  ///< live bytes at the end
  std::int64_t peak_segment = -1;       ///< index into `profile::segments` of the one with the peak; -1: there is none
  std::int64_t peak_time_ns = 0;
  std::string peak_space;           ///< whose allocation reached the peak
  std::string peak_operation;       ///< path of the operation that reached it, empty if none was open
  std::vector<owned_bytes> spaces;  ///< what each space had live at the peak, greatest first: all that lie in the memory
  live_set live_at_peak;            ///< of all of them together

  bool operator==(const memory_profile&) const = default;
};

/// One run of an operation, as it was in one memory space. Delta and peak are inclusive, as in `operation_usage`.
struct operation_invocation {
  std::int64_t thread = -1;  ///< number of the thread; -1: there was no such run
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t delta = 0;
  std::int64_t peak = 0;

  bool operator==(const operation_invocation&) const = default;
};

/// What one operation did in one memory space. Inclusive values contain the operations within; self values do not, so a
/// table of self values sums to the total. Deltas and peaks count what the operation's own thread allocated and freed while
/// it was open.
struct operation_usage {
  std::string space;
  std::int64_t total_delta = 0;  ///< inclusive: allocated - freed, over all invocations
  std::int64_t self_delta = 0;
  std::int64_t max_delta = 0;  ///< inclusive: greatest delta of one finished invocation
  std::int64_t allocated = 0;  ///< inclusive, bytes
  std::int64_t freed = 0;      ///< inclusive, bytes, whoever had allocated them
  std::int64_t self_allocated = 0;
  std::int64_t self_freed = 0;
  std::int64_t allocation_count = 0;    ///< self
  std::int64_t deallocation_count = 0;  ///< self
  std::int64_t peak = 0;                ///< inclusive: greatest rise above the bytes at entry, in any invocation
  std::int64_t self_peak = 0;           ///< the same without the operations within
  std::int64_t live = 0;                ///< bytes allocated by this operation itself and live at the end
  /// Of the finished invocations whose delta and peak are not both 0: the first and the last to end, and the one with the
  /// greatest peak, of equal ones the first. A trace has all of them.
  operation_invocation first_invocation;
  operation_invocation last_invocation;
  operation_invocation largest_invocation;

  bool operator==(const operation_usage&) const = default;
};

/// One node of the operation tree. `path` joins the names from the outermost operation, as `append_operation` does.
struct operation_profile {
  std::string path;
  std::string name;
  std::int64_t parent = -1;  ///< index into `profile::operations`, -1 for an outermost operation
  std::int64_t invocations = 0;
  std::vector<operation_usage> usage;  ///< one for each space in which it did anything
  bool stands_for_others = false;      ///< of the operations within `parent` beyond `capture_options::operations`

  bool operator==(const operation_profile&) const = default;
};

/// One memory space at a checkpoint.
struct checkpoint_usage {
  std::string space;
  std::int64_t live_bytes = 0;
  std::int64_t live_blocks = 0;
  std::vector<live_block> largest_blocks;  ///< at most `capture_options::largest_blocks`, greatest first, described as known then

  bool operator==(const checkpoint_usage&) const = default;
};

/// What was live at one moment: `memory_checkpoint` asked for it, or the interval of a session was over.
struct checkpoint {
  std::string name;          ///< as `memory_checkpoint` said; empty: a periodic one
  std::int64_t number = 0;   ///< among all checkpoints of the capture, from 0
  std::int64_t time_ns = 0;  ///< since the capture began
  std::int64_t live_bytes = 0;
  std::int64_t live_blocks = 0;
  std::vector<checkpoint_usage> spaces;  ///< those that had had an event; their bytes and blocks sum to those above

  bool operator==(const checkpoint&) const = default;
};

/// What the profiler itself cost.
struct profiler_cost {
  std::int64_t events = 0;                          ///< recorded and applied
  std::int64_t drains = 0;                          ///< how often rings were emptied into the ledger
  std::int64_t memory_bytes = 0;                    ///< its own memory now: rings, ledger, names
  std::int64_t memory_bytes_at_million_events = 0;  ///< the same when a million events had been applied; 0: there were fewer
  double record_ns_per_event = 0;                   ///< measured when the capture began
  double drain_ns_per_event = 0;                    ///< measured over the capture

  bool operator==(const profiler_cost&) const = default;
};

/// What went wrong on the way from the program to the ledger.
struct event_anomalies {
  std::int64_t dropped_events = 0;     ///< by `overflow::drop`
  std::int64_t reentrant_events = 0;   ///< from a signal handler that interrupted the recording of another event
  std::int64_t rejected_events = 0;    ///< impossible values (kind, space, size of 2^63 or more), or no memory to keep them
  std::int64_t unbalanced_scopes = 0;  ///< operations whose begin or end is missing
  std::int64_t missing_events = 0;     ///< that the trace lacks, from which the profile was made
  std::int64_t too_deep_scopes = 0;    ///< operations within 256 others, whose events count as those of the 256th
  /// What was folded because there were too many different ones, as where a name has the number of the step in it. Sums and peaks
  /// are exact nevertheless.
  std::int64_t other_segments = 0;    ///< segments whose name is beyond `capture_options::segment_names`
  std::int64_t other_operations = 0;  ///< invocations of operations beyond `capture_options::operations`
  std::int64_t other_names = 0;       ///< uses of names that the process has no room for: beyond 65,536, or 8 MiB of text

  bool operator==(const event_anomalies&) const = default;
};

/// Where a profile's numbers come from, and what they cannot tell. As it is by default: events, from which every number follows
/// to the byte. A reader of a format that has only totals fills a profile in part, and says so here.
struct provenance {
  std::string format;         ///< what the numbers were read from, as "tracker_log"; empty: from events
  std::string file;           ///< its name; empty: none was named
  std::int64_t line = 0;      ///< of the file, counted from 1, where the numbers begin; 0: the file is not one of lines
  std::string section;        ///< what the file calls them; empty: nothing
  std::int64_t rounding = 1;  ///< bytes are rounded to multiples of about so many
  bool planned = false;       ///< by a compiler, for a program that it made: nothing was measured
  /// Names of fields that the source does not tell, of whatever struct: they are as by default.
  std::vector<std::string> absent;
  std::vector<std::string> remarks;  ///< what was missing or does not agree in the source, one sentence each

  /// Whether the source does not tell that field.
  [[nodiscard]] bool lacks(std::string_view field) const noexcept;

  bool operator==(const provenance&) const = default;
};

/// Everything a capture found out.
struct profile {
  std::string library_version;
  run_mode mode = run_mode::normal;
  std::string device;  ///< the name of `capture_options::device`; empty: none was described
  /// False if events were dropped, reentrant or untracked. Totals may then be too small, and live bytes too large as well: the
  /// frees of live blocks may be among the missing.
  bool exact = true;
  bool complete = false;           ///< whether the capture has ended
  std::int64_t begin_unix_ns = 0;  ///< wall clock at the capture's begin
  process_info process;
  std::int64_t duration_ns = 0;
  /// Those that are kept in full, in the order of time: all while there are few (`capture_options::kept_segments`), and then the
  /// newest, the first of each name, and those that hold an extreme.
  std::vector<segment> segments;
  std::vector<named_segments> segments_by_name;  ///< all segments, one row for each name, in the order of its first
  std::int64_t segment_count = 0;                ///< how many segments there were
  std::int64_t step_count = 0;                   ///< how many rounds of repeating names there were
  std::vector<space_profile> spaces;
  std::vector<memory_profile> memories;       ///< those in which more than one of the spaces lie
  std::vector<operation_profile> operations;  ///< parents before children
  /// In the order of time, at most 128: all while they are few, then every second, fourth, ... of them, and always the newest,
  /// the first of each name (of 32), and those with the most and the fewest live bytes.
  std::vector<checkpoint> checkpoints;
  std::int64_t checkpoint_count = 0;  ///< how many there were
  std::vector<fact_table> facts;      ///< what sources know that is not memory over time (`rows_of`)
  event_anomalies anomalies;
  profiler_cost cost;
  memprof::provenance provenance;  ///< which file the numbers are from, what is absent and how they were rounded

  /// The space of that name. Throws `memprof::error`, naming the spaces there are, if there is none. Of a profile that goes away
  /// at once, as `capture.profile().space("cpu")`, it is a copy.
  [[nodiscard]] const space_profile& space(std::string_view name) const&;
  [[nodiscard]] space_profile space(std::string_view name) &&;
  /// The space of that name, or a null pointer. Keep the profile as long as the pointer.
  [[nodiscard]] const space_profile* find_space(std::string_view name) const& noexcept;
  const space_profile* find_space(std::string_view name) && = delete;
  /// The operation of that path, or a null pointer; likewise.
  [[nodiscard]] const operation_profile* find_operation(std::string_view path) const& noexcept;
  const operation_profile* find_operation(std::string_view path) && = delete;

  bool operator==(const profile&) const = default;
};

}  // namespace memprof::inline MEMPROF_ABI

#if !MEMPROF_SEPARATE_COMPILATION
#include <memprof/profile/find_in_profile.hpp>
#endif
