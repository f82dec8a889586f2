#pragma once

#include <memprof/toolkit/estimate/training_step.hpp>

#include <nlohmann/json_fwd.hpp>

namespace memprof::inline MEMPROF_ABI {

/// A step as JSON: bytes by phase, and what the peak is made of. The whole profile is `to_json(estimate.step)`.
[[nodiscard]] nlohmann::ordered_json to_json(const training_estimate& estimate);

}  // namespace memprof::inline MEMPROF_ABI
