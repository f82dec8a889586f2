#include <memprof/config.hpp>
#include <memprof/profile/json_writer.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>
#include <memprof/toolkit/estimate/training_step_json.hpp>
#include <memprof/toolkit/estimate/training_step_text.hpp>

#include <nlohmann/json.hpp>

namespace memprof::inline MEMPROF_ABI {

nlohmann::ordered_json to_json(const training_estimate& estimate) {
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
