#pragma once

#include <memprof/toolkit/analysis/memory_prediction.hpp>

#include <nlohmann/json_fwd.hpp>

namespace memprof::inline MEMPROF_ABI {

/// The parts of a prediction as JSON: an array of objects with "part", "bytes", "least_bytes", "most_bytes" (null: nothing is
/// known) and "source".
[[nodiscard]] nlohmann::ordered_json to_json(const memory_prediction& prediction);

}  // namespace memprof::inline MEMPROF_ABI
