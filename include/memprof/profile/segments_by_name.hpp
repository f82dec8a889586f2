#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/detail/text_rows.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// What the segments of each name did, however many there were, and the steps that they form: the basis of reports on long runs.

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// All segments of one name, or of one family of names, in one memory space. A family has no `growth`.
struct segments_of_name : named_segments, segment_summary {
  bool operator==(const segments_of_name&) const = default;
};

inline void add_value(value_summary& summary, std::int64_t value, bool is_first) noexcept {
  if (is_first) summary = {value, value, value, value, 0, -1, -1};
  summary.last = value;
  summary.least = std::min(summary.least, value);
  summary.greatest = std::max(summary.greatest, value);
  summary.sum = add_saturating(summary.sum, value);
}

/// The sums of a least-squares line. Values are taken relative to the first, so that large numbers that hardly change keep their
/// precision.
struct linear_fit_sums {
  std::int64_t first = 0;
  double count = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;

  void add(std::int64_t step, std::int64_t value) noexcept {
    if (count == 0) first = value;
    const auto at = static_cast<double>(step);
    const auto rise = static_cast<double>(subtract_saturating(value, first));
    count += 1;
    x += at;
    y += rise;
    xx += at * at;
    xy += at * rise;
    yy += rise * rise;
  }

  [[nodiscard]] linear_fit line() const noexcept {
    const double spread_of_steps = count * xx - x * x;
    const double spread = count * yy - y * y;
    const double together = count * xy - x * y;
    if (spread <= 0) return {0, 1};
    if (spread_of_steps <= 0) return {0, 0};
    return {together / spread_of_steps, std::min(1.0, together * together / (spread_of_steps * spread))};
  }
};

/// The same for profiles without steps: the step of each of the profile's segments.
[[nodiscard, gnu::cold]] vector<std::int64_t> steps_from_names(const auto& segments) {
  vector<std::int64_t> steps;
  steps.reserve(segments.size());
  text_rows names;
  vector<std::int64_t> last_step;
  std::int64_t step = 0;
  for (const auto& segment : segments) {
    const text_row name = names.find_or_add(segment.name);
    if (name.is_new) last_step.push_back(-1);
    if (last_step[name.index] == step) ++step;
    last_step[name.index] = step;
    steps.push_back(step);
  }
  return steps;
}

inline void add_to_summary(value_summary& into, const value_summary& other, bool is_earlier, bool is_later) noexcept {
  if (is_earlier) into.first = other.first;
  if (is_later) into.last = other.last;
  into.least = std::min(into.least, other.least);
  into.greatest = std::max(into.greatest, other.greatest);
  into.sum = add_saturating(into.sum, other.sum);
}

/// What a `segment_summary` sums up.
inline constexpr std::array numbers_of_segments{&segment_summary::segment_peak,     &segment_summary::peak_live_bytes,
                                                &segment_summary::allocations,      &segment_summary::deallocations,
                                                &segment_summary::segment_change,   &segment_summary::cumulative_current,
                                                &segment_summary::allocation_count, &segment_summary::deallocation_count};

/// The name with each number replaced by '*'.
[[nodiscard, gnu::cold]] inline std::string without_numbers(std::string_view name) {
  std::string family;
  for (const char character : name) {
    const bool is_digit = character >= '0' && character <= '9';
    if (!is_digit) {
      family += character;
    } else if (family.empty() || family.back() != '*') {
      family += '*';
    }
  }
  return family;
}

/// The step of each segment, and the number of steps.
struct segment_steps {
  vector<std::int64_t> of_segment;  ///< for each of `profile::segments`, from 0
  std::int64_t count = 0;
};

/// A *step* is one round of repeating names: it ends before a name that it already contains.
[[nodiscard, gnu::cold]] segment_steps steps_of(const auto& source) {
  segment_steps steps;
  if (source.step_count != 0) {
    for (const auto& segment : source.segments) steps.of_segment.push_back(segment.step);
    steps.count = source.step_count;
    return steps;
  }
  steps.of_segment = detail::steps_from_names(source.segments);
  steps.count = steps.of_segment.empty() ? 0 : steps.of_segment.back() + 1;
  return steps;
}

/// From the profile's rows by name, which cover all segments, kept or not.
[[nodiscard, gnu::cold]] vector<segments_of_name> from_named_segments(const auto& source, const auto& space) {
  vector<segments_of_name> rows;
  for (std::size_t index = 0; index < source.segments_by_name.size(); ++index) {
    rows.push_back({source.segments_by_name[index], space.segments_by_name[index]});
  }
  return rows;
}

/// From the segments themselves.
[[nodiscard, gnu::cold]] vector<segments_of_name> from_segments(const auto& source, const auto& space) {
  const vector<std::int64_t> steps = steps_from_names(source.segments);
  vector<segments_of_name> rows;
  vector<linear_fit_sums> growth;
  text_rows names;
  for (std::size_t index = 0; index < source.segments.size() && index < space.segments.size(); ++index) {
    const auto& usage = space.segments[index];
    const auto [at, is_new] = names.find_or_add(source.segments[index].name);
    if (is_new) {
      segments_of_name& made = rows.emplace_back();
      made.name = made.segment = source.segments[index].name;
      made.first_number = static_cast<std::int64_t>(index);
      growth.emplace_back();
    }
    segments_of_name& row = rows[at];
    add_value(row.duration_ns, source.segments[index].end_ns - source.segments[index].begin_ns, is_new);
    add_value(row.segment_peak, usage.segment_peak, is_new);
    add_value(row.peak_live_bytes, usage.live_at_peak.bytes, is_new);
    add_value(row.allocations, usage.allocations, is_new);
    add_value(row.deallocations, usage.deallocations, is_new);
    add_value(row.segment_change, usage.segment_change, is_new);
    add_value(row.cumulative_current, usage.cumulative_current, is_new);
    add_value(row.allocation_count, usage.allocation_count, is_new);
    add_value(row.deallocation_count, usage.deallocation_count, is_new);
    growth[at].add(steps[index], usage.cumulative_current);
    row.last_number = static_cast<std::int64_t>(index);
    ++row.count;
    ++row.kept;
  }
  for (std::size_t index = 0; index < rows.size(); ++index) rows[index].growth = growth[index].line();
  return rows;
}

/// A row for each name, in the order of first occurrence. `space` must be one of the profile's. Profiles of earlier versions have
/// no rows by name; theirs are made from all their segments.
[[nodiscard, gnu::cold]] vector<segments_of_name> segments_by_name(const auto& source, const auto& space) {
  const bool has_rows = !source.segments_by_name.empty() && source.segments_by_name.size() == space.segments_by_name.size();
  return has_rows ? detail::from_named_segments(source, space) : detail::from_segments(source, space);
}

/// The number of segments, kept or not.
[[nodiscard]] std::int64_t count_of_segments(const auto& source) {
  return source.segment_count != 0 ? source.segment_count : static_cast<std::int64_t>(source.segments.size());
}

/// The rows, with those merged whose names differ only in numbers: "step 1" and "step 2" become "step *". A family of one keeps
/// its name.
template <class Name = segments_of_name>
[[nodiscard, gnu::cold]] vector<Name> segments_by_family(const vector<Name>& names) {
  vector<std::string> families;
  families.reserve(names.size());  // so that the texts stay where they are
  detail::text_rows family_rows;
  vector<std::size_t> row_of_family;
  vector<segments_of_name> rows;
  for (const segments_of_name& name : names) {
    if (name.stands_for_others) {
      rows.push_back(name);
      continue;
    }
    const std::string& family = families.emplace_back(detail::without_numbers(name.name));
    const detail::text_row at = family_rows.find_or_add(family);
    if (at.is_new) {
      row_of_family.push_back(rows.size());
      rows.push_back(name);
      continue;
    }
    segments_of_name& row = rows[row_of_family[at.index]];
    const bool is_earlier = name.first_number < row.first_number;
    const bool is_later = name.last_number > row.last_number;
    detail::add_to_summary(row.duration_ns, name.duration_ns, is_earlier, is_later);
    for (value_summary segment_summary::*const number : detail::numbers_of_segments)
      detail::add_to_summary(row.*number, name.*number, is_earlier, is_later);
    row.first_number = std::min(row.first_number, name.first_number);
    row.last_number = std::max(row.last_number, name.last_number);
    row.count += name.count;
    row.kept += name.kept;
    row.growth = {};
    row.name = row.segment = family;
  }
  return rows;
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
