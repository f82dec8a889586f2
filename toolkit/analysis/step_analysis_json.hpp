#pragma once

#include <memprof/toolkit/analysis/step_analysis.hpp>

#include <nlohmann/json_fwd.hpp>

namespace memprof::inline MEMPROF_ABI {

/// The document of the spaces (`breakdown_json.hpp`) with the causes, each with its file, as "reserved_causes"; no key if there
/// are none.
[[nodiscard]] nlohmann::ordered_json to_json(const step_analysis& of);

}  // namespace memprof::inline MEMPROF_ABI
