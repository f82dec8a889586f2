#pragma once

#include <memprof/analysis/segments_by_name.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/quantity.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// @file
/// The table of segments: folded by name, or each of them.

namespace memprof::detail {

/// The titles of the table by name. The reader of this text (format/summary_text.hpp) looks for them.
inline constexpr std::array<std::string_view, 7> segment_titles{"Segments: peak, change", "Count", "First", "Last",
                                                                "Least", "Greatest", "Mean"};

[[nodiscard]] inline double mean_of(const value_summary& values, std::int64_t count) {
  return count == 0 ? 0.0 : static_cast<double>(values.sum) / static_cast<double>(count);
}

[[nodiscard]] inline bool is_constant(const value_summary& values) { return values.least == values.greatest; }

/// The lines of a name: one if its peak and its change were the same each time, else one for each.
inline void add_name_rows(page_table& table, const segments_of_name& name) {
  std::vector<page_line> peaks{page_line{}.add_name(name.name), grouped(name.count)};
  const value_summary& peak = name.segment_peak;
  const value_summary& change = name.segment_change;
  if (is_constant(peak) && is_constant(change)) {
    peaks.emplace_back(short_bytes(peak.first));
    page_line rest;
    rest.add("change ").add(signed_short_bytes(change.first));
    if (name.count > 1) rest.add(", each time");
    peaks.push_back(rest);
    table.rows.push_back(std::move(peaks));
    return;
  }
  for (const std::int64_t value : {peak.first, peak.last, peak.least, peak.greatest}) peaks.emplace_back(short_bytes(value));
  peaks.emplace_back(short_bytes(mean_of(peak, name.count)));
  table.rows.push_back(std::move(peaks));
  std::vector<page_line> changes{"  change", ""};
  for (const std::int64_t value : {change.first, change.last, change.least, change.greatest}) {
    changes.emplace_back(signed_short_bytes(value));
  }
  changes.emplace_back(signed_short_bytes(mean_of(change, name.count)));
  table.rows.push_back(std::move(changes));
}

[[nodiscard]] inline std::size_t rows_of_name(const segments_of_name& name) {
  return is_constant(name.segment_peak) && is_constant(name.segment_change) ? 1 : 2;
}

/// A row or two for each name within `most_rows`, in the order in which they came: those with the greatest peaks and changes if not
/// all have room.
[[nodiscard]] inline page_section segment_section(std::vector<segments_of_name> names, std::size_t most_rows) {
  page_section section;
  section.is_wide = true;
  if (names.empty()) return section;
  section.table.has_titles = true;
  for (const std::string_view title : segment_titles) section.table.columns.push_back({title, true});
  section.table.columns.front().is_right_aligned = false;
  const auto rows_of_all = [&] {
    std::size_t rows = 0;
    for (const segments_of_name& name : names) rows += rows_of_name(name);
    return rows;
  };
  if (rows_of_all() > most_rows) names = segments_by_family(names);
  std::int64_t left_out_names = 0;
  std::int64_t left_out_segments = 0;
  std::size_t rows = rows_of_all();
  if (rows > most_rows) {
    const auto weight = [](const segments_of_name& name) {
      return std::max({name.segment_peak.greatest, name.segment_change.greatest,
                       subtract_saturating(0, name.segment_change.least)});
    };
    std::vector<std::size_t> order(names.size());
    for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) { return weight(names[left]) > weight(names[right]); });
    std::vector<bool> is_shown(names.size());
    std::size_t used = 1;  // the row that counts the others
    for (const std::size_t index : order) {
      if (used + rows_of_name(names[index]) > most_rows) break;
      used += rows_of_name(names[index]);
      is_shown[index] = true;
    }
    std::vector<segments_of_name> shown;
    for (std::size_t index = 0; index < names.size(); ++index) {
      if (is_shown[index]) {
        shown.push_back(std::move(names[index]));
      } else {
        ++left_out_names;
        left_out_segments += names[index].count;
      }
    }
    names = std::move(shown);
  }
  for (const segments_of_name& name : names) add_name_rows(section.table, name);
  if (left_out_names > 0) {
    section.table.rows.push_back({grouped(left_out_names, "further name", "further names"), grouped(left_out_segments)});
  }
  return section;
}

/// A row for each segment that the profile has, in the order of time.
[[nodiscard]] page_section every_segment_section(const auto& source, const auto& space, const segment_steps& steps) {
  page_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  section.table.columns = {{"Segment", false}, {"Step", true},   {"Begin", true},   {"Peak", true},
                           {"Change", true},   {"Live", true},   {"Allocated", true}, {"Freed", true}};
  for (std::size_t index = 0; index < source.segments.size() && index < space.segments.size(); ++index) {
    const auto& usage = space.segments[index];
    section.table.rows.push_back({page_line{}.add_name(source.segments[index].name), grouped(steps.of_segment[index] + 1),
                                  short_time(source.segments[index].begin_ns), short_bytes(usage.segment_peak),
                                  signed_short_bytes(usage.segment_change), short_bytes(usage.cumulative_current),
                                  short_bytes(usage.allocations), short_bytes(usage.deallocations)});
  }
  return section;
}

}  // namespace memprof::detail
