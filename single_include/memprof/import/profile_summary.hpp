#pragma once

#include <memprof/memprof.hpp>

#include <memprof/import/memory_summary.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace memprof {

/// One memory space of a profile as a summary. `source` names the profile in reports. `space` must be one of the profile's.
[[nodiscard]] inline memory_summary summarize(const profile& captured, const space_profile& space, std::string_view source) {
  memory_summary result;
  result.source = source;
  result.space = space.name;
  result.segments = space.segments;
  for (std::size_t index = 0; index < result.segments.size(); ++index) {
    result.segments[index].segment = captured.segments[index].name;
  }
  result.overall_peak = space.cumulative_peak;
  result.final_usage = space.cumulative_current;
  if (space.peak_segment >= 0) result.peak_segment = static_cast<std::size_t>(space.peak_segment);
  result.live_at_peak = space.live_at_peak;
  if (!captured.exact) result.remarks.emplace_back("the profile is not exact: events were lost, so the bytes may be too small");
  if (!captured.complete) result.remarks.emplace_back("the capture had not ended: the bytes are those so far");
  if (captured.mode == run_mode::no_dispatch) {
    result.remarks.emplace_back("run mode no_dispatch: sizes and lifetimes are real, nothing was allocated");
  }
  return result;
}

}  // namespace memprof
