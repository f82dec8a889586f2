#pragma once

#include <memprof/analysis/memory_breakdown.hpp>
#include <memprof/report/breakdown_text.hpp>
#include <memprof/report/gnuplot_text.hpp>
#include <memprof/report/text/text_format.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The peaks as stacked bars, drawn by gnuplot: the bars, colours and order of tt-train's analyze_memory.py.

namespace memprof {

enum class picture_format : std::uint8_t { png, svg };

namespace detail {

inline constexpr std::array<std::string_view, peak_parts> peak_part_colours{"#cccccc", "#4da6b8", "#e789ab", "#cec0fa",
                                                                            "#e38a42"};

/// A part as it is drawn, in MB.
struct bar_slice {
  double low = 0;
  double high = 0;
  bool cut = false;  ///< drawn lower than it is, as the bar must not exceed the peak
};

/// The slices of a bar, bottom first. A negative part has no height; the topmost parts are cut at the peak.
[[nodiscard]] inline std::array<bar_slice, peak_parts> stacked(const memory_breakdown& breakdown) {
  std::array<bar_slice, peak_parts> slices{};
  std::int64_t low = 0;
  for (std::size_t index = 0; index < peak_parts; ++index) {
    const std::int64_t whole = std::max<std::int64_t>(0, breakdown.parts[index]);
    const std::int64_t room = std::max<std::int64_t>(0, subtract_saturating(breakdown.peak, low));
    const std::int64_t height = std::min(whole, room);
    slices[index] = {in_megabytes(low), in_megabytes(low + height), height < whole};
    low += height;
  }
  return slices;
}

/// The end of both axes, in MB: a tenth above all bars and limits.
[[nodiscard]] inline double axis_end(const std::vector<analyzed_summary>& bars) {
  std::int64_t greatest = 0;
  for (const analyzed_summary& bar : bars) greatest = std::max({greatest, bar.breakdown.peak, bar.breakdown.device_memory});
  return greatest == 0 ? 1.0 : in_megabytes(greatest) * 1.1;
}

inline void append_canvas(std::string& script, std::size_t bars, std::string_view title, picture_format format,
                          std::string_view path) {
  // 6 by 8 inches a bar at 150 dots an inch; cairo ends at 32767 dots.
  const std::size_t width = std::min<std::size_t>(900 * std::max<std::size_t>(bars, 1), 30000);
  script += "set encoding utf8\n";
  script += format == picture_format::png ? "set terminal pngcairo" : "set terminal svg";
  script += " noenhanced size " + std::to_string(width) + ",1200 font 'Sans,20' background rgb '#ffffff'\n";
  script += "set output " + gnuplot_string(path) + '\n';
  if (!title.empty()) script += "set title " + gnuplot_string(title) + " font 'Sans Bold,24'\n";
  script += std::string{"set key outside top center horizontal box samplen 1.5 height 0.5 "} +
            (bars > 1 ? "maxrows 2\n" : "maxrows 3 font 'Sans,17'\n");
  script += "set ylabel 'Memory (MB)' font 'Sans Bold,22'\n";
  script += "set grid ytics back linetype 1 dashtype 2 linewidth 1 linecolor rgb '#d9d9d9'\n";
  script += "set border 3\nset xtics nomirror scale 0\nset ytics nomirror\n";
}

/// The values in a bar and above it.
inline void append_labels(std::string& script, const analyzed_summary& bar, std::size_t position, double end) {
  constexpr double least_share_for_text = 0.03;  // of the axis: text in a lower slice would cover its neighbours
  const std::string x = std::to_string(position);
  const auto slices = stacked(bar.breakdown);
  for (std::size_t index = 0; index < peak_parts; ++index) {
    const double height = slices[index].high - slices[index].low;
    if (height <= 0) continue;
    const std::string words =
        decimal(in_megabytes(bar.breakdown.parts[index]), 0) + " MB" + (slices[index].cut ? " (cut at the peak)" : "");
    if (height >= least_share_for_text * end) {
      const std::string place = x + "," + decimal((slices[index].low + slices[index].high) / 2, 3);
      // Boxed labels would do, but the SVG terminal fills their boxes with white.
      script += "set object rectangle center " + place + " size character " +
                decimal(0.85 * static_cast<double>(words.size()) + 1, 1) +
                ", character 1 front fillcolor rgb '#000000' fillstyle transparent solid 0.5 noborder\n";
      script +=
          "set label " + gnuplot_string(words) + " at " + place + " center front font 'Sans Bold,18' textcolor rgb '#ffffff'\n";
    } else {
      script += "set label " + gnuplot_string(words) + " at " + x + ".27," +
                decimal(std::max((slices[index].low + slices[index].high) / 2, 0.012 * end), 3) + " left front font 'Sans,16'\n";
    }
  }
  std::string total = "Total: " + decimal(in_megabytes(bar.breakdown.peak), 0) + " MB";
  if (bar.breakdown.excess() > 0) {
    total += " (parts: " + decimal(in_megabytes(bar.breakdown.accounted()), 0) + " MB, not live at once)";
  }
  script += "set label " + gnuplot_string(total) + " at " + x + "," + decimal(in_megabytes(bar.breakdown.peak), 3) +
            " center offset 0,0.7 front font 'Sans Bold,18'\n";
}

/// The slices of one part in all bars, as a named table of gnuplot. Returns whether there are any.
inline bool append_table(std::string& script, const std::vector<analyzed_summary>& bars, std::size_t part) {
  std::string rows;
  for (std::size_t position = 0; position < bars.size(); ++position) {
    const bar_slice slice = stacked(bars[position].breakdown)[part];
    if (slice.high > slice.low) {
      rows += std::to_string(position) + ' ' + decimal(slice.low, 6) + ' ' + decimal(slice.high, 6) + '\n';
    }
  }
  if (rows.empty()) return false;
  script += "$part_" + std::to_string(part) + " << END_OF_PART\n" + rows + "END_OF_PART\n";
  return true;
}

[[nodiscard]] inline std::string legend_of(const std::vector<analyzed_summary>& bars, std::size_t part) {
  const bool live =
      std::all_of(bars.begin(), bars.end(), [](const analyzed_summary& bar) { return bar.breakdown.parts_are_live_at_peak; });
  return std::string{live && part == static_cast<std::size_t>(peak_part::gradients) ? "Gradients" : peak_part_titles[part]};
}

/// The device's memory over each bar, as a named table of gnuplot, and how to plot it: one line if it is the same for all bars.
[[nodiscard]] inline std::string append_limits(std::string& script, const std::vector<analyzed_summary>& bars) {
  if (bars.empty()) return decimal(0, 6);
  const std::int64_t first = bars.front().breakdown.device_memory;
  const auto is_first = [&](const analyzed_summary& bar) { return bar.breakdown.device_memory == first; };
  if (std::all_of(bars.begin(), bars.end(), is_first)) return decimal(in_megabytes(first), 6);
  script += "$limits << END_OF_LIMITS\n";
  for (std::size_t position = 0; position < bars.size(); ++position) {
    const std::string limit = ' ' + decimal(in_megabytes(bars[position].breakdown.device_memory), 6) + '\n';
    const auto middle = static_cast<double>(position);
    for (const double end : {middle - 0.5, middle + 0.5}) script += decimal(end, 1) + limit;
    script += '\n';
  }
  script += "END_OF_LIMITS\n";
  return "$limits using 1:2";
}

}  // namespace detail

/// The script with which gnuplot (5.4 or later) draws one bar a summary, into the file `path`: bottom to top other, model,
/// gradients, optimizer and activations, and the device's memory as a red dashed line, in
/// steps where the bars are of different devices. No bar is taller than its peak. Text from
/// logs is quoted such that gnuplot cannot take it for commands.
[[nodiscard]] inline std::string peak_picture_script(const std::vector<analyzed_summary>& bars, std::string_view title,
                                                     picture_format format, std::string_view path) {
  constexpr std::size_t letters_a_line = 34;
  const double end = detail::axis_end(bars);
  std::string script;
  detail::append_canvas(script, bars.size(), title, format, path);
  script += "set xrange [-0.5:" + detail::decimal(static_cast<double>(bars.size()) - 0.5, 1) + "]\n";
  script += "set yrange [0:" + detail::decimal(end, 6) + "]\n";
  std::string names;
  for (std::size_t position = 0; position < bars.size(); ++position) {
    detail::append_labels(script, bars[position], position, end);
    names += (names.empty() ? "" : ", ") + detail::gnuplot_lines(title_of(bars[position].summary), letters_a_line) + ' ' +
             std::to_string(position);
  }
  script += "set xtics (" + names + ") font 'Sans Bold,18'\nset bmargin " + std::to_string(detail::gnuplot_most_lines + 1) + '\n';

  std::string plots;
  for (std::size_t part = 0; part < peak_parts; ++part) {
    if (!detail::append_table(script, bars, part)) continue;
    plots += "$part_" + std::to_string(part) +
             " using 1:(($2+$3)/2):($1-0.25):($1+0.25):2:3 with boxxyerror fillstyle solid 1 border linecolor rgb '#ffffff' "
             "linewidth 2 fillcolor rgb '" +
             std::string{detail::peak_part_colours[part]} + "' title '" + detail::legend_of(bars, part) + "', ";
  }
  const std::string limits = detail::append_limits(script, bars);
  script += "plot " + plots + limits + " with lines dashtype 2 linewidth 3 linecolor rgb '#ff0000' title 'Device Memory Limit'\n";
  return script;
}

}  // namespace memprof
