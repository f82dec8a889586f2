#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/shortened_names.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/breakdown_text.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/page/gnuplot_text.hpp>
#include <memprof/toolkit/page/palette.hpp>
#include <memprof/toolkit/page/run_picture_rows.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

std::string time_unit::text(std::int64_t ns) const {
  const double value = of(ns);
  return decimal(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2) + ' ' + std::string{name};
}

namespace {

/// The rows of a live set, with the rest as one, so that they add up to it.
[[nodiscard]] std::vector<composition_row> rows_of_owners(const vector<owned_bytes>& owners, bool are_categories) {
  constexpr std::size_t most = 8;
  constexpr std::size_t longest_name = 36;
  std::vector<composition_row> rows;
  vector<std::string> names;
  std::int64_t rest = 0;
  std::size_t rest_count = 0;
  for (const owned_bytes& owner : owners) {
    if (owner.bytes == 0) continue;
    if (rows.size() == most) {
      rest = add_saturating(rest, owner.bytes);
      ++rest_count;
      continue;
    }
    names.push_back(owner.owner.empty() ? "(no operation)" : on_one_line(owner.owner));
    const auto known = category_from_string(owner.owner).value_or(category::other);
    rows.push_back({{}, owner.bytes, are_categories ? colour_of(known) : plain_colour});
  }
  names = shortened_apart(names, longest_name);
  for (std::size_t index = 0; index < rows.size(); ++index) rows[index].name = std::move(names[index]);
  if (rest_count > 0) {
    rows.push_back({counted(static_cast<std::int64_t>(rest_count), "other", "others"), rest, rest_colour});
  }
  return rows;
}

}  // namespace

composition_rows composition_of(const profile& of, const space_profile& space, composition by) {
  composition_rows result;
  const live_set& live = space.live_at_peak;
  const bool by_category = by == composition::category || (by == composition::automatic && has_categories(live));
  if (by_category && !live.by_category.empty()) {
    result.title = "live at the peak, by category";
    result.rows = rows_of_owners(live.by_category, true);
  } else if (!live.by_operation.empty()) {
    result.title = "live at the peak, by operation";
    result.rows = rows_of_owners(live.by_operation, false);
    if (live.remaining_bytes != 0) {
      result.rows.push_back(
          {counted(live.remaining_operations, "smaller operation", "smaller operations"), live.remaining_bytes, rest_colour});
    }
  } else if (!space.segments.empty()) {
    result.title = "the peak by phases, not all live at once";
    const memory_breakdown breakdown = break_down(of, space, {.use_actual_sizes = true});
    constexpr std::array<category, peak_parts> categories{category::other, category::parameter, category::gradient,
                                                          category::optimizer_state, category::activation};
    for (std::size_t part = peak_parts; part-- > 0;) {
      // Parts below a log's precision are left out.
      if (breakdown.parts[part] == 0 || (of.provenance.rounding > 1 && breakdown.parts[part] <= 2 * of.provenance.rounding))
        continue;
      result.rows.push_back({std::string{peak_part_titles[part]}, breakdown.parts[part], colour_of(categories[part])});
    }
  }
  if (result.rows.empty()) result.title = "what was live at the peak is unknown";
  std::size_t longest = 0;
  for (const composition_row& row : result.rows) longest = std::max(longest, display_width(row.name));
  constexpr int dots_a_letter = 15;
  result.name_width = std::max(190, static_cast<int>(longest) * dots_a_letter + 50);
  return result;
}

namespace {

constexpr int segment_letter_width = 14;  // for capitals

}  // namespace

segment_bands bands_of(const profile& of, std::int64_t end, int width) {
  constexpr std::size_t most = 100;
  constexpr std::size_t longest_name = 24;
  constexpr double line_height = 26;
  segment_bands result;
  if (of.segments.size() > most || end <= 0) return result;
  const auto share = [&](std::int64_t ns) { return std::clamp(static_cast<double>(ns) / static_cast<double>(end), 0.0, 1.0); };
  vector<std::string> names;
  for (const segment& one : of.segments) names.push_back(on_one_line(one.name));
  names = shortened_apart(names, longest_name);
  for (std::size_t index = 0; index < of.segments.size(); ++index) {
    const segment& one = of.segments[index];
    const double begin = share(one.begin_ns);
    const double finish = std::max(begin, share(one.end_ns));
    if (index % 2 == 1) result.bands.emplace_back(begin, finish);
    const double dots = (finish - begin) * width;
    if (dots < line_height) continue;
    const int text_width = segment_letter_width * static_cast<int>(display_width(names[index]));
    const bool is_upright = dots < text_width + 8;
    result.names.push_back({names[index], (begin + finish) / 2, is_upright});
    result.height = std::max(result.height, (is_upright ? text_width + 34 : 40));
  }
  return result;
}

void append_bands(std::string& script, const segment_bands& segments) {
  for (const auto& [begin, end] : segments.bands) {
    script += "set object rectangle from graph " + decimal(begin, 6) + ", graph 0 to graph " + decimal(end, 6) +
              ", graph 1 behind fillcolor rgb '#f0f0f0' fillstyle solid 1 noborder\n";
  }
  for (const band_name& name : segments.names) {
    script += "set label " + gnuplot_string(name.text) + " at graph " + decimal(name.middle, 6) + ", graph 1 " +
              (name.is_upright ? "left rotate by 90 offset 0,0.4" : "center offset 0,0.6") +
              " font 'Sans,17' textcolor rgb '#444444'\n";
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
