#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/marked_text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// The table of segments: folded by name, or one row each.

namespace memprof::inline MEMPROF_ABI::detail {

/// The column titles of the table by name: if the numbers of some name differ, and if those of no name do. `parse_summary_text`
/// looks for them.
inline constexpr const char* segment_titles = "Segments: peak\tCount\tFirst\tLast\tMin\tMax\tMean";
inline constexpr const char* constant_segment_titles = "Segments\tCount\tPeak\tChange\t";

[[nodiscard, gnu::cold]] inline double mean_of(const value_summary& values, std::int64_t count) {
  return count == 0 ? 0.0 : static_cast<double>(values.sum) / static_cast<double>(count);
}

/// A cell with the name, and one with the number of its segments.
[[gnu::cold]] inline void add_name_cells(marked_text& rows, const segments_of_name& name) {
  name.stands_for_others ? rows.add("all other names") : rows.add_name(name.name);
  rows.next_cell().add_count(name.count);
}

/// Whether the numbers look the same as printed, so that one stands for all.
[[nodiscard, gnu::cold]] inline bool looks_constant(const value_summary& values) {
  return short_bytes(values.least) == short_bytes(values.greatest);
}
[[nodiscard, gnu::cold]] inline bool looks_constant(const segments_of_name& name) {
  return looks_constant(name.segment_peak) && looks_constant(name.segment_change);
}

[[nodiscard, gnu::cold]] inline std::size_t rows_of_name(const segments_of_name& name) { return looks_constant(name) ? 1 : 2; }

/// "each time", or how far apart the numbers are that print the same.
[[nodiscard, gnu::cold]] inline std::string spread_text(const segments_of_name& name) {
  if (name.count < 2) return {};
  const auto spread = [](const value_summary& values) { return subtract_saturating(values.greatest, values.least); };
  const std::int64_t most = std::max(spread(name.segment_peak), spread(name.segment_change));
  return most == 0 ? "each time" : "each time within " + short_bytes(most);
}

/// The row of a name whose peak and change look the same each time, for tables in which that holds for all names.
[[gnu::cold]] inline void add_constant_row(marked_text& rows, const segments_of_name& name) {
  add_name_cells(rows, name);
  rows.next_cell().add_bytes(name.segment_peak.first).next_cell().add_change(name.segment_change.first);
  rows.next_cell().add(spread_text(name)).end_line();
}

/// Five cells: the first, last, least, greatest and mean value, each with its sign if they are changes.
[[gnu::cold]] inline void add_value_cells(marked_text& rows, const value_summary& values, std::int64_t count, bool are_changes) {
  for (const std::int64_t value : {values.first, values.last, values.least, values.greatest}) {
    are_changes ? rows.next_cell().add_change(value) : rows.next_cell().add_bytes(value);
  }
  const double mean = mean_of(values, count);
  rows.next_cell().add(are_changes ? signed_short_bytes(mean) : short_bytes(mean));
}

/// The rows of a name: one if its peak and change look the same each time, else one each.
[[gnu::cold]] inline void add_name_rows(marked_text& rows, const segments_of_name& name) {
  add_name_cells(rows, name);
  if (looks_constant(name)) {
    rows.next_cell().add_bytes(name.segment_peak.first);
    const std::string spread = spread_text(name);
    rows.next_cell().add("change ").add_change(name.segment_change.first).add(spread.empty() ? "" : ", ").add(spread).end_line();
    return;
  }
  add_value_cells(rows, name.segment_peak, name.count, false);
  add_value_cells(rows.end_line().add("  change").next_cell(), name.segment_change, name.count, true);
  rows.end_line();
}

/// The numbers of the names with the greatest peaks and changes, as many as have at most `max_rows` rows; in their own order.
[[nodiscard, gnu::cold]] inline vector<std::size_t> heaviest_names(const vector<segments_of_name>& names, std::size_t max_rows) {
  const auto weight = [](const segments_of_name& name) {
    return std::max(
        {name.segment_peak.greatest, name.segment_change.greatest, subtract_saturating(0, name.segment_change.least)});
  };
  vector<std::size_t> order =
      row_order(names.size(), [&](std::size_t left, std::size_t right) { return weight(names[left]) > weight(names[right]); });
  std::size_t used = 0;
  std::size_t shown = 0;
  while (shown < order.size() && used + rows_of_name(names[order[shown]]) <= max_rows)
    used += rows_of_name(names[order[shown++]]);
  order.resize(shown);
  sort_rows(order.data(), order.size(), [](std::size_t left, std::size_t right) { return left < right; });
  return order;
}

[[nodiscard, gnu::cold]] inline std::size_t rows_of_names(const vector<segments_of_name>& names) {
  std::size_t rows = 0;
  for (const segments_of_name& name : names) rows += rows_of_name(name);
  return rows;
}

/// One or two rows for each name, at most `max_rows`, in the order of first occurrence. If not all fit, the names with the
/// greatest peaks and changes are shown.
[[nodiscard, gnu::cold]] inline summary_section segment_section(vector<segments_of_name> names, std::size_t max_rows) {
  summary_section section;
  section.is_wide = true;
  if (names.empty()) return section;
  section.table.has_titles = true;
  if (rows_of_names(names) > max_rows) names = segments_by_family(names);
  // One row counts the names left out.
  const bool do_all_fit = rows_of_names(names) <= max_rows;
  const vector<std::size_t> shown = heaviest_names(names, do_all_fit ? max_rows : max_rows - std::min<std::size_t>(max_rows, 1));
  bool all_constant = true;
  std::int64_t further_segments = 0;
  std::size_t next = 0;
  for (std::size_t number = 0; number < names.size(); ++number) {
    if (next < shown.size() && shown[next] == number) {
      all_constant = all_constant && looks_constant(names[number]);
      ++next;
    } else {
      further_segments = add_saturating(further_segments, names[number].count);
    }
  }
  if (all_constant) {
    section.table.set_columns(constant_segment_titles, "lrrrl");
  } else {
    section.table.set_columns(segment_titles, "lrrrrrr");
  }
  marked_text& rows = section.table.rows;
  for (const std::size_t number : shown) {
    all_constant ? add_constant_row(rows, names[number]) : add_name_rows(rows, names[number]);
  }
  if (shown.size() == names.size()) return section;
  rows.add_count(static_cast<std::int64_t>(names.size() - shown.size()), "further name", "further names").next_cell();
  rows.add_count(further_segments).end_line();
  return section;
}

/// The titles of a table of segments that names their space: "Segments in cpu: peak".
[[nodiscard, gnu::cold]] inline std::string titles_with_space(std::string titles, std::string_view space) {
  return titles.insert(std::min(titles.find_first_of(":\t"), titles.size()), " in " + on_one_line(space));
}

/// A row for each segment that the profile keeps, in order of time.
[[nodiscard, gnu::cold]] inline summary_section every_segment_section(const profile& source, const space_profile& space,
                                                                      const segment_steps& steps) {
  summary_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  section.table.set_columns("Segment\tStep\tBegin\tPeak\tChange\tLive\tAllocated\tFreed", "lrrrrrrr");
  marked_text& rows = section.table.rows;
  for (std::size_t index = 0; index < source.segments.size() && index < space.segments.size(); ++index) {
    const segment_usage& usage = space.segments[index];
    rows.add_name(source.segments[index].name).next_cell().add_count(steps.of_segment[index] + 1);
    rows.next_cell().add_time(source.segments[index].begin_ns).next_cell().add_bytes(usage.segment_peak);
    rows.next_cell().add_change(usage.segment_change).next_cell().add_bytes(usage.cumulative_current);
    rows.next_cell().add_bytes(usage.allocations).next_cell().add_bytes(usage.deallocations).end_line();
  }
  const std::int64_t missing = count_of_segments(source) - static_cast<std::int64_t>(source.segments.size());
  if (missing > 0) {
    section.further_lines.add_count(missing, "more segment", "more segments")
        .add(" kept only by name in the profile; the trace has them all")
        .end_line();
  }
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
