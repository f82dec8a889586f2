#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/format/memory_summary.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// @file
/// The rules that tie a summary's numbers to each other: they fill in what a log lacks, and tell when its parts contradict.

namespace memprof::detail {

/// 0.01 MB, the last digit of a log.
inline constexpr std::int64_t tracker_resolution = 10486;

/// Two numbers of a log that differ by less agree: up to three rounded ones stand behind a difference.
inline constexpr std::int64_t tracker_tolerance = 2 * tracker_resolution;

[[nodiscard]] inline bool agree(std::int64_t left, std::int64_t right) noexcept {
  return subtract_saturating(std::max(left, right), std::min(left, right)) <= tracker_tolerance;
}

/// The cumulative values of a segment that follows those of the summary.
inline void compute_cumulative(const memory_summary& summary, segment_usage& segment) {
  const std::int64_t current = summary.segments.empty() ? 0 : summary.segments.back().cumulative_current;
  const std::int64_t peak = summary.segments.empty() ? 0 : summary.segments.back().cumulative_peak;
  segment.cumulative_peak = std::max(peak, add_saturating(current, segment.segment_peak));
  segment.cumulative_current = add_saturating(current, segment.segment_change);
}

/// The index of the segment that reached the greatest cumulative peak first; there must be a segment.
[[nodiscard]] inline std::size_t segment_of_peak(const memory_summary& summary) {
  const auto lower = [](const segment_usage& left, const segment_usage& right) {
    return left.cumulative_peak < right.cumulative_peak;
  };
  return static_cast<std::size_t>(std::max_element(summary.segments.begin(), summary.segments.end(), lower) -
                                  summary.segments.begin());
}

/// Adds a remark for the first segment that does not continue the one before it.
inline void check_continuity(memory_summary& summary) {
  for (std::size_t index = 1; index < summary.segments.size(); ++index) {
    const segment_usage& before = summary.segments[index - 1];
    const segment_usage& segment = summary.segments[index];
    if (agree(segment.cumulative_current, add_saturating(before.cumulative_current, segment.segment_change))) continue;
    summary.remarks.push_back("the cumulative values of segment " + segment.segment + " (" + std::to_string(index + 1) + " of " +
                              std::to_string(summary.segments.size()) +
                              ") do not continue the segment before it: something is missing between them");
    return;
  }
}

/// Ends a summary whose log states the totals.
inline void state_totals(memory_summary& summary, std::int64_t overall_peak, std::optional<std::int64_t> final_usage) {
  summary.overall_peak = overall_peak;
  if (summary.segments.empty()) {
    summary.final_usage = final_usage.value_or(0);
    summary.remarks.emplace_back("the summary has totals, but no segment");
    return;
  }
  summary.final_usage = final_usage.value_or(summary.segments.back().cumulative_current);
  summary.peak_segment = segment_of_peak(summary);
  check_continuity(summary);
  const std::int64_t greatest = summary.segments[*summary.peak_segment].cumulative_peak;
  if (agree(greatest, overall_peak)) return;
  summary.remarks.emplace_back(greatest < overall_peak ? "the overall peak is above the peaks of all segments that are there"
                                                       : "the overall peak is below the peak of a segment");
}

/// Ends a summary whose log breaks off before the totals; there must be a segment.
inline void compute_totals(memory_summary& summary) {
  summary.remarks.emplace_back("the final totals are missing: overall peak and final usage are computed from the segments");
  summary.peak_segment = segment_of_peak(summary);
  summary.overall_peak = summary.segments[*summary.peak_segment].cumulative_peak;
  summary.final_usage = summary.segments.back().cumulative_current;
  check_continuity(summary);
}

}  // namespace memprof::detail
