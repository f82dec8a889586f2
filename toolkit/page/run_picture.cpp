#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/shortened_names.hpp>
#include <memprof/report/text/space_kind.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/breakdown_text.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/page/gnuplot_text.hpp>
#include <memprof/toolkit/page/run_picture.hpp>
#include <memprof/toolkit/page/run_picture_rows.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

// Of what is not a part of the peak, also by Okabe and Ito.
constexpr std::string_view line_colour = "#0072b2";
constexpr std::string_view area_colour = "#b9dcf2";  // a lighter #56b4e9
constexpr std::string_view peak_colour = "#d55e00";
constexpr std::string_view capacity_colour = "#a33f00";  // a darker #d55e00: text on white

constexpr int run_picture_width = 1600;

constexpr int timeline_height = 500;  ///< without the segments' names

constexpr int timeline_left = 190;

constexpr int timeline_right = 40;

constexpr int composition_row_height = 56;

constexpr int composition_frame_height = 110;

constexpr int run_title_height = 80;

/// The place of a panel, in pixels from the top of a picture of that height.
struct panel {
  int picture_height = 0;
  int top = 0;
  int height = 0;

  [[nodiscard]] std::string at(int dots_from_top) const {
    return decimal(1.0 - static_cast<double>(dots_from_top) / picture_height, 6);
  }
};

void begin_panel(std::string& script, const panel& place, int left, int right, int above, int below, const std::string& title) {
  const auto across = [](int dots) { return decimal(static_cast<double>(dots) / run_picture_width, 6); };
  script +=
      "unset label\nunset arrow\nunset object\nunset xtics\nunset ytics\nunset xlabel\nunset ylabel\nunset grid\nunset key\n";
  script += "set lmargin at screen " + across(left) + "\nset rmargin at screen " + across(run_picture_width - right) + '\n';
  script += "set tmargin at screen " + place.at(place.top + above) + "\nset bmargin at screen " +
            place.at(place.top + place.height - below) + '\n';
  script += "set label 1 " + gnuplot_string(title) + " at screen " + across(30) + ',' + place.at(place.top + 26) +
            " left font 'Sans Bold,20'\n";
}

/// "dram: peak 14,019.88 MiB after 0.12 ms in BACKWARD_PASS (4 of 6), 0.00 MiB at the end".
[[nodiscard]] std::string timeline_title(const profile& of, const space_profile& space, const std::string& name) {
  std::string text = shortened(on_one_line(name.empty() ? space.name : name), 40) +
                     (has_blocks_on_cores(space) ? ", all cores together" : "") + ": peak " + amount_text(space.cumulative_peak);
  if (!of.provenance.lacks("peak_time_ns")) text += " after " + time_unit_for(space.peak_time_ns).text(space.peak_time_ns);
  if (space.peak_segment >= 0) {
    const auto index = static_cast<std::size_t>(space.peak_segment);
    text += " in " + shortened(on_one_line(space.segments[index].segment), 24) + " " + position_text(of, index);
  }
  return text + ", " + amount_text(space.cumulative_current) + " at the end";
}

/// The vertical axis of a timeline, and the line of the capacity unless it would flatten the rest.
void append_memory_axis(std::string& script, const space_profile& space, const picture_unit& unit) {
  constexpr int max_times_the_peak = 2;
  const bool shows_capacity =
      space.capacity > 0 && !space.capacity_is_per_core && space.capacity / max_times_the_peak <= space.cumulative_peak;
  const std::int64_t greatest = std::max({shows_capacity ? space.capacity : 0, space.cumulative_peak, std::int64_t{1}});
  script += "set yrange [0:" + decimal(unit.of(greatest) * 1.15, 6) + "]\n";
  script += "set ytics nomirror font 'Sans,20'\nset grid ytics back linetype 1 linewidth 1 linecolor rgb '#dddddd'\n";
  script += "set ylabel 'live bytes (" + std::string{unit.name} + ")' font 'Sans,20'\n";
  if (!shows_capacity) return;
  const std::string height = decimal(unit.of(space.capacity), 6);
  script += "set arrow from graph 0, first " + height + " to graph 1, first " + height +
            " nohead front dashtype 2 linewidth 2 linecolor rgb '" + std::string{capacity_colour} + "'\n";
  script += "set label " + gnuplot_string("capacity " + amount_text(space.capacity)) + " at graph 0.99, first " + height +
            " right offset 0,0.6 front font 'Sans,18' textcolor rgb '" + std::string{capacity_colour} + "'\n";
}

/// The end of the time axis.
[[nodiscard]] std::int64_t timeline_end(const profile& of, const space_profile& space) {
  std::int64_t end = of.duration_ns;
  for (const segment& one : of.segments) end = std::max(end, one.end_ns);
  return space.timeline.points.empty() ? end : std::max(end, space.timeline.points.back().time_ns);
}

/// Live bytes over time, if the profile has them.
void append_timeline(std::string& script, const profile& of, const space_profile& space, const picture_unit& unit,
                     const segment_bands& segments) {
  const vector<timeline_point>& points = space.timeline.points;
  const std::int64_t end = timeline_end(of, space);
  const time_unit time = time_unit_for(end);
  script += "$timeline << END_OF_TIMELINE\n";
  for (const timeline_point& point : points) {
    script += decimal(time.of(point.time_ns), 6) + ' ' + decimal(unit.of(point.peak), 6) + ' ' +
              decimal(unit.of(point.current), 6) + '\n';
  }
  script += decimal(time.of(end), 6) + ' ' + decimal(unit.of(points.back().current), 6) + ' ' +
            decimal(unit.of(points.back().current), 6) + "\nEND_OF_TIMELINE\n";
  script += "set xrange [0:" + decimal(std::max(time.of(end), 1e-6), 6) + "]\n";
  script += "set xtics nomirror font 'Sans,20'\nset xlabel 'time (" + std::string{time.name} + ")' font 'Sans,20'\n";
  append_bands(script, segments);
  script += "set label '' at first " + decimal(time.of(space.peak_time_ns), 6) + ", first " +
            decimal(unit.of(space.cumulative_peak), 6) + " point pointtype 7 pointsize dot linecolor rgb '" +
            std::string{peak_colour} + "' front\n";
  script += "plot $timeline using 1:2 with fillsteps fillstyle solid 1 fillcolor rgb '" + std::string{area_colour} +
            "' notitle, $timeline using 1:2 with steps linewidth 2 linecolor rgb '" + std::string{line_colour} +
            "' notitle, $timeline using 1:3 with steps linewidth 1 linecolor rgb '" + std::string{line_colour} + "' notitle\n";
}

/// The segments as bars up to their peaks, with points for what was live at their ends.
void append_segment_bars(std::string& script, const space_profile& space, const picture_unit& unit) {
  constexpr std::size_t max_names = 24;
  const std::size_t count = space.segments.size();
  if (count == 0) {  // gnuplot fails on an empty table
    script += "set xrange [0:1]\nplot NaN notitle\n";
    return;
  }
  script += "$segments << END_OF_SEGMENTS\n";
  std::string names;
  vector<std::string> shown;
  for (const segment_usage& segment : space.segments) shown.push_back(on_one_line(segment.segment));
  shown = shortened_apart(shown, 22);
  for (std::size_t index = 0; index < count; ++index) {
    const segment_usage& segment = space.segments[index];
    const std::int64_t begin = subtract_saturating(segment.cumulative_current, segment.segment_change);
    script += std::to_string(index + 1) + ' ' +
              decimal(unit.of(std::max<std::int64_t>(0, add_saturating(begin, segment.segment_peak))), 6) + ' ' +
              decimal(unit.of(std::max<std::int64_t>(0, segment.cumulative_current)), 6) + '\n';
    names += (names.empty() ? "" : ", ") + gnuplot_string(shown[index]) + ' ' + std::to_string(index + 1);
  }
  script += "END_OF_SEGMENTS\nset xrange [0.4:" + decimal(static_cast<double>(count) + 0.6, 1) + "]\n";
  if (count <= max_names) {
    script += "set xtics (" + names + ") nomirror scale 0 font 'Sans,18'" + (count > 5 ? " rotate by 25 right\n" : "\n");
  } else {
    script += "set xtics nomirror font 'Sans,20'\nset xlabel 'segment' font 'Sans,20'\n";
  }
  script += "set key at graph 1, graph 1 right bottom horizontal samplen 1.5 font 'Sans,18' nobox\n";
  script +=
      "plot $segments using ($1):($2/2):($1-0.35):($1+0.35):(0):2 with boxxyerror fillstyle solid 1 noborder fillcolor rgb '" +
      std::string{area_colour} +
      "' title 'peak of the segment', $segments using 1:3 with points pointtype 7 pointsize dot "
      "linecolor rgb '" +
      std::string{line_colour} + "' title 'live at its end'\n";
}

/// "12.3 %", or "< 0.1 %" for a smaller share that is not zero.
[[nodiscard]] std::string share_text(std::int64_t part, std::int64_t whole) {
  const std::string text = percent_of(part, whole);
  return text == "0.0 %" && part > 0 ? "< 0.1 %" : text;
}

/// What was live at the peak, as horizontal bars with their names and values.
void append_composition(std::string& script, const composition_rows& rows, std::int64_t whole) {
  std::int64_t greatest = 1;
  for (const composition_row& row : rows.rows) greatest = std::max(greatest, row.bytes);
  const picture_unit unit = unit_for(greatest);
  script += "set border 2\nset xrange [0:" + decimal(unit.of(greatest) * 1.45, 6) + "]\n";
  script += "set yrange [" + decimal(static_cast<double>(std::max<std::size_t>(rows.rows.size(), 1)) - 0.45, 2) + ":-0.55]\n";
  std::string names;
  for (std::size_t index = 0; index < rows.rows.size(); ++index) {
    const composition_row& row = rows.rows[index];
    const std::string y = std::to_string(index);
    names += (names.empty() ? "" : ", ") + gnuplot_string(row.name) + ' ' + y;
    const std::int64_t drawn = std::max<std::int64_t>(0, row.bytes);
    const std::string end = decimal(unit.of(drawn), 6);
    script += "set object rectangle from 0," + decimal(static_cast<double>(index) - 0.32, 2) + " to " + end + ',' +
              decimal(static_cast<double>(index) + 0.32, 2) + " front fillcolor rgb '" + std::string{row.colour} +
              "' fillstyle solid 1 noborder\n";
    script.append("set label ").append(gnuplot_string(amount_text(row.bytes) + "   " + share_text(row.bytes, whole)));
    script.append(" at ").append(end).append(",").append(y).append(" left offset 0.8,0 front font 'Sans,20'\n");
  }
  if (!names.empty()) script += "set ytics (" + names + ") nomirror scale 0 font 'Sans,20'\n";
  script += "plot NaN notitle\nset border 3\n";
}

}  // namespace

}  // namespace detail

std::string run_picture_script(const std::vector<drawn_space>& spaces, const run_picture_options& options, picture_format format,
                               std::string_view path) {
  using namespace detail;
  std::vector<composition_rows> compositions;
  std::vector<segment_bands> segments;
  int height = options.title.empty() ? 0 : run_title_height;
  for (const auto& [of, space, name] : spaces) {
    const bool has_timeline = !space->timeline.points.empty();
    segments.push_back(has_timeline ? bands_of(*of, timeline_end(*of, *space), run_picture_width - timeline_left - timeline_right)
                                    : segment_bands{{}, {}, 50});
    compositions.push_back(composition_of(*of, *space, options.by));
    height += timeline_height + segments.back().height + composition_frame_height +
              composition_row_height * static_cast<int>(compositions.back().rows.size());
  }
  std::string script = "set encoding utf8\n";
  script += format == picture_format::png ? "set terminal pngcairo" : "set terminal svg";
  script += " noenhanced size " + std::to_string(run_picture_width) + ',' + std::to_string(height) +
            " font 'Sans,20' background rgb '#ffffff'\nset output " + gnuplot_string(path) + "\nset multiplot\nset border 3\n";
  script += format == picture_format::png ? "dot = 2.0\n" : "dot = 0.7\n";  // the terminals differ in the size of 1
  panel place{height, options.title.empty() ? 0 : run_title_height, 0};
  for (std::size_t index = 0; index < spaces.size(); ++index) {
    const auto& [of, space, name] = spaces[index];
    const picture_unit unit = unit_for(space->cumulative_peak);
    place.height = timeline_height + segments[index].height;
    const bool has_timeline = !space->timeline.points.empty();
    begin_panel(script, place, timeline_left, timeline_right, 45 + segments[index].height, has_timeline ? 90 : 110,
                timeline_title(*of, *space, name));
    if (index == 0 && !options.title.empty()) {
      script += "set label 2 " + gnuplot_string(shortened(on_one_line(options.title), 90)) + " at screen 0.5," +
                place.at(run_title_height / 2) + " center font 'Sans Bold,26'\n";
    }
    append_memory_axis(script, *space, unit);
    has_timeline ? append_timeline(script, *of, *space, unit, segments[index]) : append_segment_bars(script, *space, unit);
    place.top += place.height;

    const composition_rows& rows = compositions[index];
    place.height = composition_frame_height + composition_row_height * static_cast<int>(rows.rows.size());
    begin_panel(script, place, rows.name_width, timeline_right, 55, 40, rows.title);
    append_composition(script, rows, space->cumulative_peak);
    place.top += place.height;
  }
  return script + "unset multiplot\n";
}

}  // namespace memprof::inline MEMPROF_ABI
