#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/ledger/event_tally.hpp>
#include <memprof/ledger/linear_fit.hpp>
#include <memprof/ledger/live_set.hpp>
#include <memprof/ledger/value_summary.hpp>
#include <memprof/profile/operation_profile.hpp>
#include <memprof/profile/owner_growth.hpp>
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

/// @file
/// The result of a capture, as plain structs with integer bytes. Everything after the ledger (reports, files, analyses) is a
/// function of a `profile`. All byte counts are signed 64-bit; all times are nanoseconds since the capture began.
///
/// A struct's fields appear in JSON under the same names and in the same order (`profile/reflect.hpp`).

namespace memprof::inline MEMPROF_ABI {

/// The stretch between two snapshots: a phase of training.
struct segment {
  std::string name;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t number = -1;  ///< among all segments of the capture, from 0; -1: unknown
  std::int64_t step = -1;    ///< round of the repeating names, from 0; -1: unknown

  bool operator==(const segment&) const = default;
};

/// All segments of one name, whether or not they are kept in full.
struct named_segments {
  std::string name;
  bool stands_for_others = false;  ///< the row of all names beyond `capture_options::segment_names`
  std::int64_t count = 0;
  std::int64_t kept = 0;  ///< how many of them are in `profile::segments`
  std::int64_t first_number = -1;
  std::int64_t last_number = -1;
  value_summary duration_ns;

  bool operator==(const named_segments&) const = default;
};

/// All segments of one name in one memory space. The numbers are those of `segment_usage`; their sums over all names are the
/// space's totals.
struct segment_summary {
  std::string segment;  ///< the name
  value_summary segment_peak;
  value_summary peak_live_bytes;  ///< bytes live at the segment's peak, including blocks from earlier segments
  value_summary allocations;
  value_summary deallocations;
  value_summary segment_change;
  value_summary cumulative_current;
  value_summary allocation_count;
  value_summary deallocation_count;
  linear_fit growth;  ///< of `cumulative_current`; reveals a leak

  bool operator==(const segment_summary&) const = default;
};

/// One memory space in one segment.
struct segment_usage {
  std::string segment;
  std::int64_t segment_peak = 0;        ///< greatest (live - live at the segment's start), at least 0
  std::int64_t allocations = 0;         ///< bytes allocated
  std::int64_t deallocations = 0;       ///< bytes freed
  std::int64_t segment_change = 0;      ///< allocations - deallocations
  std::int64_t cumulative_peak = 0;     ///< greatest live bytes from the start of the capture to the end of this segment
  std::int64_t cumulative_current = 0;  ///< live bytes at the end of this segment
  std::int64_t allocation_count = 0;
  std::int64_t deallocation_count = 0;
  std::int64_t peak_time_ns = 0;  ///< when `segment_peak` was first reached
  std::string peak_operation;     ///< path of the operation that reached it, empty if none was open
  live_set live_at_peak;

  bool operator==(const segment_usage&) const = default;
};

/// A stretch of a timeline, from its first event to the next stretch: `peak` is the maximum and `current` the last value of live
/// bytes in it.
struct timeline_point {
  std::int64_t time_ns = 0;  ///< of its first event
  std::int64_t peak = 0;
  std::int64_t current = 0;

  bool operator==(const timeline_point&) const = default;
};

/// Live bytes over time. Every point covers the same number of events (the last may cover fewer), so no maximum is lost.
struct memory_timeline {
  std::int64_t events_per_point = 1;
  vector<timeline_point> points;

  bool operator==(const memory_timeline&) const = default;
};

/// Anomalies in a space's events. None is fatal.
struct space_anomalies {
  event_tally unmatched_frees;        ///< frees of blocks allocated before the capture or never seen; bytes as passed, if passed
  event_tally replaced_allocations;   ///< second allocations at a live address; the older block counts as deallocated
  event_tally mismatched_sizes;       ///< frees with a size other than the allocated one; bytes: sum of the differences
  event_tally cross_thread_frees;     ///< frees by a thread other than the allocating one; common in pipelines
  event_tally unknown_annotations;    ///< `annotate` calls for an address that was not live
  event_tally untracked_allocations;  ///< not tracked because the profiler itself got no memory
  event_tally null_allocations;       ///< at a null address; they failed and are counted nowhere else
  /// Blocks, live at the end, that begin inside another live one; bytes: the overlap. For example a pool's slab and its pieces,
  /// both recorded in one space, whose memory is then counted twice.
  event_tally overlapping_blocks;

  bool operator==(const space_anomalies&) const = default;
};

/// One memory space (`cpu`, `cuda:0`, `dram`, ...) over the whole capture.
struct space_profile {
  std::string name;
  std::int64_t cumulative_peak = 0;     ///< greatest live bytes of the capture, relative to its start
  std::int64_t cumulative_current = 0;  ///< live bytes at the end
  std::int64_t allocations = 0;         ///< bytes allocated
  std::int64_t deallocations = 0;       ///< bytes freed
  std::int64_t allocation_count = 0;
  std::int64_t deallocation_count = 0;
  std::int64_t peak_segment = -1;  ///< index into `segments` of the one with the overall peak; -1: none
  std::int64_t peak_time_ns = 0;
  std::string peak_operation;
  live_set live_at_peak;
  vector<owned_bytes> current_by_category;  ///< what `cumulative_current` consists of, greatest first
  vector<owner_growth> growing;             ///< who grows from step to step, the fastest first
  std::int64_t capacity = 0;                ///< bytes, from `capture_options::device`; 0: no limit
  bool capacity_is_per_core = false;        ///< applies to each core: only blocks on cores are compared with it
  capacity_shortfall first_shortfall;
  vector<segment_usage> segments;            ///< one for each of `profile::segments`, in the same order
  vector<segment_summary> segments_by_name;  ///< one for each of `profile::segments_by_name`, in the same order
  memory_timeline timeline;
  space_anomalies anomalies;
  core_profile cores;                           ///< usage of single cores, if the space belongs to cores
  reserved_profile reserved;                    ///< what its allocator reserved on the device, if it is a caching allocator
  active_profile active;                        ///< what streams use, including freed blocks, if blocks were allocated on streams
  vector<stream_usage> streams;                 ///< most reserved first; empty without streams
  vector<out_of_memory_failure> out_of_memory;  ///< the first 32 allocations for which the device had no memory
  event_tally further_out_of_memory;            ///< the failures after those
  bool stands_for_others = false;               ///< stands for all spaces beyond the limit
  space_facets facets;                          ///< additional results from a trace, if requested

  bool operator==(const space_profile&) const = default;
};

/// A memory that several spaces share, such as the host's: together they held at most `cumulative_peak` bytes at one moment,
/// which is not the sum of their peaks. Relative to the start of the capture, as in `space_profile`.
struct memory_profile {
  std::string name;
  std::int64_t cumulative_peak = 0;
  std::int64_t cumulative_current = 0;  ///< live bytes at the end
  std::int64_t peak_segment = -1;       ///< index into `profile::segments` of the one with the peak; -1: none
  std::int64_t peak_time_ns = 0;
  std::string peak_space;      ///< the space whose allocation reached the peak
  std::string peak_operation;  ///< path of the operation that reached it, empty if none was open
  vector<owned_bytes> spaces;  ///< live bytes of each of its spaces at the peak, greatest first
  live_set live_at_peak;       ///< of all its spaces together

  bool operator==(const memory_profile&) const = default;
};

/// One memory space at a checkpoint.
struct checkpoint_usage {
  std::string space;
  std::int64_t live_bytes = 0;
  std::int64_t live_blocks = 0;
  vector<live_block> largest_blocks;  ///< at most `capture_options::largest_blocks`, greatest first, as then described

  bool operator==(const checkpoint_usage&) const = default;
};

/// What was live at one moment, requested by `memory_checkpoint` or due to a session's interval.
struct checkpoint {
  std::string name;          ///< passed to `memory_checkpoint`; empty: a periodic checkpoint
  std::int64_t number = 0;   ///< among all checkpoints of the capture, from 0
  std::int64_t time_ns = 0;  ///< since the capture began
  std::int64_t live_bytes = 0;
  std::int64_t live_blocks = 0;
  vector<checkpoint_usage> spaces;  ///< those with events so far; their bytes and blocks sum to those above

  bool operator==(const checkpoint&) const = default;
};

/// The cost of the profiler itself.
struct profiler_cost {
  std::int64_t events = 0;                          ///< recorded and applied
  std::int64_t drains = 0;                          ///< how often rings were emptied into the ledger
  std::int64_t memory_bytes = 0;                    ///< its own memory now: rings, ledger, names
  std::int64_t memory_bytes_at_million_events = 0;  ///< the same after a million events; 0: there were fewer
  double record_ns_per_event = 0;                   ///< measured when the capture began
  double drain_ns_per_event = 0;                    ///< measured over the capture

  bool operator==(const profiler_cost&) const = default;
};

/// Events lost or altered between the program and the ledger.
struct event_anomalies {
  std::int64_t dropped_events = 0;     ///< by `overflow::drop`
  std::int64_t reentrant_events = 0;   ///< from a signal handler that interrupted the recording of another event
  std::int64_t rejected_events = 0;    ///< impossible values (kind, space, size of 2^63 or more), or no memory to keep them
  std::int64_t unbalanced_scopes = 0;  ///< operations whose begin or end is missing
  std::int64_t missing_events = 0;     ///< missing from the trace that the profile was made from
  std::int64_t too_deep_scopes = 0;    ///< operations nested inside 256 others; their events are counted for the 256th
  /// What was merged because there were too many different names, for example with the step number in them. Sums and peaks are
  /// exact nevertheless.
  std::int64_t other_segments = 0;    ///< segments with names beyond `capture_options::segment_names`
  std::int64_t other_operations = 0;  ///< invocations of operations beyond `capture_options::operations`
  std::int64_t other_names = 0;       ///< uses of names beyond the process's limit of 65,536, or 8 MiB of text
  /// Rows of `profile::facts` that the trace lacks, or that are beyond the limits (`max_fact_tables`, `max_fact_bytes`).
  std::int64_t missing_fact_rows = 0;

  bool operator==(const event_anomalies&) const = default;
};

/// Where a profile's numbers come from, and what they leave out. By default: events, from which every number follows exactly. A
/// reader of a format that has only totals fills a profile in part, and says so here.
struct provenance {
  std::string format;         ///< what the numbers were read from, such as "tracker_log"; empty: events
  std::string file;           ///< file name; empty: none given
  std::int64_t line = 0;      ///< where in the file the numbers begin, from 1; 0: the file has no lines
  std::string section;        ///< the file's name for them; empty: none
  std::int64_t rounding = 1;  ///< bytes are rounded to multiples of about this many
  bool planned = false;       ///< planned by a compiler for its output; nothing was measured
  bool assumed = false;       ///< they rest on values or sizes that a simulated run assumed: see the facts
  /// Names of fields, of any struct, that the source does not report; they keep their defaults.
  vector<std::string> absent;
  vector<std::string> remarks;  ///< what is missing or inconsistent in the source, one sentence each

  /// Whether the source does not report that field.
  [[nodiscard]] bool lacks(std::string_view field) const noexcept;

  bool operator==(const provenance&) const = default;
};

/// The complete result of a capture.
struct profile {
  std::string library_version;
  run_mode mode = run_mode::normal;
  std::string device;  ///< the name of `capture_options::device`; empty: none given
  /// False if events were dropped, reentrant or untracked: totals may then be too small, and live bytes also too large, because
  /// frees of live blocks may be among the missing events. Also false if several memory spaces share one row, in which blocks at
  /// equal addresses cannot be told apart, or if a simulated run had to assume values or sizes that decide. A profile is not
  /// exact unless its maker says so.
  bool exact = false;
  bool complete = false;           ///< whether the capture has ended
  std::int64_t begin_unix_ns = 0;  ///< wall clock at the start of the capture
  process_info process;
  std::int64_t duration_ns = 0;
  /// The segments kept in full, in chronological order: all while there are few (`capture_options::full_segments`), otherwise the
  /// newest, the first of each name, and those that hold an extreme.
  vector<segment> segments;
  vector<named_segments> segments_by_name;  ///< all segments, one row per name, in order of first occurrence
  std::int64_t segment_count = 0;           ///< number of segments in the capture
  std::int64_t step_count = 0;              ///< number of rounds of repeating names
  vector<space_profile> spaces;
  vector<memory_profile> memories;       ///< those shared by more than one space
  vector<operation_profile> operations;  ///< parents before children
  /// In chronological order, at most 128: all while there are few, then every second, fourth, and so on, and always the newest,
  /// the first of each name (up to 32 names), and those with the most and the fewest live bytes.
  vector<checkpoint> checkpoints;
  std::int64_t checkpoint_count = 0;  ///< number of checkpoints taken
  vector<fact_table> facts;           ///< what sources report besides memory over time (`rows_of`)
  event_anomalies anomalies;
  profiler_cost cost;
  memprof::provenance provenance;  ///< the file the numbers come from, what is absent, and the rounding

  /// The space with that name; throws `memprof::error`, listing the existing spaces, if there is none. On a temporary profile, as
  /// in `capture.profile().space("cpu")`, it returns a copy.
  [[nodiscard]] const space_profile& space(std::string_view name) const&;
  [[nodiscard]] space_profile space(std::string_view name) &&;
  /// The space with that name, or a null pointer. Valid as long as the profile.
  [[nodiscard]] const space_profile* find_space(std::string_view name) const& noexcept;
  const space_profile* find_space(std::string_view name) && = delete;
  /// The operation with that path, or a null pointer. Valid as long as the profile.
  [[nodiscard]] const operation_profile* find_operation(std::string_view path) const& noexcept;
  const operation_profile* find_operation(std::string_view path) && = delete;

  bool operator==(const profile&) const = default;
};

}  // namespace memprof::inline MEMPROF_ABI

#if !MEMPROF_SEPARATE_COMPILATION
#include <memprof/profile/find_in_profile.hpp>
#endif
