#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_totals.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// Numbers of a log that differ by less agree: a difference may involve three rounded numbers.
constexpr std::int64_t tracker_tolerance = 2 * tracker_resolution;

bool agree(std::int64_t left, std::int64_t right) noexcept {
  return subtract_saturating(std::max(left, right), std::min(left, right)) <= tracker_tolerance;
}

}  // namespace

void compute_cumulative(const space_profile& space, segment_usage& segment) {
  const std::int64_t current = space.segments.empty() ? 0 : space.segments.back().cumulative_current;
  const std::int64_t peak = space.segments.empty() ? 0 : space.segments.back().cumulative_peak;
  segment.cumulative_peak = std::max(peak, add_saturating(current, segment.segment_peak));
  segment.cumulative_current = add_saturating(current, segment.segment_change);
}

namespace {

/// The index of the segment that reached the greatest cumulative peak first; there must be a segment.
std::size_t segment_of_peak(const space_profile& space) {
  const auto lower = [](const segment_usage& left, const segment_usage& right) {
    return left.cumulative_peak < right.cumulative_peak;
  };
  return static_cast<std::size_t>(std::max_element(space.segments.begin(), space.segments.end(), lower) - space.segments.begin());
}

/// Adds a remark on the first segment that does not continue the one before it.
void check_continuity(profile& summary) {
  const vector<segment_usage>& segments = space_of(summary).segments;
  for (std::size_t index = 1; index < segments.size(); ++index) {
    const segment_usage& before = segments[index - 1];
    const segment_usage& segment = segments[index];
    if (agree(segment.cumulative_current, add_saturating(before.cumulative_current, segment.segment_change))) continue;
    summary.provenance.remarks.push_back("the cumulative values of segment " + segment.segment + " (" +
                                         std::to_string(index + 1) + " of " + std::to_string(segments.size()) +
                                         ") do not continue the segment before it: something is missing between them");
    return;
  }
}

/// Adds a remark on the first segment whose numbers contradict each other.
void check_segments(profile& summary) {
  const vector<segment_usage>& segments = space_of(summary).segments;
  for (std::size_t index = 0; index < segments.size(); ++index) {
    const segment_usage& segment = segments[index];
    const std::int64_t begin = subtract_saturating(segment.cumulative_current, segment.segment_change);
    std::string fault;
    if (segment.segment_peak < 0) {
      fault = "has a negative peak";
    } else if (segment.allocations < 0 || segment.deallocations < 0) {
      fault = "has negative allocations or deallocations";
    } else if (!agree(segment.segment_change, subtract_saturating(segment.allocations, segment.deallocations))) {
      fault = "has a change other than its allocations minus its deallocations";
    } else if (segment.segment_peak < subtract_saturating(segment.segment_change, tracker_tolerance)) {
      fault = "has a peak below its change";
    } else if (segment.cumulative_peak < subtract_saturating(add_saturating(begin, segment.segment_peak), tracker_tolerance)) {
      fault = "has a peak above its cumulative peak";
    } else {
      continue;
    }
    summary.provenance.remarks.push_back("segment " + segment.segment + " (" + std::to_string(index + 1) + " of " +
                                         std::to_string(segments.size()) + ") " + fault + ": the numbers are inconsistent");
    return;
  }
}

/// Ends a summary: derives what follows from its segments, and reports contradictions.
void finish_summary(profile& summary) {
  space_profile& space = space_of(summary);
  for (const segment_usage& segment : space.segments) {
    summary.segments.push_back({segment.segment, 0, 0, summary.segment_count++});
    space.allocations = add_saturating(space.allocations, segment.allocations);
    space.deallocations = add_saturating(space.deallocations, segment.deallocations);
  }
  check_segments(summary);
  check_continuity(summary);
  if (space.cumulative_peak < 0) {
    summary.provenance.remarks.emplace_back("the overall peak is negative");
  }
}

}  // namespace

void state_totals(profile& summary, std::int64_t overall_peak, std::optional<std::int64_t> final_usage) {
  space_profile& space = space_of(summary);
  space.cumulative_peak = overall_peak;
  summary.complete = true;
  if (space.segments.empty()) {
    space.cumulative_current = final_usage.value_or(0);
    summary.provenance.remarks.emplace_back("the summary has totals but no segments");
    return finish_summary(summary);
  }
  space.cumulative_current = final_usage.value_or(space.segments.back().cumulative_current);
  const std::size_t peak_segment = segment_of_peak(space);
  space.peak_segment = static_cast<std::int64_t>(peak_segment);
  finish_summary(summary);
  const std::int64_t greatest = space.segments[peak_segment].cumulative_peak;
  if (agree(greatest, overall_peak)) return;
  summary.provenance.remarks.emplace_back(greatest < overall_peak ? "the overall peak is above the peaks of all segments present"
                                                                  : "the overall peak is below the peak of a segment");
}

void compute_totals(profile& summary) {
  summary.provenance.remarks.emplace_back(
      "the final totals are missing: overall peak and final usage are computed from the segments");
  space_profile& space = space_of(summary);
  const std::size_t peak_segment = segment_of_peak(space);
  space.peak_segment = static_cast<std::int64_t>(peak_segment);
  space.cumulative_peak = space.segments[peak_segment].cumulative_peak;
  space.cumulative_current = space.segments.back().cumulative_current;
  finish_summary(summary);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
