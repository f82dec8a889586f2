#pragma once

#include <memprof/analysis/memory_breakdown.hpp>
#include <memprof/format/memory_summary.hpp>
#include <memprof/report/text/text_format.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The tables of `memprof analyze`: those of tt-train's analyze_memory.py line for line, and what it does not tell.

namespace memprof {

/// A summary and what was found out about it.
struct analyzed_summary {
  memory_summary summary;
  memory_breakdown breakdown;
};

/// What the parts of a peak are called, in the order of `peak_part`.
inline constexpr std::array<std::string_view, peak_parts> peak_part_titles{"Other", "Model Parameters", "Gradients Overhead",
                                                                           "Optimizer State", "Activations"};

namespace detail {

/// The text of a number with a comma between groups of three digits before its point.
[[nodiscard]] inline std::string with_thousands(std::string digits) {
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  const std::size_t point = digits.find('.');
  for (std::size_t index = point == std::string::npos ? digits.size() : point; index > first + 3;) {
    index -= 3;
    digits.insert(index, 1, ',');
  }
  return digits;
}

[[nodiscard]] inline double in_megabytes(std::int64_t bytes) { return static_cast<double>(bytes) / 0x1p20; }

/// "1,863.25 MB".
[[nodiscard]] inline std::string grouped_megabytes(std::int64_t bytes) {
  return with_thousands(decimal(in_megabytes(bytes), 2)) + " MB";
}

/// "+0.77%", "-1.00%", "+0.00%".
[[nodiscard]] inline std::string signed_percent(double value) {
  return (std::signbit(value) ? "" : "+") + decimal(value, 2) + "%";
}

[[nodiscard]] inline std::string percent_of(std::int64_t part, std::int64_t whole) {
  return decimal(whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole), 1) + " %";
}

inline void append_rule(std::string& text, const std::string& line) {
  const std::string rule(80, '=');
  text += '\n' + rule + '\n' + line + '\n' + rule + '\n';
}

/// "  Label:                value", aligned as the script does.
inline void append_value(std::string& text, std::string_view label, const std::string& value) {
  constexpr std::size_t width = 22;
  std::string start{label};
  start.resize(std::max(width, start.size() + 1), ' ');
  text += "  " + start + value + '\n';
}

inline void append_comparison(std::string& text, std::string_view title, const compared_size& size) {
  if (!size.actual) return;
  text += "\n--- " + std::string{title} + " ---\n";
  append_value(text, "Actual (from logs):", grouped_megabytes(*size.actual));
  append_value(text, "Expected (input):", size.expected ? grouped_megabytes(*size.expected) : "unknown");
  if (const auto difference = size.difference_percent()) append_value(text, "Difference:", signed_percent(*difference));
}

[[nodiscard]] inline std::string position_text(std::size_t index, std::size_t count) {
  return "(" + std::to_string(index + 1) + " of " + std::to_string(count) + ")";
}

/// Where the device's memory comes from, if neither the caller told it nor the script's is assumed.
[[nodiscard]] inline std::string device_text(const memory_summary& summary, const memory_breakdown& breakdown) {
  if (breakdown.device_memory_from != device_memory_source::profile) return {};
  const std::string device = summary.device.empty() ? std::string{"its device"} : on_one_line(summary.device);
  return " (from the profile: " + on_one_line(summary.space) + " of " + device + ")";
}

inline void append_peak_usage(std::string& text, const memory_summary& summary, const memory_breakdown& breakdown) {
  text += "\n--- Peak DRAM Usage ---\n";
  append_value(text, "Peak DRAM:", grouped_megabytes(breakdown.peak));
  append_value(text, "Device Memory:", grouped_megabytes(breakdown.device_memory) + device_text(summary, breakdown));
  if (const auto usage = breakdown.usage_percent()) append_value(text, "Usage:", decimal(*usage, 2) + "%");
  const std::int64_t room = subtract_saturating(breakdown.device_memory, breakdown.peak);
  append_value(text, "Fits:",
               room >= 0 ? "yes, " + grouped_megabytes(room) + " to spare"
                         : "no, " + grouped_megabytes(subtract_saturating(0, room)) + " too much");
  if (!summary.peak_segment) return;
  append_value(text, "Peak Segment:",
               on_one_line(summary.segments[*summary.peak_segment].segment) + " " +
                   position_text(*summary.peak_segment, summary.segments.size()));
}

inline void append_parts(std::string& text, const memory_breakdown& breakdown) {
  text += breakdown.parts_are_live_at_peak ? "\n--- Peak Breakdown (live at the peak) ---\n"
                                           : "\n--- Peak Breakdown (by phases) ---\n";
  // As in the picture: top part first.
  for (std::size_t index = peak_parts; index-- > 0;) {
    const bool gradients = index == static_cast<std::size_t>(peak_part::gradients);
    const std::string title{gradients && breakdown.parts_are_live_at_peak ? "Gradients" : peak_part_titles[index]};
    append_value(text, title + ":",
                 right_aligned(grouped_megabytes(breakdown.parts[index]), 14) +
                     right_aligned(percent_of(breakdown.parts[index], breakdown.peak), 9));
  }
  if (breakdown.excess() == 0) return;
  text += "  The parts without Other are " + grouped_megabytes(breakdown.accounted()) + ", " +
          grouped_megabytes(breakdown.excess()) + " more than the peak: they were not live at the same moment.\n";
}

/// The first segments, and the one with the peak.
inline void append_segment_table(std::string& text, const memory_summary& summary) {
  if (summary.segments.empty()) return;
  constexpr std::size_t width = 16;
  constexpr std::size_t most = 40;
  text += "\n--- Segments ---\n";
  for (const std::string_view title : {"Segment Peak", "Segment Change", "Cumul. Peak", "Cumul. Current"}) {
    text += right_aligned(std::string{title}, width);
  }
  text += "  Segment\n";
  std::int64_t left_out = 0;
  for (std::size_t index = 0; index < summary.segments.size(); ++index) {
    const bool is_peak = summary.peak_segment == index;
    if (index >= most && !is_peak) {
      ++left_out;
      continue;
    }
    const segment_usage& segment = summary.segments[index];
    text += right_aligned(grouped_megabytes(segment.segment_peak), width);
    text += right_aligned((segment.segment_change < 0 ? "" : "+") + grouped_megabytes(segment.segment_change), width);
    text += right_aligned(grouped_megabytes(segment.cumulative_peak), width);
    text += right_aligned(grouped_megabytes(segment.cumulative_current), width);
    text += "  " + on_one_line(segment.segment) + (is_peak ? "  <- overall peak\n" : "\n");
  }
  if (left_out > 0) text += "  (" + counted(left_out, "segment is", "segments are") + " left out here; --json has all)\n";
}

inline void append_notes(std::string& text, const analyzed_summary& analyzed) {
  if (analyzed.summary.remarks.empty() && analyzed.breakdown.remarks.empty()) return;
  text += "\n--- Notes ---\n";
  for (const auto* const remarks : {&analyzed.summary.remarks, &analyzed.breakdown.remarks}) {
    for (const std::string& remark : *remarks) text += "  " + on_one_line(remark) + ".\n";
  }
}

/// Where the summary stands: "train.log, line 12, rank 3".
[[nodiscard]] inline std::string place_text(const memory_summary& summary) {
  std::string text = on_one_line(summary.source);
  text += summary.line != 0 ? ", line " + std::to_string(summary.line) : ", memory space " + on_one_line(summary.space);
  if (!summary.rank.empty()) text += ", rank " + on_one_line(summary.rank);
  return text;
}

}  // namespace detail

/// What a summary is called in tables and pictures: its section, or else its file without the folders.
[[nodiscard]] inline std::string title_of(const memory_summary& summary) {
  const std::string_view file = std::string_view{summary.source}.substr(summary.source.rfind('/') + 1);
  std::string title = detail::on_one_line(summary.section.empty() ? file : summary.section);
  if (!summary.rank.empty()) title += " (rank " + detail::on_one_line(summary.rank) + ")";
  return title;
}

/// The tables of one summary, as tt-train's analyze_memory.py prints them, then what the peak is made of, all segments, and what
/// has to be known about the numbers. MB is 2^20 bytes.
[[nodiscard]] inline std::string to_text(const analyzed_summary& analyzed) {
  const auto& [summary, breakdown] = analyzed;
  std::string text;
  detail::append_rule(text, "Section: " + title_of(summary));
  if (summary.parameters) text += "Number of parameters: " + detail::with_thousands(std::to_string(*summary.parameters)) + '\n';
  text += "Read from: " + detail::place_text(summary) + '\n';
  detail::append_comparison(text, "Model Size", breakdown.model);
  detail::append_comparison(text, "Optimizer State", breakdown.optimizer);
  if (breakdown.activations) {
    text += "\n--- Activations Size ---\n";
    detail::append_value(text, "Activations:", detail::grouped_megabytes(*breakdown.activations));
  }
  detail::append_comparison(text, "Gradients Size", breakdown.gradients);
  detail::append_peak_usage(text, summary, breakdown);
  detail::append_parts(text, breakdown);
  detail::append_segment_table(text, summary);
  detail::append_notes(text, analyzed);
  return text;
}

/// The whole report: how many summaries there are, the model size where it comes from the logs, and the tables of each.
[[nodiscard]] inline std::string to_text(const std::vector<analyzed_summary>& analyzed, const breakdown_options& options) {
  std::string text = "Found " + std::to_string(analyzed.size()) + " memory usage summary/summaries\n";
  if (!options.model_size) {
    std::optional<std::int64_t> told;
    for (const auto& [summary, breakdown] : analyzed) {
      if (!summary.parameters || summary.parameters == told) continue;
      told = summary.parameters;
      text += "Model size not provided, calculated from logs: " + detail::megabytes(*breakdown.model.expected) + " (" +
              detail::with_thousands(std::to_string(*told)) + " parameters, assuming bf16)\n";
    }
    if (!told) text += "Model size not provided and not in the logs: give --model-size to compare with what is expected\n";
  }
  for (const analyzed_summary& one : analyzed) text += to_text(one);
  detail::append_rule(text, "Analysis complete");
  return text + '\n';
}

}  // namespace memprof
