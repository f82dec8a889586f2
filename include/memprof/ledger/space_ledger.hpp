#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/wide_integer.hpp>
#include <memprof/ledger/event_tally.hpp>
#include <memprof/ledger/facet/capacity.hpp>
#include <memprof/ledger/facet/cores.hpp>
#include <memprof/ledger/facet/out_of_memory.hpp>
#include <memprof/ledger/facet/reserved.hpp>
#include <memprof/ledger/facet/streams.hpp>
#include <memprof/ledger/freed_categories.hpp>
#include <memprof/ledger/ledger_options.hpp>
#include <memprof/ledger/linear_fit.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/ledger/shared_memory.hpp>
#include <memprof/ledger/step_ends.hpp>
#include <memprof/ledger/summaries_by_name.hpp>
#include <memprof/ledger/timeline.hpp>
#include <memprof/ledger/top_blocks.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_spaces;

/// Everything the ledger knows about one memory space.
///
/// Two facts keep events cheap. Frees are `allocated - change`, so only allocations are summed. And a peak is an ordinal: the
/// blocks live at it are those allocated up to that ordinal that are still live, and those freed since, of which the largest are
/// kept.
class space_ledger {
 public:
  /// A space that first occurs after the segments of `history`, when the next begins at `begin_stamp`.
  space_ledger(const ledger_options& options, const segment_history& history, std::uint64_t begin_stamp) noexcept;

  /// False if the system had no memory for it.
  [[nodiscard]] bool is_usable() const noexcept { return is_usable_; }

  /// Gives the space, or each of its cores, a capacity in bytes; 0: none. Call before its first event.
  void limit(std::int64_t capacity, bool is_per_core) noexcept;

  /// Sets the space's part of a shared memory; null if it has a memory to itself. The part outlives the space.
  void share(memory_share* part) noexcept { share_ = part; }
  [[nodiscard]] memory_share* shared() const noexcept { return share_; }
  /// Makes the space the active one in its shared memory: from now on it may raise the joint peak.
  void become_active() noexcept;

  // --- events -------------------------------------------------------------------------------------------------------

  /// Fills a new table entry: an allocation with the operation and category in `owner`; `here` is the operation's statistics.
  [[gnu::always_inline]] void add(block* entry, const event& recorded, operation_stats& stats, std::uint64_t owner,
                                  std::uint32_t thread, std::uint64_t stamp) noexcept;

  /// Removes a live block. The caller updates the timeline, by `mark_event` or by the allocation that replaces the block.
  [[gnu::always_inline]] void remove(const live_blocks::place& found) noexcept;

  /// Gives a live block another category and a name. Both have applied since its allocation, so the categories at the open
  /// segment's peak change too; finished segments keep theirs.
  void annotate(const event& recorded) noexcept;

  [[nodiscard, gnu::always_inline]] live_blocks::insertion insert(std::uint64_t address) noexcept {
    return live_blocks_.insert(address);
  }
  [[nodiscard, gnu::always_inline]] live_blocks::place find(std::uint64_t address) noexcept { return live_blocks_.find(address); }
  void prefetch(std::uint64_t address) const noexcept { live_blocks_.prefetch(address); }
  /// Whether the table has outgrown the caches near the core, so that prefetching pays.
  [[nodiscard]] bool is_large() const noexcept { return live_blocks_.bytes() > std::size_t{128} * 1024; }
  void mark_event(std::uint64_t stamp) noexcept { line_.add(live_, stamp); }

  /// Whether the totals have room for this many more bytes; false for impossible sizes as well.
  [[nodiscard]] bool has_room_for(std::uint64_t bytes) const noexcept { return bytes <= static_cast<std::uint64_t>(room_); }

  /// Where threads outside any operation count; no result shows it. Its sums stay in range, because those of the space do.
  [[nodiscard]] scope_usage& outside_operations() noexcept { return outside_; }

  /// Increases whenever statistics may have moved in memory: references to them are valid while it is unchanged.
  [[nodiscard]] std::uint64_t stats_generation() const noexcept { return stats_generation_; }

  /// Checks whether a block on cores, just added here and to `cores()`, is the first to exceed the capacity of a core. Costs a
  /// step for each of its cores until one has.
  void check_cores(std::uint64_t address, const core_range& cores, std::uint64_t stamp) noexcept;

  /// The usage of each core, in addition to the space's totals.
  [[nodiscard]] core_ledger& cores() noexcept { return cores_; }
  [[nodiscard]] const core_ledger& cores() const noexcept { return cores_; }
  /// What an allocator has reserved for the whole space, in addition to the space's totals.
  [[nodiscard]] reserved_ledger& reserved() noexcept { return reserved_; }
  [[nodiscard]] const reserved_ledger& reserved() const noexcept { return reserved_; }
  /// Live and reserved bytes by stream and pool.
  [[nodiscard]] stream_ledger& streams() noexcept { return streams_; }
  [[nodiscard]] const stream_ledger& streams() const noexcept { return streams_; }
  /// What streams use, including freed blocks.
  [[nodiscard]] active_ledger& active() noexcept { return active_; }
  [[nodiscard]] const active_ledger& active() const noexcept { return active_; }
  /// The failed allocations.
  [[nodiscard]] out_of_memory_ledger& out_of_memory() noexcept { return out_of_memory_; }
  [[nodiscard]] const out_of_memory_ledger& out_of_memory() const noexcept { return out_of_memory_; }

  /// The statistics of an operation, created at its first event here; null if the system has no memory.
  [[nodiscard]] operation_stats* find_or_make_operation(std::uint32_t node) noexcept;

  // --- segments -----------------------------------------------------------------------------------------------------

  /// Adds the segments since the last one that ended here. Nothing has changed since then, so they are all alike. Call before the
  /// space changes and before it is read; `begin_stamp` is that of the open segment. Costs a pass over the names and over those
  /// of the segments that are kept. False if the system has no memory.
  [[nodiscard]] bool settle(const segment_history& history, std::uint64_t begin_stamp) noexcept;
  /// The cost of `settle` in steps of `ledger::limit_work`.
  [[nodiscard]] std::uint64_t steps_of_settling(const segment_history& history) const noexcept;
  /// Ends the segment last added to `history`; the space was settled before that. Costs a pass over the operations, however much
  /// is live. False if the system has no memory.
  bool end_segment(segment_history& history, std::uint64_t stamp) noexcept;

  /// The open segment, as if it ended now, without its owners.
  [[nodiscard]] segment_record open_segment() const noexcept;

  /// What each category has live.
  [[nodiscard]] std::array<category_at_peak, category_names.size()> live_by_category() const noexcept;

  /// Fills `rows` with what each operation had live at the open segment's peak, greatest first; tells `ends` what each has now.
  [[nodiscard]] bool collect_owners(page_array<owner_at_peak>& rows, step_ends* ends = nullptr) const noexcept;

  // --- queries for reports ------------------------------------------------------------------------------------------

  /// Number of ended segments, which is the number of the open one.
  [[nodiscard]] std::uint64_t segment() const noexcept { return segment_; }
  /// One for each mark of the history, once settled; zeros before the space first occurred.
  [[nodiscard]] const page_array<segment_record>& segments() const noexcept { return segments_; }
  [[nodiscard]] const owner_at_peak* owners(const segment_record& record) const noexcept {
    return owners_.data() + record.first_owner;
  }
  /// All owners at the overall peak of the finished segments, and that segment's number; meaningful if the peak is not 0.
  [[nodiscard]] const page_array<owner_at_peak>& overall_owners() const noexcept { return overall_owners_; }
  [[nodiscard]] std::uint64_t overall_segment() const noexcept { return overall_segment_; }
  /// What an operation had at the overall peak of the finished segments, or at that of the open one, and has freed since.
  [[nodiscard]] category_sums freed_since_peak(std::size_t operation, bool is_of_open) const noexcept;
  [[nodiscard]] std::int64_t overall_peak() const noexcept { return overall_peak_; }
  /// The greatest live bytes, including the open segment.
  [[nodiscard]] std::int64_t greatest_live() const noexcept { return std::max(overall_peak_, peak_live_); }
  /// Sums over all segments of a name, in the order of `segment_number`.
  [[nodiscard]] const summaries_by_name<segment_number_count>& by_name() const noexcept { return by_name_; }
  /// Growth of the bytes live at the end of a name's segments.
  [[nodiscard]] linear_fit growth(const segment_history& history, std::size_t row) const noexcept {
    return (row < lines_.size() ? lines_[row] : exact_fit_sums{}).fit(history.rows()[row].steps);
  }
  /// What each owner had at the ends of the steps.
  [[nodiscard]] const step_ends& ends_of_steps() const noexcept { return ends_of_steps_; }
  /// The capacity set by `limit`; 0: none.
  [[nodiscard]] std::int64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool capacity_is_per_core() const noexcept { return capacity_is_per_core_; }
  [[nodiscard]] const shortfall_record& first_shortfall() const noexcept { return shortfall_; }
  [[nodiscard]] std::int64_t live() const noexcept { return live_; }
  [[nodiscard]] std::int64_t allocated() const noexcept { return room_at_begin_ - room_; }
  [[nodiscard]] std::uint64_t allocation_count() const noexcept { return ordinal_; }
  [[nodiscard]] const live_blocks& blocks() const noexcept { return live_blocks_; }
  [[nodiscard]] const timeline& line() const noexcept { return line_; }
  [[nodiscard]] std::size_t operation_count() const noexcept { return operations_.size(); }
  [[nodiscard]] const operation_stats& operation(std::size_t node) const noexcept { return operations_[node]; }
  [[nodiscard]] const ledger_options& options() const noexcept { return options_; }
  /// The largest freed blocks at a finished segment's peak; the live ones are `blocks()` allocated up to its `peak_ordinal`.
  [[nodiscard]] const top_blocks_of_segments& largest_of_finished() const noexcept { return largest_of_finished_; }
  /// The same for the open segment.
  void offer_freed_since_peak(top_blocks_view best) const noexcept {
    for (std::uint32_t index = 0; index < freed_count_; ++index) best.offer(freed_since_peak_[index]);
  }

  /// Bytes taken from the system, without the object itself.
  [[nodiscard]] std::size_t bytes() const noexcept;

  event_tally unmatched_frees;
  event_tally replaced_allocations;
  event_tally mismatched_sizes;
  event_tally cross_thread_frees;
  event_tally unknown_annotations;
  event_tally untracked_allocations;
  event_tally null_allocations;

 private:
  friend struct saved_spaces;

  /// How many segments of a name were added, and the sum of their distances from the first.
  struct added_segments {
    std::uint64_t count;
    int128 distances;
  };

  /// Makes the segments as many as the marks; new ones are zero. False if the system has no memory.
  [[nodiscard]] bool extend(const segment_history& history) noexcept;

  /// Drops the segments that the history has dropped. Requires that nothing has changed since the last segment ended.
  void compact(const segment_history& history) noexcept;

  /// Adds the segments of each name since its last one here, which was as they are.
  void repeat_names(const segment_history& history) noexcept;

  [[nodiscard]] bool repeat_segments(const segment_history& history) noexcept;

  /// Where to record what owners hold, if steps have ended since that was last recorded; nothing has changed since. Otherwise
  /// null.
  [[nodiscard]] step_ends* untold_step_ends(const segment_history& history) noexcept;

  void start_segment(std::uint64_t stamp) noexcept;

  /// Raises the joint peak: the spaces of the memory hold more than ever before.
  void raise_joint_peak(std::uint64_t stamp, std::uint32_t operation) noexcept;

  /// Records, once, what was requested and who held the rest: `asked` has just been added, as a new peak. Costs a pass over
  /// operations and live blocks.
  void note_shortfall(const block& asked) noexcept;

  /// The same for the first block, at `address`, that exceeds the capacity of a core, which is `core`. Costs a pass over the
  /// blocks on cores.
  void note_shortfall_on(const core_range& core, std::uint64_t address, std::uint64_t stamp) noexcept;

  /// Adds a segment to the sums for its name.
  [[nodiscard]] bool sum_up(segment_history& history, const segment_record& record) noexcept;

  /// Keeps a segment in which an allocation failed or exceeded the capacity; for a failure, only as far as there is room.
  void hold_with_failures(segment_history& history, std::uint64_t number) const noexcept;

  /// Keeps the greatest rows of `owner_scratch_` for the segment and sums the others.
  void keep_owners(segment_record& record) noexcept;

  /// Remembers a freed block that was live at the open segment's peak so far, and perhaps at the peaks of finished segments or
  /// the joint peak of a shared memory.
  void remember_freed(const block& freed) noexcept;

  // Members are ordered by how often an event touches them.
  std::int64_t live_ = 0;
  std::int64_t watch_above_ = 0;  ///< the lesser of the two peaks that live bytes may exceed: own and joint
  std::int64_t room_ = std::numeric_limits<std::int64_t>::max();  ///< by how much `allocated` may still grow
  std::uint64_t ordinal_ = 0;
  std::uint64_t epoch_ = 1;
  std::uint64_t watched_ordinal_ = 0;  ///< of the newer of the two peaks
  std::int64_t peak_live_ = 0;
  std::int64_t joint_peak_above_ = std::numeric_limits<std::int64_t>::max();  ///< while the space is active
  memory_share* share_ = nullptr;
  std::uint64_t peak_ordinal_ = 0;
  std::uint64_t peak_stamp_;
  std::int64_t peak_blocks_ = 0;
  std::uint32_t peak_operation_ = 0;
  std::uint32_t freed_count_ = 0;
  live_blocks live_blocks_;
  page_array<operation_stats> operations_;
  std::array<owner_stats, category_names.size()> categories_{};  ///< entry 0 is unused: "other" is the remainder
  ledger_options options_;
  std::uint64_t segment_;      ///< number of the open segment
  std::uint64_t compactions_;  ///< of the history, when `compact` last followed it
  timeline line_;
  page_array<block> freed_since_peak_;

  scope_usage outside_{};
  std::uint64_t stats_generation_ = 0;
  std::int64_t shortfall_above_ = std::numeric_limits<std::int64_t>::max();  ///< the capacity, until it is exceeded
  std::int64_t capacity_ = 0;
  std::int64_t core_shortfall_above_ = std::numeric_limits<std::int64_t>::max();  ///< the same for a core
  bool capacity_is_per_core_ = false;
  std::int64_t start_live_ = 0;
  std::int64_t start_room_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t room_at_begin_ = std::numeric_limits<std::int64_t>::max();
  std::uint64_t start_ordinal_ = 0;
  std::int64_t start_blocks_ = 0;

  page_array<segment_record> segments_;
  page_array<std::uint64_t> numbers_;  ///< of the segments, by position
  page_array<added_segments> added_;   ///< by row of the name
  page_array<owner_at_peak> owners_;
  page_array<owner_at_peak> owner_scratch_;
  page_array<owner_at_peak> overall_owners_;
  std::int64_t overall_peak_ = 0;
  std::uint64_t overall_segment_ = 0, overall_epoch_ = 0, overall_ordinal_ = 0;
  freed_categories freed_of_open_, freed_of_overall_;
  summaries_by_name<segment_number_count> by_name_;
  page_array<exact_fit_sums> lines_;  ///< by row
  step_ends ends_of_steps_;
  top_blocks_of_segments largest_of_finished_;
  shortfall_record shortfall_;
  bool is_usable_ = false;
  core_ledger cores_;
  reserved_ledger reserved_;
  stream_ledger streams_;
  active_ledger active_;
  out_of_memory_ledger out_of_memory_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#include <memprof/ledger/space_events.hpp>
#include <memprof/ledger/space_segments.hpp>
