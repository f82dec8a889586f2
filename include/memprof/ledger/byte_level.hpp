#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/summaries_by_name.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_facets;

/// A number of bytes in one segment: its peak, and its value at the end.
struct level_record {
  std::int64_t peak;
  std::int64_t current;
};

/// A number of bytes that rises and falls: current value, peak, and both for each segment.
class byte_level {
 public:
  /// The caller ensures that it neither overflows nor becomes negative.
  void change(std::int64_t bytes) noexcept {
    current_ += bytes;
    segment_peak_ = std::max(segment_peak_, current_);
    peak_ = std::max(peak_, current_);
  }

  /// Ends the segment last added to `history`. False if the system has no memory.
  [[nodiscard]] bool end_segment(const segment_history& history) noexcept {
    const level_record ended = open_segment();
    segment_peak_ = current_;
    if (!segments_.resize(history.marks().size()) || !by_name_.add(history, {ended.peak, ended.current})) return false;
    segments_.back() = ended;
    return true;
  }
  /// Adds the segments at [first, last), in which nothing changed. False if the system has no memory.
  [[nodiscard]] bool repeat(std::size_t first, std::size_t last) noexcept {
    if (!segments_.resize(first) || !segments_.resize(last)) return false;
    for (std::size_t position = first; position < last; ++position) segments_[position] = open_segment();
    return true;
  }
  void repeat_name(std::size_t row, std::uint64_t times) noexcept { by_name_.repeat(row, times); }
  /// Drops the segments at positions that are not kept.
  template <class IsKept>
  void compact(const IsKept& is_kept) noexcept {
    keep_only(segments_, is_kept);
  }

  [[nodiscard]] std::int64_t current() const noexcept { return current_; }
  [[nodiscard]] std::int64_t peak() const noexcept { return peak_; }
  /// One for each mark of the history, or fewer if there was no memory; zeros before the first segment that ended here.
  [[nodiscard]] const page_array<level_record>& segments() const noexcept { return segments_; }
  /// Peak and current.
  [[nodiscard]] const summaries_by_name<2>& by_name() const noexcept { return by_name_; }
  [[nodiscard]] level_record open_segment() const noexcept { return {segment_peak_, current_}; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return segments_.bytes() + by_name_.bytes(); }

 private:
  friend struct saved_facets;

  page_array<level_record> segments_;
  summaries_by_name<2> by_name_;
  std::int64_t current_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t segment_peak_ = 0;
};

/// Fills a facet's peak, current and segments from a level: `rows` are a profile's `segment_rows`, `names` its rows by name.
template <class Result, class Level, class Rows, class Names>
void fill_level(Result& result, const Level& from, const Rows& rows, const Names& names) {
  result.peak = from.peak();
  result.current = from.current();
  const level_record open = from.open_segment();
  result.segments.resize(rows.size());
  for (std::size_t index = 0; index < rows.finished(); ++index) {
    const std::size_t position = rows.position(index);
    if (position >= from.segments().size()) continue;
    result.segments[index] = {from.segments()[position].peak, from.segments()[position].current};
  }
  if (rows.has_open()) result.segments[rows.finished()] = {open.peak, open.current};
  result.segments_by_name.resize(rows.names());
  for_each_name(rows, from.by_name(), std::array{open.peak, open.current}, [&](std::size_t row, const auto& values) {
    result.segments_by_name[row] = {names[row].name, values[0], values[1]};
  });
}

}  // namespace memprof::inline MEMPROF_ABI::detail
