#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/ledger/facet/out_of_memory.hpp>
#include <memprof/ledger/freed_categories.hpp>
#include <memprof/ledger/linear_fit.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

/// @file
/// How a `space_ledger` ends segments, and what it keeps of each.

namespace memprof::inline MEMPROF_ABI::detail {

inline space_ledger::space_ledger(const ledger_options& options, const segment_history& history,
                                  std::uint64_t begin_stamp) noexcept
    : peak_stamp_(begin_stamp),
      options_(options),
      segment_(history.count()),
      compactions_(history.compactions()),
      line_(options.timeline_points),
      largest_of_finished_(options.largest_blocks) {
  ends_of_steps_.restart(history.step_ends(), history.step_end_count());
  is_usable_ = operations_.resize(1) && freed_since_peak_.resize(options.largest_blocks) && extend(history);
}

inline bool space_ledger::settle(const segment_history& history, std::uint64_t begin_stamp) noexcept {
  if (segment_ == history.count() && compactions_ == history.compactions()) return true;
  compact(history);
  if (segment_ == history.count()) return true;
  repeat_names(history);
  if (!repeat_segments(history)) return false;
  segment_ = history.count();
  peak_stamp_ = begin_stamp;
  return true;
}

inline std::uint64_t space_ledger::steps_of_settling(const segment_history& history) const noexcept {
  if (segment_ == history.count()) return 0;
  return 32 * history.rows().size() + 64 * (history.marks().size() - history.position_of(segment_)) + operations_.size() +
         step_ends::max_parts * ends_of_steps_.owners().size();
}

inline bool space_ledger::end_segment(segment_history& history, std::uint64_t stamp) noexcept {
  segment_record record = open_segment();
  const std::uint64_t number = segment_++;
  ++stats_generation_;  // so that each thread looks the space up again, and the ledger notices that it changes
  step_ends* const ends = untold_step_ends(history);
  if (!collect_owners(owner_scratch_, ends)) return false;
  if (record.peak_live_bytes > overall_peak_) {
    if (overall_peak_ != 0) history.unpin(overall_segment_);
    history.pin(number);
    overall_peak_ = record.peak_live_bytes;
    overall_segment_ = number;
    overall_owners_.clear();
    if (!overall_owners_.resize(owner_scratch_.size())) return false;
    for (std::size_t row = 0; row < owner_scratch_.size(); ++row) overall_owners_[row] = owner_scratch_[row];
    std::swap(freed_of_open_, freed_of_overall_);
    overall_epoch_ = epoch_;
    overall_ordinal_ = record.peak_ordinal;
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
  const bool are_steps_kept = ends == nullptr || ends->finish();
  return cores_.end_segment(history) && is_reserved_kept && is_active_kept && is_summed_up && are_steps_kept;
}

inline segment_record space_ledger::open_segment() const noexcept {
  segment_record record{};
  record.live_at_start = start_live_;
  record.live_at_end = live_;
  record.peak_live_bytes = peak_live_;
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
    record.categories[index] = {categories_[index].bytes_at_peak(epoch_), categories_[index].blocks_at_peak(epoch_)};
    record.categories[0].bytes -= record.categories[index].bytes;
    record.categories[0].blocks -= record.categories[index].blocks;
  }
  return record;
}

inline category_sums space_ledger::freed_since_peak(std::size_t operation, bool is_of_open) const noexcept {
  return is_of_open ? freed_of_open_.of(epoch_, operation) : freed_of_overall_.of(overall_epoch_, operation);
}

inline std::array<category_at_peak, category_names.size()> space_ledger::live_by_category() const noexcept {
  std::array<category_at_peak, category_names.size()> rows{};
  rows[0] = {live_, static_cast<std::int64_t>(live_blocks_.size())};
  for (std::size_t index = 1; index < categories_.size(); ++index) {
    rows[index] = {categories_[index].live, categories_[index].blocks};
    rows[0].bytes -= rows[index].bytes;
    rows[0].blocks -= rows[index].blocks;
  }
  return rows;
}

inline bool space_ledger::collect_owners(page_array<owner_at_peak>& rows, step_ends* ends) const noexcept {
  rows.clear();
  owner_at_peak outside{0, peak_live_, peak_blocks_};  // of any operation: the remainder
  std::int64_t outside_now = live_;
  for (std::size_t node = 1; node < operations_.size(); ++node) {
    const owner_stats& owned = operations_[node].owned;
    if (ends != nullptr) {
      ends->add(static_cast<std::uint32_t>(node), owned.live);
      outside_now -= owned.live;
    }
    const std::int64_t blocks = owned.blocks_at_peak(epoch_);
    if (blocks == 0) continue;
    if (!rows.push_back({static_cast<std::uint32_t>(node), owned.bytes_at_peak(epoch_), blocks})) return false;
    outside.bytes -= rows.back().bytes;
    outside.blocks -= blocks;
  }
  if (outside.blocks != 0 && !rows.push_back(outside)) return false;
  sort_rows(rows.data(), rows.size(), holds_more);
  if (ends != nullptr) ends->add(0, outside_now);
  if (ends != nullptr && reserved_.is_used())
    ends->add(step_ends::reserved_owner, std::max<std::int64_t>(0, reserved_.current() - live_));
  return true;
}

inline bool space_ledger::extend(const segment_history& history) noexcept {
  const std::size_t known = numbers_.size();
  const std::size_t count = history.marks().size();
  if (!numbers_.resize(count)) return false;
  for (std::size_t position = known; position < count; ++position) numbers_[position] = history.marks()[position].number;
  return segments_.resize(count);
}

inline void space_ledger::compact(const segment_history& history) noexcept {
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

inline void space_ledger::repeat_names(const segment_history& history) noexcept {
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

inline bool space_ledger::repeat_segments(const segment_history& history) noexcept {
  const std::size_t first = history.position_of(segment_);
  const std::size_t last = history.marks().size();
  step_ends* const ends = untold_step_ends(history);
  if (first == last && ends == nullptr) return true;
  if (!collect_owners(owner_scratch_, ends) || (ends != nullptr && !ends->finish()) || !reserved_.repeat(first, last) ||
      !active_.repeat(first, last) || !cores_.repeat(first, last) || !extend(history)) {
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

inline step_ends* space_ledger::untold_step_ends(const segment_history& history) noexcept {
  const std::uint64_t count = history.step_end_count();
  if (history.step_ends() != ends_of_steps_.choice()) ends_of_steps_.restart(history.step_ends(), 0);
  if (count == ends_of_steps_.count()) return nullptr;
  ends_of_steps_.begin(count);
  return &ends_of_steps_;
}

inline void space_ledger::start_segment(std::uint64_t stamp) noexcept {
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

inline bool space_ledger::sum_up(segment_history& history, const segment_record& record) noexcept {
  const segment_mark ended = history.marks()[history.marks().size() - 1];
  const named_segment_row& row = history.rows()[ended.row];
  const std::int64_t change = record.live_at_end - record.live_at_start;
  const auto before = by_name_.of(history, ended.row);
  if (ended.row >= lines_.size() && !lines_.resize(ended.row + 1U)) return false;
  if (!by_name_.add(history, {record.peak_live_bytes - record.live_at_start, record.peak_live_bytes, record.allocated,
                              record.allocated - change, change, record.live_at_end, record.allocation_count,
                              record.allocation_count - (record.blocks_at_end - record.blocks_at_start)})) {
    return false;
  }
  if (ended.row >= added_.size() && !added_.resize(ended.row + 1U)) return false;
  added_[ended.row] = {row.steps.count, row.steps.sum};
  const auto sums = by_name_.of(history, ended.row);
  lines_[ended.row].first = sums[static_cast<std::size_t>(segment_number::live_at_end)].first;
  lines_[ended.row].add(record.live_at_end, ended.step, row.steps);
  for (const segment_number held : {segment_number::segment_peak, segment_number::peak_live_bytes, segment_number::live_at_end}) {
    const running_summary& now = sums[static_cast<std::size_t>(held)];
    const running_summary& then = before[static_cast<std::size_t>(held)];
    if (now.greatest_segment != ended.number || now.greatest == 0) continue;
    if (row.count > 1 && then.greatest != 0) history.release(then.greatest_segment);
    history.hold(ended.number);
  }
  return true;
}

inline void space_ledger::hold_with_failures(segment_history& history, std::uint64_t number) const noexcept {
  if (shortfall_.has_happened() && shortfall_.segment == number) history.pin(number);
  for (const out_of_memory_record& failed : out_of_memory_.kept()) {
    if (failed.segment == number) history.hold(number);
  }
}

inline void space_ledger::keep_owners(segment_record& record) noexcept {
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

}  // namespace memprof::inline MEMPROF_ABI::detail
