#pragma once

#include <memprof/profile/json.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>
#include <memprof/toolkit/estimate/training_step_text.hpp>

#include <string>

namespace memprof::inline MEMPROF_ABI {

/// A step as JSON: bytes by phase, and what the peak is made of. The whole profile is `to_json(estimate.step)`.
[[nodiscard]] inline nlohmann::ordered_json to_json(const training_estimate& estimate) {
  const space_profile& space = estimate.space();
  nlohmann::ordered_json phases = nlohmann::ordered_json::array();
  for (const step_phase& phase : phases_of(space)) {
    phases.push_back({{"phase", phase.name}, {"count", phase.count}, {"peak_bytes", phase.peak}, {"end_bytes", phase.end}});
  }
  return {{"parameters", estimate.parameters},
          {"pipeline_stage", estimate.pipeline_stage},
          {"space", space.name},
          {"capacity", space.capacity},
          {"peak_bytes", space.cumulative_peak},
          {"peak_operation", space.peak_operation},
          {"phases", phases},
          {"categories_at_peak", detail::to_value(space.live_at_peak.by_category)},
          {"operations_at_peak", detail::to_value(space.live_at_peak.by_operation)}};
}

}  // namespace memprof::inline MEMPROF_ABI
