#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/ledger/running_summary.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/value_summary.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/label.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// The part of `profile/build.hpp` that selects the segments. Templates for the reason given there.

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// The name that a profile gives to the segment that has not ended yet.
inline constexpr std::string_view open_segment_name = "OPEN_SEGMENT";

/// The name that a profile gives to segments beyond the limit on names.
inline constexpr std::string_view other_segments_name = "other segments";

/// A profile's segments: the positions of the kept ones in the ledger, and possibly one that is still open.
template <class History>
class segment_rows {
 public:
  segment_rows(const History& history, bool has_open) : history_(history), has_open_(has_open) {
    positions_ = vector<std::size_t>(history.kept());
    std::size_t kept = 0;
    for (std::size_t position = 0; position < history.marks().size(); ++position) {
      if (!history.marks()[position].is_dropped) positions_[kept++] = position;
    }
  }

  [[nodiscard]] const History& history() const { return history_; }
  [[nodiscard]] bool has_open() const { return has_open_; }
  /// Number of segments in the profile, and number of ended ones.
  [[nodiscard]] std::size_t size() const { return positions_.size() + (has_open_ ? 1 : 0); }
  [[nodiscard]] std::size_t finished() const { return positions_.size(); }
  [[nodiscard]] std::size_t position(std::size_t index) const { return positions_[index]; }
  /// Number of names; the last is that of the open segment, if there is one.
  [[nodiscard]] std::size_t names() const { return history_.rows().size() + (has_open_ ? 1 : 0); }
  [[nodiscard]] std::int64_t open_number() const { return static_cast<std::int64_t>(history_.count()); }

  /// The segment's number, or -1 for what follows the last segment of a finished profile and belongs to none.
  [[nodiscard, gnu::cold]] std::int64_t number_of(std::uint64_t segment) const {
    return segment < history_.count() || has_open_ ? static_cast<std::int64_t>(segment) : -1;
  }
  /// Index in the profile of the segment with that number; -1 if it has none.
  [[nodiscard, gnu::cold]] std::int64_t index_of(std::uint64_t number) const {
    for (std::size_t index = 0; index < positions_.size(); ++index) {
      if (history_.marks()[positions_[index]].number == number) return static_cast<std::int64_t>(index);
    }
    return has_open_ && number == history_.count() ? static_cast<std::int64_t>(positions_.size()) : -1;
  }

 private:
  const History& history_;
  bool has_open_;
  vector<std::size_t> positions_;
};

[[nodiscard, gnu::cold]] inline std::string segment_name(label name, name_view labels) {
  return std::string{name == other_names ? other_segments_name : labels.text(name)};
}

/// `open_end` is the latest stamp in the open segment.
template <class Rows>
[[nodiscard, gnu::cold]] vector<segment> build_segments(const Rows& rows, name_view labels, const clock_readings& time,
                                                        std::uint64_t open_begin, std::uint64_t open_end) {
  const auto& history = rows.history();
  vector<segment> result(rows.size());
  for (std::size_t index = 0; index < rows.finished(); ++index) {
    const segment_mark& mark = history.marks()[rows.position(index)];
    result[index] = {segment_name(mark.name, labels), time.to_ns(mark.begin_stamp), time.to_ns(mark.end_stamp),
                     static_cast<std::int64_t>(mark.number), static_cast<std::int64_t>(mark.step)};
  }
  if (rows.has_open()) {
    result[rows.finished()] = {std::string{open_segment_name}, time.to_ns(open_begin), time.to_ns(open_end), rows.open_number(),
                               static_cast<std::int64_t>(history.step())};
  }
  return result;
}

/// `begin` is the capture's first stamp; `segments` are the kept ones.
template <class Rows>
[[nodiscard, gnu::cold]] vector<named_segments> build_names(const Rows& rows, name_view labels, const clock_readings& time,
                                                            std::uint64_t begin, const vector<segment>& segments) {
  const auto& history = rows.history();
  const auto duration = [&](std::int64_t ticks) {
    return time.to_ns(begin + static_cast<std::uint64_t>(ticks)) - time.to_ns(begin);
  };
  vector<named_segments> result(rows.names());
  for (std::size_t row = 0; row < history.rows().size(); ++row) {
    const named_segment_row& known = history.rows()[row];
    value_summary took = to_value_summary(known.duration);
    for (std::int64_t* const value : {&took.first, &took.last, &took.least, &took.greatest, &took.sum}) *value = duration(*value);
    result[row] = {segment_name(known.name, labels),
                   known.stands_for_others,
                   static_cast<std::int64_t>(known.count),
                   0,
                   static_cast<std::int64_t>(known.first_number),
                   static_cast<std::int64_t>(known.last_number),
                   took};
  }
  for (std::size_t index = 0; index < rows.finished(); ++index) ++result[history.marks()[rows.position(index)].row].kept;
  if (rows.has_open()) {
    const segment& open = segments.back();
    result.back() = {open.name, false, 1, 1, open.number, open.number, summary_of(open.end_ns - open.begin_ns, open.number)};
  }
  return result;
}

/// Calls `fill(row, summaries)` for each name, with its `Count` summaries; `open` holds the numbers of the open segment.
template <class Rows, class ByName, std::size_t Count, class Fill>
[[gnu::cold]] void for_each_name(const Rows& rows, const ByName& by_name, const std::array<std::int64_t, Count>& open,
                                 Fill&& fill) {
  std::array<value_summary, Count> values;
  for (std::size_t row = 0; row < rows.history().rows().size(); ++row) {
    const auto sums = by_name.of(rows.history(), row);
    for (std::size_t index = 0; index < Count; ++index) values[index] = to_value_summary(sums[index]);
    fill(row, values);
  }
  if (!rows.has_open()) return;
  for (std::size_t index = 0; index < Count; ++index) values[index] = summary_of(open[index], rows.open_number());
  fill(rows.names() - 1, values);
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
