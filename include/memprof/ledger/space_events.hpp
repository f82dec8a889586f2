#pragma once

#include <memprof/detail/partition_point.hpp>
#include <memprof/ledger/facet/capacity.hpp>
#include <memprof/ledger/facet/cores.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/ledger/shared_memory.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/ledger/top_blocks.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

/// @file
/// How a `space_ledger` applies events and keeps what is live at its peaks.

namespace memprof::inline MEMPROF_ABI::detail {

inline void space_ledger::become_active() noexcept {
  share_->settle(ordinal_, live_, live_blocks_.size());
  joint_peak_above_ = share_->memory().room_of_active();
  watch_above_ = std::min(peak_live_, joint_peak_above_);
  watched_ordinal_ = std::max(peak_ordinal_, share_->ordinal());
}

inline void space_ledger::add(block* entry, const event& recorded, operation_stats& stats, std::uint64_t owner,
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

inline void space_ledger::remove(const live_blocks::place& found) noexcept {
  const auto bytes = static_cast<std::int64_t>(found->bytes);
  if (found->operation() != 0) operations_[found->operation()].owned.change(epoch_, -bytes, -1);
  if (found->category() != 0) categories_[found->category()].change(epoch_, -bytes, -1);
  live_ -= bytes;
  if (found->born() <= watched_ordinal_) remember_freed(*found.entry);
  live_blocks_.erase(found);
}

inline void space_ledger::annotate(const event& recorded) noexcept {
  block* const entry = live_blocks_.find(recorded.address).entry;
  if (entry == nullptr) {
    unknown_annotations.add(0);
    return;
  }
  const label description = recorded.label == 0 || recorded.label > block::max_annotation ? entry->annotation() : recorded.label;
  const std::uint32_t category = recorded.tag == 0 ? entry->category() : recorded.tag - 1U;
  if (category != entry->category()) {
    const auto bytes = static_cast<std::int64_t>(entry->bytes);
    const auto move = entry->born() <= peak_ordinal_ ? &owner_stats::correct : &owner_stats::change;
    if (entry->category() != 0) (categories_[entry->category()].*move)(epoch_, -bytes, -1);
    if (category != 0) (categories_[category].*move)(epoch_, bytes, 1);
  }
  entry->owner = block::owner_word(entry->operation(), category, description);
}

inline void space_ledger::check_cores(std::uint64_t address, const core_range& cores, std::uint64_t stamp) noexcept {
  if (core_shortfall_above_ == std::numeric_limits<std::int64_t>::max()) return;
  const core_maxima fullest = cores_.fullest(cores);
  if (fullest.peak.total <= core_shortfall_above_) return;
  note_shortfall_on({fullest.busiest_x, fullest.busiest_y, fullest.busiest_x, fullest.busiest_y}, address, stamp);
}

[[gnu::noinline]] inline void space_ledger::raise_joint_peak(std::uint64_t stamp, std::uint32_t operation) noexcept {
  joint_peak_above_ = live_;
  share_->memory().raise(live_, stamp, segment_, operation);
  share_->begin_peak(ordinal_, live_, live_blocks_.size());
}

[[gnu::cold, gnu::noinline]] inline void space_ledger::note_shortfall(const block& asked) noexcept {
  shortfall_above_ = std::numeric_limits<std::int64_t>::max();
  shortfall_.asked = asked;
  shortfall_.segment = segment_;
  shortfall_.moment = open_segment();
  shortfall_.has_holders = collect_owners(shortfall_.owners) && shortfall_.keep_largest(live_blocks_, options_.largest_blocks);
  if (!shortfall_.has_holders) shortfall_.forget_holders();
  shortfall_.take_out_asked();
}

[[gnu::cold, gnu::noinline]] inline void space_ledger::note_shortfall_on(const core_range& core, std::uint64_t address,
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

[[gnu::noinline]] inline void space_ledger::remember_freed(const block& freed) noexcept {
  if (share_ != nullptr) {
    share_->remember_freed(freed);
    if (freed.born() > peak_ordinal_) return;
  }
  if (freed.category() != 0) {
    freed_of_open_.add(epoch_, freed);
    if (freed.born() <= overall_ordinal_) freed_of_overall_.add(overall_epoch_, freed);
  }
  top_blocks_view{freed_since_peak_.data(), freed_count_, options_.largest_blocks}.offer(freed);
  if (segments_.empty() || freed.born() > segments_[segments_.size() - 1].peak_ordinal) return;
  const std::size_t first =
      partition_point(segments_.size(), [&](std::size_t index) { return segments_[index].peak_ordinal < freed.born(); });
  largest_of_finished_.offer(first, segments_.size(), freed);
}

inline void space_ledger::limit(std::int64_t capacity, bool is_per_core) noexcept {
  if (capacity <= 0) return;
  capacity_ = capacity;
  capacity_is_per_core_ = is_per_core;
  (is_per_core ? core_shortfall_above_ : shortfall_above_) = capacity;
}

inline operation_stats* space_ledger::find_or_make_operation(std::uint32_t node) noexcept {
  if (node >= operations_.size()) {
    if (!operations_.resize(node + 1)) return nullptr;
    ++stats_generation_;
  }
  return &operations_[node];
}

inline std::size_t space_ledger::bytes() const noexcept {
  return live_blocks_.bytes() + line_.bytes() + operations_.bytes() + freed_since_peak_.bytes() + segments_.bytes() +
         numbers_.bytes() + added_.bytes() + owners_.bytes() + owner_scratch_.bytes() + overall_owners_.bytes() +
         largest_of_finished_.bytes() + freed_of_open_.bytes() + freed_of_overall_.bytes() + shortfall_.bytes() +
         by_name_.bytes() + lines_.bytes() + cores_.bytes() + ends_of_steps_.bytes() + reserved_.bytes() + streams_.bytes() +
         active_.bytes() + out_of_memory_.bytes();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
