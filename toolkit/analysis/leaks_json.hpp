#pragma once

#include <memprof/toolkit/analysis/leaks.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

/// @file
/// Who grows from step to step, as JSON; docs/leaks.schema.json is its JSON Schema.

namespace memprof::inline MEMPROF_ABI {

/// The value of the document's key "format".
inline constexpr std::string_view leaks_json_format = "memprof-leaks";

/// The value of the key "version". It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t leaks_json_version = 1;

/// The whole report. Bytes are integers, but for those per step.
[[nodiscard]] nlohmann::ordered_json to_json(const leak_report& of);

}  // namespace memprof::inline MEMPROF_ABI
