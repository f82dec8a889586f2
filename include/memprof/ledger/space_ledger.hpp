#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/detail/partition_point.hpp>
#include <memprof/detail/wide_integer.hpp>
#include <memprof/ledger/event_tally.hpp>
#include <memprof/ledger/facet/capacity.hpp>
#include <memprof/ledger/facet/cores.hpp>
#include <memprof/ledger/facet/out_of_memory.hpp>
#include <memprof/ledger/facet/reserved.hpp>
#include <memprof/ledger/facet/streams.hpp>
#include <memprof/ledger/linear_fit.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/ledger/shared_memory.hpp>
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

namespace memprof::inline MEMPROF_ABI {

/// How much detail a ledger keeps. Totals, peaks and live sets do not depend on it.
struct ledger_options {
  std::uint32_t timeline_points = 4096;   ///< per space, at least 2
  std::uint32_t largest_blocks = 10;      ///< kept for each peak
  std::uint32_t owners_per_segment = 32;  ///< operations kept for each segment's peak; the overall peak keeps all
  std::uint32_t full_segments = 64;       ///< kept in full; at least 4
  std::uint32_t segment_names = 64;       ///< names with a row of their own
  std::uint32_t operations = 4096;        ///< operations with a node of their own
};

}  // namespace memprof::inline MEMPROF_ABI

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_spaces;

/// The numbers summed over all segments of a name, in the order of a space's `by_name`.
enum class segment_number : std::uint8_t {
  segment_peak,
  live_at_peak,
  allocated,
  freed,
  change,
  live_at_end,
  allocation_count,
  deallocation_count
};
/// How many `segment_number` there are.
inline constexpr std::size_t segment_number_count = 8;

/// Everything the ledger knows about one memory space.
///
/// Two facts keep events cheap. Frees are `allocated - change`, so only allocations are summed. And a peak is an ordinal: the
/// blocks live at it are those allocated up to that ordinal that are still live, and those freed since, of which the largest are
/// kept.
class space_ledger {
 public:
  /// A space that first occurs after the segments of `history`, when the next begins at `begin_stamp`.
  space_ledger(const ledger_options& options, const segment_history& history, std::uint64_t begin_stamp) noexcept
      : peak_stamp_(begin_stamp),
        options_(options),
        segment_(history.count()),
        compactions_(history.compactions()),
        line_(options.timeline_points),
        largest_of_finished_(options.largest_blocks) {
    is_usable_ = operations_.resize(1) && freed_since_peak_.resize(options.largest_blocks) && extend(history);
  }

  /// False if the system had no memory for it.
  [[nodiscard]] bool is_usable() const noexcept { return is_usable_; }

  /// Gives the space, or each of its cores, a capacity in bytes; 0: none. Call before its first event.
  void limit(std::int64_t capacity, bool is_per_core) noexcept {
    if (capacity <= 0) return;
    capacity_ = capacity;
    capacity_is_per_core_ = is_per_core;
    (is_per_core ? core_shortfall_above_ : shortfall_above_) = capacity;
  }

  /// Sets the space's part of a shared memory; null if it has a memory to itself. The part outlives the space.
  void share(memory_share* part) noexcept { share_ = part; }
  [[nodiscard]] memory_share* shared() const noexcept { return share_; }
  /// Makes the space the active one in its shared memory: from now on it may raise the joint peak.
  void become_active() noexcept {
    share_->settle(ordinal_, live_, live_blocks_.size());
    joint_peak_above_ = share_->memory().room_of_active();
    watch_above_ = std::min(peak_live_, joint_peak_above_);
    watched_ordinal_ = std::max(peak_ordinal_, share_->ordinal());
  }

  // --- events -------------------------------------------------------------------------------------------------------

  /// Fills a new table entry: an allocation with the operation and category in `owner`; `here` is the operation's statistics.
  [[gnu::always_inline]] void add(block* entry, const event& recorded, operation_stats& stats, std::uint64_t owner,
                                  std::uint32_t thread, std::uint64_t stamp) noexcept {
    const auto bytes = static_cast<std::int64_t>(recorded.bytes);
    entry->bytes = recorded.bytes;
    entry->born_thread = ++ordinal_ << block::thread_bits | thread;
    entry->owner = owner;
    // "No operation" and "other" are the remainder of the sum, so they cost nothing here.
    if (entry->operation() != 0) stats.owned.change(epoch_, bytes, 1);
    if (entry->category() != 0) categories_[entry->category()].change(epoch_, bytes, 1);
    room_ -= bytes;
    live_ += bytes;
    if (live_ > watch_above_) {
      watch_above_ = live_;
      watched_ordinal_ = ordinal_;
      if (live_ > joint_peak_above_) [[unlikely]]
        raise_joint_peak(stamp, entry->operation());
      if (live_ > peak_live_) [[likely]] {
        peak_live_ = live_;
        peak_blocks_ = static_cast<std::int64_t>(live_blocks_.size());
        peak_ordinal_ = ordinal_;
        peak_stamp_ = stamp;
        peak_operation_ = entry->operation();
        freed_count_ = 0;
        ++epoch_;
        // Only a new peak can be the first to exceed the capacity: until then, every peak was within it.
        if (live_ > shortfall_above_) [[unlikely]]
          note_shortfall(*entry);
      }
    }
    line_.raise(live_);
    line_.add(live_, stamp);
  }

  /// Removes a live block. The caller updates the timeline, by `mark_event` or by the allocation that replaces the block.
  [[gnu::always_inline]] void remove(const live_blocks::place& found) noexcept {
    const auto bytes = static_cast<std::int64_t>(found->bytes);
    if (found->operation() != 0) operations_[found->operation()].owned.change(epoch_, -bytes, -1);
    if (found->category() != 0) categories_[found->category()].change(epoch_, -bytes, -1);
    live_ -= bytes;
    if (found->born() <= watched_ordinal_) remember_freed(*found.entry);
    live_blocks_.erase(found);
  }

  /// Gives a live block another category and a name. Both have applied since its allocation, so the categories at the open
  /// segment's peak change too; finished segments keep theirs.
  void annotate(const event& recorded) noexcept {
    block* const entry = live_blocks_.find(recorded.address).entry;
    if (entry == nullptr) {
      unknown_annotations.add(0);
      return;
    }
    const label description =
        recorded.label == 0 || recorded.label > block::max_annotation ? entry->annotation() : recorded.label;
    const std::uint32_t category = recorded.tag == 0 ? entry->category() : recorded.tag - 1U;
    if (category != entry->category()) {
      const auto bytes = static_cast<std::int64_t>(entry->bytes);
      const auto move = entry->born() <= peak_ordinal_ ? &owner_stats::correct : &owner_stats::change;
      if (entry->category() != 0) (categories_[entry->category()].*move)(epoch_, -bytes, -1);
      if (category != 0) (categories_[category].*move)(epoch_, bytes, 1);
    }
    entry->owner = block::owner_word(entry->operation(), category, description);
  }

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
  void check_cores(std::uint64_t address, const core_range& cores, std::uint64_t stamp) noexcept {
    if (core_shortfall_above_ == std::numeric_limits<std::int64_t>::max()) return;
    const core_maxima fullest = cores_.fullest(cores);
    if (fullest.peak.total <= core_shortfall_above_) return;
    note_shortfall_on({fullest.busiest_x, fullest.busiest_y, fullest.busiest_x, fullest.busiest_y}, address, stamp);
  }

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
  [[nodiscard]] operation_stats* find_or_make_operation(std::uint32_t node) noexcept {
    if (node >= operations_.size()) {
      if (!operations_.resize(node + 1)) return nullptr;
      ++stats_generation_;
    }
    return &operations_[node];
  }

  // --- segments -----------------------------------------------------------------------------------------------------

  /// Adds the segments since the last one that ended here. Nothing has changed since then, so they are all alike. Call before the
  /// space changes and before it is read; `begin_stamp` is that of the open segment. Costs a pass over the names and over those
  /// of the segments that are kept. False if the system has no memory.
  [[nodiscard]] bool settle(const segment_history& history, std::uint64_t begin_stamp) noexcept {
    if (segment_ == history.count() && compactions_ == history.compactions()) return true;
    compact(history);
    if (segment_ == history.count()) return true;
    repeat_names(history);
    if (!repeat_segments(history)) return false;
    segment_ = history.count();
    peak_stamp_ = begin_stamp;
    return true;
  }
  /// The cost of `settle` in steps of `ledger::limit_work`.
  [[nodiscard]] std::uint64_t steps_of_settling(const segment_history& history) const noexcept {
    if (segment_ == history.count()) return 0;
    return 32 * history.rows().size() + 64 * (history.marks().size() - history.position_of(segment_)) + operations_.size();
  }
  /// Ends the segment last added to `history`; the space was settled before that. Costs a pass over the operations, however much
  /// is live. False if the system has no memory.
  bool end_segment(segment_history& history, std::uint64_t stamp) noexcept {
    segment_record record = open_segment();
    const std::uint64_t number = segment_++;
    ++stats_generation_;  // so that each thread looks the space up again, and the ledger notices that it changes
    if (!collect_owners(owner_scratch_)) return false;
    if (record.live_at_peak > overall_peak_) {
      if (overall_peak_ != 0) history.unpin(overall_segment_);
      history.pin(number);
      overall_peak_ = record.live_at_peak;
      overall_segment_ = number;
      overall_owners_.clear();
      if (!overall_owners_.resize(owner_scratch_.size())) return false;
      for (std::size_t row = 0; row < owner_scratch_.size(); ++row) overall_owners_[row] = owner_scratch_[row];
    }
    record.cumulative_peak = overall_peak_;
    keep_owners(record);
    if (!extend(history)) return false;
    segments_.back() = record;
    for (std::uint32_t index = 0; index < freed_count_; ++index) {
      largest_of_finished_.offer(segments_.size() - 1, segments_.size(), freed_since_peak_[index]);
    }
    start_segment(stamp);
    hold_with_failures(history, number);
    const bool is_summed_up = sum_up(history, record);
    const bool is_reserved_kept = reserved_.end_segment(history);
    const bool is_active_kept = active_.end_segment(history);
    return cores_.end_segment(history) && is_reserved_kept && is_active_kept && is_summed_up;
  }

  /// The open segment, as if it ended now, without its owners.
  [[nodiscard]] segment_record open_segment() const noexcept {
    segment_record record{};
    record.live_at_start = start_live_;
    record.live_at_end = live_;
    record.live_at_peak = peak_live_;
    record.allocated = start_room_ - room_;
    record.allocation_count = static_cast<std::int64_t>(ordinal_ - start_ordinal_);
    record.blocks_at_start = start_blocks_;
    record.blocks_at_end = static_cast<std::int64_t>(live_blocks_.size());
    record.blocks_at_peak = peak_blocks_;
    record.peak_ordinal = peak_ordinal_;
    record.peak_stamp = peak_stamp_;
    record.peak_operation = peak_operation_;
    record.categories[0] = {peak_live_, peak_blocks_};
    for (std::size_t index = 1; index < categories_.size(); ++index) {
      record.categories[index] = {categories_[index].live_at_peak(epoch_), categories_[index].blocks_at_peak(epoch_)};
      record.categories[0].bytes -= record.categories[index].bytes;
      record.categories[0].blocks -= record.categories[index].blocks;
    }
    return record;
  }

  /// What each category has live.
  [[nodiscard]] std::array<category_at_peak, category_names.size()> live_by_category() const noexcept {
    std::array<category_at_peak, category_names.size()> rows{};
    rows[0] = {live_, static_cast<std::int64_t>(live_blocks_.size())};
    for (std::size_t index = 1; index < categories_.size(); ++index) {
      rows[index] = {categories_[index].live, categories_[index].blocks};
      rows[0].bytes -= rows[index].bytes;
      rows[0].blocks -= rows[index].blocks;
    }
    return rows;
  }

  /// Fills `rows` with what each operation had live at the open segment's peak, greatest first.
  [[nodiscard]] bool collect_owners(page_array<owner_at_peak>& rows) const noexcept {
    rows.clear();
    owner_at_peak outside{0, peak_live_, peak_blocks_};  // of any operation: the remainder
    for (std::size_t node = 1; node < operations_.size(); ++node) {
      const owner_stats& owned = operations_[node].owned;
      const std::int64_t blocks = owned.blocks_at_peak(epoch_);
      if (blocks == 0) continue;
      if (!rows.push_back({static_cast<std::uint32_t>(node), owned.live_at_peak(epoch_), blocks})) return false;
      outside.bytes -= rows.back().bytes;
      outside.blocks -= blocks;
    }
    if (outside.blocks != 0 && !rows.push_back(outside)) return false;
    sort_rows(rows.data(), rows.size(), holds_more);
    return true;
  }

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
  [[nodiscard]] std::int64_t overall_peak() const noexcept { return overall_peak_; }
  /// The greatest live bytes, including the open segment.
  [[nodiscard]] std::int64_t greatest_live() const noexcept { return std::max(overall_peak_, peak_live_); }
  /// Sums over all segments of a name, in the order of `segment_number`.
  [[nodiscard]] const summaries_by_name<segment_number_count>& by_name() const noexcept { return by_name_; }
  /// Growth of the bytes live at the end of a name's segments.
  [[nodiscard]] linear_fit growth(const segment_history& history, std::size_t row) const noexcept {
    return (row < lines_.size() ? lines_[row] : exact_fit_sums{}).fit(history.rows()[row].steps);
  }
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
  [[nodiscard]] std::size_t bytes() const noexcept {
    return live_blocks_.bytes() + line_.bytes() + operations_.bytes() + freed_since_peak_.bytes() + segments_.bytes() +
           numbers_.bytes() + added_.bytes() + owners_.bytes() + owner_scratch_.bytes() + overall_owners_.bytes() +
           largest_of_finished_.bytes() + shortfall_.bytes() + by_name_.bytes() + lines_.bytes() + cores_.bytes() +
           reserved_.bytes() + streams_.bytes() + active_.bytes() + out_of_memory_.bytes();
  }

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
  [[nodiscard]] bool extend(const segment_history& history) noexcept {
    const std::size_t known = numbers_.size();
    const std::size_t count = history.marks().size();
    if (!numbers_.resize(count)) return false;
    for (std::size_t position = known; position < count; ++position) numbers_[position] = history.marks()[position].number;
    return segments_.resize(count);
  }

  /// Drops the segments that the history has dropped. Requires that nothing has changed since the last segment ended.
  void compact(const segment_history& history) noexcept {
    if (compactions_ == history.compactions()) return;
    compactions_ = history.compactions();
    const auto is_kept = [&](std::size_t position) { return position < numbers_.size() && history.has_mark(numbers_[position]); };
    largest_of_finished_.compact(segments_.size(), is_kept, freed_since_peak_.data());
    keep_only(segments_, is_kept);
    std::size_t count = 0;
    for (segment_record& record : segments_) {
      for (std::uint32_t row = 0; row < record.owner_count; ++row) owners_[count + row] = owners_[record.first_owner + row];
      record.first_owner = count;
      count += record.owner_count;
    }
    owners_.truncate(count);
    reserved_.compact(is_kept);
    active_.compact(is_kept);
    cores_.compact(is_kept);
    std::size_t kept = 0;
    for (const std::uint64_t number : numbers_) {
      if (history.has_mark(number)) numbers_[kept++] = number;
    }
    numbers_.truncate(kept);
  }

  /// Adds the segments of each name since its last one here, which was as they are.
  void repeat_names(const segment_history& history) noexcept {
    for (std::size_t row = 0; row < added_.size(); ++row) {
      const exact_fit_steps& steps = history.rows()[row].steps;
      added_segments& added = added_[row];
      if (added.count == 0 || added.count == steps.count) continue;
      const std::uint64_t times = steps.count - added.count;
      lines_[row].repeat(by_name_.of(history, row)[static_cast<std::size_t>(segment_number::live_at_end)].last, times,
                         steps.sum - added.distances);
      by_name_.repeat(row, times);
      reserved_.repeat_name(row, times);
      active_.repeat_name(row, times);
      cores_.repeat_name(row, times);
      added = {steps.count, steps.sum};
    }
  }

  [[nodiscard]] bool repeat_segments(const segment_history& history) noexcept {
    const std::size_t first = history.position_of(segment_);
    const std::size_t last = history.marks().size();
    if (first == last) return true;
    if (!collect_owners(owner_scratch_) || !reserved_.repeat(first, last) || !active_.repeat(first, last) ||
        !cores_.repeat(first, last) || !extend(history)) {
      return false;
    }
    segment_record unchanged = open_segment();
    unchanged.cumulative_peak = overall_peak_;
    for (std::size_t position = first; position < last; ++position) {
      segments_[position] = unchanged;
      segments_[position].peak_stamp = history.marks()[position].begin_stamp;
      keep_owners(segments_[position]);
    }
    return true;
  }

  void start_segment(std::uint64_t stamp) noexcept {
    start_live_ = peak_live_ = live_;
    start_room_ = room_;
    start_ordinal_ = peak_ordinal_ = ordinal_;
    start_blocks_ = peak_blocks_ = static_cast<std::int64_t>(live_blocks_.size());
    peak_stamp_ = stamp;
    peak_operation_ = 0;
    freed_count_ = 0;
    ++epoch_;
    watch_above_ = std::min(peak_live_, joint_peak_above_);
    watched_ordinal_ = ordinal_;
  }

  /// Raises the joint peak: the spaces of the memory hold more than ever before.
  [[gnu::noinline]] void raise_joint_peak(std::uint64_t stamp, std::uint32_t operation) noexcept {
    joint_peak_above_ = live_;
    share_->memory().raise(live_, stamp, segment_, operation);
    share_->begin_peak(ordinal_, live_, live_blocks_.size());
  }

  /// Records, once, what was requested and who held the rest: `asked` has just been added, as a new peak. Costs a pass over
  /// operations and live blocks.
  [[gnu::cold, gnu::noinline]] void note_shortfall(const block& asked) noexcept {
    shortfall_above_ = std::numeric_limits<std::int64_t>::max();
    shortfall_.asked = asked;
    shortfall_.segment = segment_;
    shortfall_.moment = open_segment();
    shortfall_.has_holders = collect_owners(shortfall_.owners) && shortfall_.keep_largest(live_blocks_, options_.largest_blocks);
    if (!shortfall_.has_holders) shortfall_.forget_holders();
    shortfall_.take_out_asked();
  }

  /// The same for the first block, at `address`, that exceeds the capacity of a core, which is `core`. Costs a pass over the
  /// blocks on cores.
  [[gnu::cold, gnu::noinline]] void note_shortfall_on(const core_range& core, std::uint64_t address,
                                                      std::uint64_t stamp) noexcept {
    core_shortfall_above_ = std::numeric_limits<std::int64_t>::max();
    shortfall_.begin_on_core(core, segment_, stamp, options_.largest_blocks);
    std::uint32_t largest_count = 0;
    cores_.for_each_block(core, [&](block live) {
      // If an event that no `event_sink` sends has removed the block from the space, what remains on the core has no owner.
      const live_blocks::place known = live_blocks_.find(live.address);
      live.owner = known && known->born_thread == live.born_thread ? known->owner : 0;
      if (live.address == address) {
        shortfall_.asked = live;
      } else {
        shortfall_.add_holder(live, largest_count);
      }
    });
    shortfall_.end_on_core(largest_count);
  }

  /// Adds a segment to the sums for its name.
  [[nodiscard]] bool sum_up(segment_history& history, const segment_record& record) noexcept {
    const segment_mark ended = history.marks()[history.marks().size() - 1];
    const named_segment_row& row = history.rows()[ended.row];
    const std::int64_t change = record.live_at_end - record.live_at_start;
    const auto before = by_name_.of(history, ended.row);
    if (ended.row >= lines_.size() && !lines_.resize(ended.row + 1U)) return false;
    if (!by_name_.add(history, {record.live_at_peak - record.live_at_start, record.live_at_peak, record.allocated,
                                record.allocated - change, change, record.live_at_end, record.allocation_count,
                                record.allocation_count - (record.blocks_at_end - record.blocks_at_start)})) {
      return false;
    }
    if (ended.row >= added_.size() && !added_.resize(ended.row + 1U)) return false;
    added_[ended.row] = {row.steps.count, row.steps.sum};
    const auto sums = by_name_.of(history, ended.row);
    lines_[ended.row].first = sums[static_cast<std::size_t>(segment_number::live_at_end)].first;
    lines_[ended.row].add(record.live_at_end, ended.step, row.steps);
    for (const segment_number held : {segment_number::segment_peak, segment_number::live_at_peak, segment_number::live_at_end}) {
      const running_summary& now = sums[static_cast<std::size_t>(held)];
      const running_summary& then = before[static_cast<std::size_t>(held)];
      if (now.greatest_segment != ended.number || now.greatest == 0) continue;
      if (row.count > 1 && then.greatest != 0) history.release(then.greatest_segment);
      history.hold(ended.number);
    }
    return true;
  }

  /// Keeps a segment in which an allocation failed or exceeded the capacity; for a failure, only as far as there is room.
  void hold_with_failures(segment_history& history, std::uint64_t number) const noexcept {
    if (shortfall_.has_happened() && shortfall_.segment == number) history.pin(number);
    for (const out_of_memory_record& failed : out_of_memory_.kept()) {
      if (failed.segment == number) history.hold(number);
    }
  }

  /// Keeps the greatest rows of `owner_scratch_` for the segment and sums the others.
  void keep_owners(segment_record& record) noexcept {
    record.first_owner = owners_.size();
    for (const owner_at_peak& row : owner_scratch_) {
      if (record.owner_count < options_.owners_per_segment && owners_.push_back(row)) {
        ++record.owner_count;
      } else {
        record.remaining_bytes += row.bytes;
        ++record.remaining_operations;
      }
    }
  }

  /// Remembers a freed block that was live at the open segment's peak so far, and perhaps at the peaks of finished segments or
  /// the joint peak of a shared memory.
  [[gnu::noinline]] void remember_freed(const block& freed) noexcept {
    if (share_ != nullptr) {
      share_->remember_freed(freed);
      if (freed.born() > peak_ordinal_) return;
    }
    top_blocks_view{freed_since_peak_.data(), freed_count_, options_.largest_blocks}.offer(freed);
    if (segments_.empty() || freed.born() > segments_[segments_.size() - 1].peak_ordinal) return;
    const std::size_t first =
        partition_point(segments_.size(), [&](std::size_t index) { return segments_[index].peak_ordinal < freed.born(); });
    largest_of_finished_.offer(first, segments_.size(), freed);
  }

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
  std::uint64_t overall_segment_ = 0;
  summaries_by_name<segment_number_count> by_name_;
  page_array<exact_fit_sums> lines_;  ///< by row
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
