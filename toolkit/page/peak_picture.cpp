#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/report/text/shortened_names.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/breakdown_text.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/page/gnuplot_text.hpp>
#include <memprof/toolkit/page/peak_picture.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

constexpr std::array<std::string_view, peak_parts> peak_part_colours{"#cccccc", "#4da6b8", "#e789ab", "#cec0fa", "#e38a42"};

}  // namespace

std::array<bar_slice, peak_parts> stacked(const memory_breakdown& breakdown) {
  std::array<bar_slice, peak_parts> slices{};
  std::int64_t low = 0;
  for (std::size_t index = 0; index < peak_parts; ++index) {
    const std::int64_t whole = std::max<std::int64_t>(0, breakdown.parts[index]);
    const std::int64_t room = std::max<std::int64_t>(0, subtract_saturating(breakdown.peak, low));
    const std::int64_t height = std::min(whole, room);
    slices[index] = {low, low + height, height < whole};
    low += height;
  }
  return slices;
}

namespace {

/// The vertical axis, in bytes.
struct bar_axis {
  std::int64_t greatest_peak = 0;
  std::int64_t end = 1;
  bool has_limits = false;  ///< whether the devices' memory is on it: far above all peaks, it would flatten the bars
  picture_unit unit;
  unit_style style = unit_style::iec;
};

/// Some room above the highest bar, and above the limits unless those are more than three times as high.
[[nodiscard]] bar_axis axis_of(const std::vector<analyzed_space>& bars) {
  bar_axis axis;
  std::int64_t greatest_limit = 0;
  for (const analyzed_space& bar : bars) {
    axis.greatest_peak = std::max(axis.greatest_peak, bar.breakdown.peak);
    greatest_limit = std::max(greatest_limit, bar.breakdown.device_memory.value_or(0));
  }
  axis.has_limits = greatest_limit > 0 && (axis.greatest_peak == 0 || greatest_limit / 3 <= axis.greatest_peak);
  const std::int64_t greatest = std::max(axis.greatest_peak, axis.has_limits ? greatest_limit : 0);
  constexpr std::int64_t room = 8;  // an eighth above, for the labels
  axis.end = greatest <= 0 ? 1 << 20 : add_saturating(greatest, greatest / room);
  const bool is_tracker = !bars.empty() && std::all_of(bars.begin(), bars.end(),
                                                       [](const analyzed_space& bar) { return is_tracker_log(*bar.profile); });
  axis.style = is_tracker ? unit_style::tracker : unit_style::iec;
  axis.unit = unit_for(greatest, axis.style);
  return axis;
}

void append_canvas(std::string& script, std::size_t bars, std::string_view title, std::string_view unit, picture_format format,
                   std::string_view path) {
  // 6 by 8 inches a bar at 150 dots per inch; cairo's limit is 32767 pixels.
  const std::size_t width = std::min<std::size_t>(900 * std::max<std::size_t>(bars, 1), 30000);
  script += "set encoding utf8\n";
  script += format == picture_format::png ? "set terminal pngcairo" : "set terminal svg";
  script += " noenhanced size " + std::to_string(width) + ",1200 font 'Sans,20' background rgb '#ffffff'\n";
  script += "set output " + gnuplot_string(path) + '\n';
  if (!title.empty()) script += "set title " + gnuplot_string(title) + " font 'Sans Bold,24'\n";
  script += std::string{"set key outside top center horizontal box samplen 1.5 height 0.5 "} +
            (bars > 1 ? "maxrows 2\n" : "maxrows 3 font 'Sans,17'\n");
  script += "set ylabel 'Memory (" + std::string{unit} + ")' font 'Sans Bold,22'\n";
  script += "set grid ytics back linetype 1 dashtype 2 linewidth 1 linecolor rgb '#d9d9d9'\n";
  script += "set border 3\nset xtics nomirror scale 0\nset ytics nomirror\n";
}

}  // namespace

std::vector<double> spread(std::vector<double> wished, double distance, double end) {
  for (std::size_t index = 0; index < wished.size(); ++index) {
    const double least = index == 0 ? distance / 2 : wished[index - 1] + distance;
    wished[index] = std::max(wished[index], least);
  }
  double most = end - distance / 2;
  for (std::size_t index = wished.size(); index-- > 0;) {
    wished[index] = std::min(wished[index], most);
    most -= distance;
  }
  return wished;
}

namespace {

/// The values: inside a bar, beside it where a slice is too low for text, and above it.
void append_labels(std::string& script, const analyzed_space& bar, std::size_t position, const bar_axis& axis) {
  constexpr double least_share_for_text = 0.038;  // of the axis: text in a lower slice would cover its neighbours
  const std::string x = std::to_string(position);
  const double end = axis.unit.of(axis.end);
  const auto slices = stacked(bar.breakdown);
  std::vector<std::string> side_texts;
  std::vector<double> side_places;
  for (std::size_t index = 0; index < peak_parts; ++index) {
    const std::int64_t height = slices[index].high - slices[index].low;
    if (height <= 0) continue;
    const std::string words =
        amount_text(bar.breakdown.parts[index], axis.style) + (slices[index].cut ? " (cut at the peak)" : "");
    const double middle = (axis.unit.of(slices[index].low) + axis.unit.of(slices[index].high)) / 2;
    if (axis.unit.of(height) < least_share_for_text * end) {
      side_texts.push_back(words);
      side_places.push_back(middle);
      continue;
    }
    const std::string place = x + "," + decimal(middle, 6);
    // Not boxed labels, since the SVG terminal fills their boxes with white.
    script += "set object rectangle center " + place + " size character " +
              decimal(0.85 * static_cast<double>(words.size()) + 1, 1) +
              ", character 1 front fillcolor rgb '#000000' fillstyle transparent solid 0.5 noborder\n";
    script +=
        "set label " + gnuplot_string(words) + " at " + place + " center front font 'Sans Bold,18' textcolor rgb '#ffffff'\n";
  }
  const std::vector<double> places = spread(side_places, least_share_for_text * end, end);
  for (std::size_t index = 0; index < places.size(); ++index) {
    const std::string begin = x + ".25," + decimal(side_places[index], 6);
    const std::string place = decimal(places[index], 6);
    script.append("set arrow from ").append(begin).append(" to ").append(x).append(".28,").append(place);
    script.append(" nohead front linecolor rgb '#666666'\nset label ").append(gnuplot_string(side_texts[index]));
    script.append(" at ").append(x).append(".29,").append(place).append(" left front font 'Sans,16'\n");
  }
  std::string total = gnuplot_string("Total: " + amount_text(bar.breakdown.peak, axis.style));
  if (bar.breakdown.excess() > 0) {
    // The label grows downwards from its anchor.
    total = gnuplot_string("(parts: " + amount_text(bar.breakdown.accounted(), axis.style) + ", not live at once)") +
            ".\"\\n\"." + total;
  }
  const bool has_two_lines = bar.breakdown.excess() > 0;
  script += "set label " + total + " at " + x + "," + decimal(axis.unit.of(std::max<std::int64_t>(0, bar.breakdown.peak)), 6) +
            " center offset 0," + (has_two_lines ? "1.9" : "0.9") + " front boxed font 'Sans Bold,18'\n";
}

/// Appends the slices of one part in all bars as a named gnuplot table. Returns whether there are any.
bool append_part_table(std::string& script, const std::vector<analyzed_space>& bars, std::size_t part, const picture_unit& unit) {
  std::string rows;
  for (std::size_t position = 0; position < bars.size(); ++position) {
    const bar_slice slice = stacked(bars[position].breakdown)[part];
    if (slice.high > slice.low) {
      rows += std::to_string(position) + ' ' + decimal(unit.of(slice.low), 6) + ' ' + decimal(unit.of(slice.high), 6) + '\n';
    }
  }
  if (rows.empty()) return false;
  script += "$part_" + std::to_string(part) + " << END_OF_PART\n" + rows + "END_OF_PART\n";
  return true;
}

[[nodiscard]] std::string legend_of(const std::vector<analyzed_space>& bars, std::size_t part) {
  const bool live =
      std::all_of(bars.begin(), bars.end(), [](const analyzed_space& bar) { return bar.breakdown.parts_are_live_at_peak; });
  return std::string{live && part == static_cast<std::size_t>(peak_part::gradients) ? "Gradients" : peak_part_titles[part]};
}

/// What `plot` draws for the devices' memory: a line over all bars, one over each bar if they differ, or only a line in the
/// legend if it is far above. Empty if no device was named.
[[nodiscard]] std::string limits_plot(std::string& script, const std::vector<analyzed_space>& bars, const bar_axis& axis) {
  const std::string style = " with lines dashtype 2 linewidth 3 linecolor rgb '#ff0000' title ";
  std::optional<std::int64_t> one;
  bool is_one = true;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const analyzed_space& bar : bars) {
    is_one = is_one && bar.breakdown.device_memory && (!one || *one == *bar.breakdown.device_memory);
    one = bar.breakdown.device_memory ? bar.breakdown.device_memory : one;
    least = std::min(least, bar.breakdown.device_memory.value_or(least));
  }
  if (!one) return {};
  if (!axis.has_limits) {
    const std::string amount = is_one ? amount_text(*one, axis.style) : "from " + amount_text(least, axis.style);
    return "NaN" + style + gnuplot_string("Limit: " + amount + " (above)");
  }
  if (is_one) return decimal(axis.unit.of(*one), 6) + style + "'Device Memory Limit'";
  script += "$limits << END_OF_LIMITS\n";
  for (std::size_t position = 0; position < bars.size(); ++position) {
    if (!bars[position].breakdown.device_memory) continue;
    const std::string limit = ' ' + decimal(axis.unit.of(*bars[position].breakdown.device_memory), 6) + '\n';
    const auto middle = static_cast<double>(position);
    for (const double end : {middle - 0.5, middle + 0.5}) script += decimal(end, 1) + limit;
    script += '\n';
  }
  script += "END_OF_LIMITS\n";
  return "$limits using 1:2" + style + "'Device Memory Limit'";
}

}  // namespace

}  // namespace detail

std::string peak_picture_script(const std::vector<analyzed_space>& bars, std::string_view title, picture_format format,
                                std::string_view path) {
  constexpr std::size_t letters_a_line = 34;
  const detail::bar_axis axis = detail::axis_of(bars);
  std::string script;
  detail::append_canvas(script, bars.size(), title, axis.unit.name, format, path);
  script += "set style textbox opaque noborder fillcolor rgb '#ffffff' margins 0.3,0.3\n";
  script += "set xrange [-0.5:" + detail::decimal(static_cast<double>(bars.size()) - 0.5, 1) + "]\n";
  script += "set yrange [0:" + detail::decimal(axis.unit.of(axis.end), 6) + "]\n";
  std::string names;
  const std::size_t letters = letters_a_line * static_cast<std::size_t>(detail::gnuplot_most_lines - 1);  // lines may break early
  const std::vector<std::string> whole = titles_of(bars);
  const vector<std::string> titles = detail::shortened_apart({whole.begin(), whole.end()}, letters);
  for (std::size_t position = 0; position < bars.size(); ++position) {
    detail::append_labels(script, bars[position], position, axis);
    names +=
        (names.empty() ? "" : ", ") + detail::gnuplot_lines(titles[position], letters_a_line) + ' ' + std::to_string(position);
  }
  script += "set xtics (" + names + ") font 'Sans Bold,18'\nset bmargin " + std::to_string(detail::gnuplot_most_lines + 1) + '\n';

  std::string plots;
  for (std::size_t part = 0; part < peak_parts; ++part) {
    if (!detail::append_part_table(script, bars, part, axis.unit)) continue;
    plots += "$part_" + std::to_string(part) +
             " using 1:(($2+$3)/2):($1-0.25):($1+0.25):2:3 with boxxyerror fillstyle solid 1 border linecolor rgb '#ffffff' "
             "linewidth 2 fillcolor rgb '" +
             std::string{detail::peak_part_colours[part]} + "' title '" + detail::legend_of(bars, part) + "', ";
  }
  const std::string limits = detail::limits_plot(script, bars, axis);
  return script + "plot " + plots + (limits.empty() ? "NaN notitle" : limits) + '\n';
}

}  // namespace memprof::inline MEMPROF_ABI
