#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/profile/space_facets.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/requires_grad.hpp>
#include <memprof/trace/run_mode.hpp>

#include <array>
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

/// Bytes and blocks that belong to one owner: an operation's path (`append_operation`), empty for what was allocated outside
/// every operation, or a category's name.
struct owned_bytes {
  std::string owner;
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;

  bool operator==(const owned_bytes&) const = default;
};

/// One block that was live at a peak. `name`, `shape`, `dtype` and `requires_grad` are those of `annotate`, empty and unknown if
/// it was never called.
struct live_block {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::string operation;
  memprof::category category = category::other;
  std::string name;
  std::string shape;
  std::string dtype;
  memprof::requires_grad requires_grad = memprof::requires_grad::unknown;

  bool operator==(const live_block&) const = default;
};

/// What was live in one memory space at one moment. The rows of `by_operation`, with `remaining_*`, sum to `bytes`; so do
/// those of `by_category`. Rows are sorted by bytes, greatest first.
struct live_set {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::vector<owned_bytes> by_operation;
  std::int64_t remaining_bytes = 0;       ///< of operations beyond `capture_options::owners_per_segment`
  std::int64_t remaining_operations = 0;  ///< how many operations those are
  std::vector<owned_bytes> by_category;
  std::vector<live_block> largest_blocks;  ///< at most `capture_options::largest_blocks`

  bool operator==(const live_set&) const = default;
};

/// The stretch between two snapshots: a phase of training.
struct segment {
  std::string name;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t number = -1;  ///< among all segments of the capture, from 0; -1: not known
  std::int64_t step = -1;    ///< in which round of the repeating names it was, from 0; -1: not known

  bool operator==(const segment&) const = default;
};

/// One number over several segments, in the order of time. Their mean is `sum / count`, with the count of those segments.
struct value_summary {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t least = 0;
  std::int64_t greatest = 0;
  std::int64_t sum = 0;                ///< at most 2^63-1
  std::int64_t least_segment = -1;     ///< `segment::number` of the first with `least`
  std::int64_t greatest_segment = -1;  ///< the same of `greatest`

  bool operator==(const value_summary&) const = default;
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

/// How often something happened and how many bytes it concerned.
struct event_tally {
  std::int64_t count = 0;
  std::int64_t bytes = 0;

  bool operator==(const event_tally&) const = default;
};

/// The first allocation that made a space's live bytes exceed its capacity, all as it was known at that moment: categories and
/// names that `annotate` gives later are not in it. The run went on, so peaks are those without a limit.
///
/// If the capacity is that of each core, it is the first block that made those of one of its cores exceed it, and all bytes are
/// those on that core.
struct capacity_shortfall {
  std::int64_t requested = 0;  ///< bytes that were asked for; 0: the capacity was never exceeded
  /// Column and row, as in "3-1", of the fullest of the block's cores, of equal ones the first; empty if the capacity is not that
  /// of a core.
  std::string core;
  std::string operation;  ///< path of the operation that asked, empty if none was open
  memprof::category category = category::other;
  std::int64_t segment = -1;  ///< index into `profile::segments` of the one in which it was
  std::int64_t time_ns = 0;
  std::int64_t free = 0;       ///< bytes: the capacity less what was live
  std::int64_t shortfall = 0;  ///< bytes that were missing: requested - free
  bool holders_known = true;   ///< false: the profiler had no memory for owners and blocks of `held`, nor for `remedy`
  live_set held;               ///< who held the rest: what was live without what was asked for, with all its operations
  /// The least to free so that it would have fitted: the smallest owner that alone held `shortfall` bytes, or else the fewest
  /// owners that together did, largest first. Empty if all together did not, as more was asked for than the capacity.
  std::vector<owned_bytes> remedy;

  bool operator==(const capacity_shortfall&) const = default;
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

/// The greatest bytes on one core, of those with memory of their own. The three need not be of one core or one moment, so `total`
/// is at most the sum of the others.
struct core_peaks {
  std::int64_t circular_buffers = 0;
  std::int64_t buffers = 0;
  std::int64_t total = 0;    ///< peak of the sum of both on a core
  std::string busiest_core;  ///< column and row of the first core with that `total`, as in "3-4"; empty if it is 0

  bool operator==(const core_peaks&) const = default;
};

/// One of the rectangles of cores on which blocks were, and the peaks on its cores: of all blocks, whatever their rectangle.
struct core_range_peaks {
  std::string range;  ///< first and last core, as in "[0-0 - 7-7]"
  core_peaks peaks;

  bool operator==(const core_range_peaks&) const = default;
};

/// Peaks on cores over all segments of one name.
struct named_core_peaks {
  std::string segment;
  value_summary circular_buffers;
  value_summary buffers;
  value_summary total;

  bool operator==(const named_core_peaks&) const = default;
};

/// What lay on single cores. All empty for a space without blocks on cores (`event_sink::allocate_on_cores`); in the
/// other numbers of the space such a block counts with its bytes on all its cores together.
struct core_profile {
  core_peaks peaks;                                ///< over the whole capture
  std::vector<core_peaks> segments;                ///< one for each of `profile::segments`; blocks of earlier segments count too
  std::vector<core_range_peaks> ranges;            ///< over the whole capture, the greatest total first
  std::vector<named_core_peaks> segments_by_name;  ///< one for each of `profile::segments_by_name`

  bool operator==(const core_profile&) const = default;
};

/// What an allocator held of the device within one segment: at most, and at its end.
struct reserved_usage {
  std::int64_t peak = 0;
  std::int64_t current = 0;

  bool operator==(const reserved_usage&) const = default;
};

/// The same over all segments of one name.
struct named_reserved_usage {
  std::string segment;
  value_summary peak;
  value_summary current;

  bool operator==(const named_reserved_usage&) const = default;
};

/// What an allocator that keeps freed memory for later held of the device, in bytes since the capture began; what the program
/// allocated of it is in the other numbers of the space. All 0 and empty without such an allocator (`event_sink::reserve`).
struct reserved_profile {
  std::int64_t peak = 0;
  std::int64_t current = 0;                            ///< at the end
  std::vector<reserved_usage> segments;                ///< one for each of `profile::segments`
  std::vector<named_reserved_usage> segments_by_name;  ///< one for each of `profile::segments_by_name`
  event_tally unmatched_releases;                      ///< of ranges, or parts of them, taken before the capture or never seen
  event_tally replaced_reservations;  ///< of addresses that were held already: the older range counts as given back

  bool operator==(const reserved_profile&) const = default;
};

/// What streams used of a space within one segment: at most, and at its end.
struct active_usage {
  std::int64_t peak = 0;
  std::int64_t current = 0;

  bool operator==(const active_usage&) const = default;
};

/// The same over all segments of one name.
struct named_active_usage {
  std::string segment;
  value_summary peak;
  value_summary current;

  bool operator==(const named_active_usage&) const = default;
};

/// The bytes of blocks allocated on streams, until no stream uses them any more: live ones, and freed ones that work on a
/// stream may still use (`event_sink::request_deallocation`). PyTorch's `active_bytes`, in bytes that were asked for. All 0 and
/// empty if no block was allocated on a stream.
struct active_profile {
  std::int64_t peak = 0;
  std::int64_t current = 0;                          ///< at the end
  std::vector<active_usage> segments;                ///< one for each of `profile::segments`
  std::vector<named_active_usage> segments_by_name;  ///< one for each of `profile::segments_by_name`
  event_tally unmatched_completions;  ///< of blocks freed before the capture or never seen; bytes as given, if given
  event_tally missing_completions;    ///< of freed blocks whose address came again: they count as done by then

  bool operator==(const active_profile&) const = default;
};

/// What one stream of a device had of a space, from one pool of its allocator; bytes.
struct stream_usage {
  std::string stream;  ///< as the source names it; for CUDA "default", or the address of the `cudaStream_t`: "0x55d0c0a1b2c0"
  /// Empty: the allocator's own; "unknown": libtorch does not tell, as 2.6; else a private one, as that of a CUDA graph:
  /// "0:1".
  std::string pool;
  std::int64_t cumulative_peak = 0;     ///< greatest live bytes
  std::int64_t cumulative_current = 0;  ///< live bytes at the end
  std::int64_t allocation_count = 0;
  std::int64_t reserved_peak = 0;     ///< greatest bytes that the allocator held of the device
  std::int64_t reserved_current = 0;  ///< those at the end
  /// The last row may be that of all streams and pools beyond the first 64: `stream` is then "other streams".
  bool stands_for_others = false;

  bool operator==(const stream_usage&) const = default;
};

/// An allocation that failed because the device had no memory for it, all as it was known at that moment.
struct out_of_memory_failure {
  std::int64_t requested = 0;       ///< bytes, rounded up if the allocator rounds
  std::int64_t device_free = 0;     ///< bytes free on the device, as the allocator reported; -1: it did not
  std::int64_t live_bytes = 0;      ///< of the space, since the capture began
  std::int64_t reserved_bytes = 0;  ///< that the allocator held of the device; live ones are part of them
  std::string operation;            ///< path of the operation that asked, empty if none was open
  std::int64_t segment = -1;        ///< index into `profile::segments` of the one in which it was; -1: it is not kept
  std::int64_t time_ns = 0;
  std::int64_t segment_number = -1;  ///< `segment::number` of that one

  bool operator==(const out_of_memory_failure&) const = default;
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
  [[nodiscard]] space_profile space(std::string_view name) && { return space(name); }
  /// The space of that name, or a null pointer. Keep the profile as long as the pointer.
  [[nodiscard]] const space_profile* find_space(std::string_view name) const& noexcept;
  const space_profile* find_space(std::string_view name) && = delete;
  /// The operation of that path, or a null pointer; likewise.
  [[nodiscard]] const operation_profile* find_operation(std::string_view path) const& noexcept;
  const operation_profile* find_operation(std::string_view path) && = delete;

  bool operator==(const profile&) const = default;
};

inline bool provenance::lacks(std::string_view field) const noexcept {
  for (const std::string& name : absent) {
    if (std::string_view{name} == field) return true;
  }
  return false;
}

inline const space_profile* profile::find_space(std::string_view name) const& noexcept {
  for (const space_profile& candidate : spaces) {
    if (std::string_view{candidate.name} == name) return &candidate;
  }
  return nullptr;
}

inline const space_profile& profile::space(std::string_view name) const& {
  if (const space_profile* const found = find_space(name)) return *found;
  std::string text = "the profile has no memory space '" + std::string{name} + "'; it has";
  if (spaces.empty()) text += " none: no allocation was recorded";
  for (const space_profile& present : spaces) text += (&present == spaces.data() ? " '" : ", '") + present.name + "'";
  detail::raise(text);
}

inline const operation_profile* profile::find_operation(std::string_view path) const& noexcept {
  for (const operation_profile& candidate : operations) {
    if (std::string_view{candidate.path} == path) return &candidate;
  }
  return nullptr;
}

}  // namespace memprof::inline MEMPROF_ABI
