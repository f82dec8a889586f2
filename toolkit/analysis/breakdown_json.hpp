#pragma once

#include <memprof/toolkit/analysis/breakdown_text.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

/// @file
/// The numbers of `memprof analyze` as JSON; docs/analyze.md describes the format, docs/analysis.schema.json is its JSON Schema.

namespace memprof::inline MEMPROF_ABI {

/// The value of the document's key "format".
inline constexpr std::string_view breakdown_json_format = "memprof-analysis";

/// The value of the key "version". It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t breakdown_json_version = 2;

/// The document with all analyses. Sizes are integers in bytes; unknown values are null.
[[nodiscard]] nlohmann::ordered_json to_json(const std::vector<analyzed_space>& analyzed);

}  // namespace memprof::inline MEMPROF_ABI
