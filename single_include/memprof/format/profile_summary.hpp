#pragma once

#include <memprof/memprof.hpp>

#include <memprof/format/memory_summary.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace memprof {

namespace detail {

/// The first allocation that exceeded the capacity, as a remark.
[[nodiscard]] inline std::string shortfall_remark(const profile& captured, const space_profile& space) {
  const capacity_shortfall& full = space.first_shortfall;
  std::string text = "an allocation of " + std::to_string(full.requested) + " bytes";
  if (!full.core.empty()) text += " on core " + full.core;
  if (!full.operation.empty()) text += " in operation " + full.operation;
  const auto index = static_cast<std::size_t>(full.segment);
  if (full.segment >= 0 && index < captured.segments.size()) text += " in segment " + captured.segments[index].name;
  return text + " was the first beyond the capacity: " + std::to_string(full.free) + " bytes were free";
}

/// Why the capacity of a core is not the device's memory.
[[nodiscard]] inline std::string core_capacity_remark(const space_profile& space) {
  return "each core has " + std::to_string(space.capacity) + " bytes of " + space.name +
         ", but the bytes here are those of all cores together: the device memory is not that of the profile";
}

}  // namespace detail

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
  result.device = captured.device;
  if (space.capacity_is_per_core) {
    result.remarks.push_back(detail::core_capacity_remark(space));
  } else if (space.capacity != 0) {
    result.capacity = space.capacity;
  }
  if (space.first_shortfall.requested != 0) result.remarks.push_back(detail::shortfall_remark(captured, space));
  if (!captured.exact) result.remarks.emplace_back("the profile is not exact: events were lost, so the bytes may be too small");
  if (!captured.complete) result.remarks.emplace_back("the capture had not ended: the bytes are those so far");
  if (captured.mode == run_mode::no_dispatch) {
    result.remarks.emplace_back("run mode no_dispatch: sizes and lifetimes are real, nothing was allocated");
  }
  return result;
}

}  // namespace memprof
