#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/quantity.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// The table of segments: folded by name, or one row each.

namespace memprof::inline MEMPROF_ABI::detail {

/// The column titles of the table by name: if the numbers of some name differ, and if those of no name do. `parse_summary_text`
/// looks for them.
inline constexpr std::array<page_column, 7> segment_columns{
    {{"Segments: peak", false}, {"Count", true}, {"First", true}, {"Last", true}, {"Min", true}, {"Max", true}, {"Mean", true}}};
inline constexpr std::array<page_column, 5> constant_segment_columns{
    {{"Segments", false}, {"Count", true}, {"Peak", true}, {"Change", true}, {"", false}}};

[[nodiscard, gnu::cold]] inline double mean_of(const value_summary& values, std::int64_t count) {
  return count == 0 ? 0.0 : static_cast<double>(values.sum) / static_cast<double>(count);
}

[[nodiscard, gnu::cold]] inline page_line name_of(const segments_of_name& name) {
  return name.stands_for_others ? page_line{"all other names"} : page_line{}.add_name(name.name);
}

/// Whether the numbers look the same as printed, so that one stands for all.
[[nodiscard, gnu::cold]] inline bool looks_constant(const value_summary& values) {
  return short_bytes(values.least) == short_bytes(values.greatest);
}
[[nodiscard, gnu::cold]] inline bool looks_constant(const segments_of_name& name) {
  return looks_constant(name.segment_peak) && looks_constant(name.segment_change);
}

[[nodiscard]] inline std::size_t rows_of_name(const segments_of_name& name) { return looks_constant(name) ? 1 : 2; }

/// "each time", or how far apart the numbers are that print the same.
[[nodiscard, gnu::cold]] inline std::string spread_text(const segments_of_name& name) {
  if (name.count < 2) return {};
  const auto spread = [](const value_summary& values) { return subtract_saturating(values.greatest, values.least); };
  const std::int64_t most = std::max(spread(name.segment_peak), spread(name.segment_change));
  return most == 0 ? "each time" : "each time within " + short_bytes(most);
}

/// The row of a name whose peak and change look the same each time, for tables in which that holds for all names.
[[gnu::cold]] void add_constant_row(auto& table, const segments_of_name& name) {
  table.rows.push_back({name_of(name), grouped(name.count), short_bytes(name.segment_peak.first),
                        signed_short_bytes(name.segment_change.first), spread_text(name)});
}

/// The rows of a name: one if its peak and change look the same each time, else one each.
[[gnu::cold]] void add_name_rows(auto& table, const segments_of_name& name) {
  std::vector<page_line> peaks{name_of(name), grouped(name.count)};
  const value_summary& peak = name.segment_peak;
  const value_summary& change = name.segment_change;
  if (looks_constant(name)) {
    peaks.emplace_back(short_bytes(peak.first));
    const std::string spread = spread_text(name);
    peaks.emplace_back("change " + signed_short_bytes(change.first) + (spread.empty() ? "" : ", " + spread));
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

/// One or two rows for each name, at most `max_rows`, in the order of first occurrence. If not all fit, the names with the
/// greatest peaks and changes are shown.
[[nodiscard, gnu::cold]] page_section segment_section(auto names, std::size_t max_rows) {
  page_section section;
  section.is_wide = true;
  if (names.empty()) return section;
  section.table.has_titles = true;
  const auto rows_of_all = [&] {
    std::size_t rows = 0;
    for (const segments_of_name& name : names) rows += rows_of_name(name);
    return rows;
  };
  if (rows_of_all() > max_rows) names = segments_by_family(names);
  std::int64_t left_out_names = 0;
  std::int64_t left_out_segments = 0;
  std::size_t rows = rows_of_all();
  if (rows > max_rows) {
    const auto weight = [](const segments_of_name& name) {
      return std::max(
          {name.segment_peak.greatest, name.segment_change.greatest, subtract_saturating(0, name.segment_change.least)});
    };
    std::vector<std::size_t> order(names.size());
    for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
    sort_rows(order.data(), order.size(), [&](std::size_t left, std::size_t right) {
      const std::int64_t weight_of_left = weight(names[left]);
      const std::int64_t weight_of_right = weight(names[right]);
      return weight_of_left != weight_of_right ? weight_of_left > weight_of_right : left < right;
    });
    std::vector<bool> is_shown(names.size());
    std::size_t used = 1;  // for the row that counts the others
    for (const std::size_t index : order) {
      if (used + rows_of_name(names[index]) > max_rows) break;
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
  const bool all_constant =
      std::all_of(names.begin(), names.end(), [](const segments_of_name& name) { return looks_constant(name); });
  if (all_constant) {
    section.table.columns.assign(constant_segment_columns.begin(), constant_segment_columns.end());
  } else {
    section.table.columns.assign(segment_columns.begin(), segment_columns.end());
  }
  for (const segments_of_name& name : names) {
    all_constant ? add_constant_row(section.table, name) : add_name_rows(section.table, name);
  }
  if (left_out_names > 0) {
    section.table.rows.push_back({grouped(left_out_names, "further name", "further names"), grouped(left_out_segments)});
  }
  return section;
}

/// The first title of a table of segments that names their space: "Segments in cpu: peak".
[[nodiscard, gnu::cold]] std::string title_with_space(const page_table& table, const auto& space) {
  const std::string_view title = table.columns.front().title;
  const std::size_t word = std::min(title.find(':'), title.size());
  return std::string{title.substr(0, word)} + " in " + on_one_line(space.name) + std::string{title.substr(word)};
}

/// A row for each segment that the profile keeps, in order of time.
[[nodiscard, gnu::cold]] page_section every_segment_section(const auto& source, const auto& space, const segment_steps& steps) {
  page_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  section.table.columns = {{"Segment", false}, {"Step", true}, {"Begin", true},     {"Peak", true},
                           {"Change", true},   {"Live", true}, {"Allocated", true}, {"Freed", true}};
  for (std::size_t index = 0; index < source.segments.size() && index < space.segments.size(); ++index) {
    const auto& usage = space.segments[index];
    section.table.rows.push_back({page_line{}.add_name(source.segments[index].name), grouped(steps.of_segment[index] + 1),
                                  short_time(source.segments[index].begin_ns), short_bytes(usage.segment_peak),
                                  signed_short_bytes(usage.segment_change), short_bytes(usage.cumulative_current),
                                  short_bytes(usage.allocations), short_bytes(usage.deallocations)});
  }
  const std::int64_t missing = count_of_segments(source) - static_cast<std::int64_t>(source.segments.size());
  if (missing > 0) {
    section.further_lines.emplace_back(grouped(missing, "more segment", "more segments") +
                                       " kept only by name in the profile; the trace has them all");
  }
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
