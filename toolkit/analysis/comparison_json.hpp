#pragma once

#include <memprof/toolkit/analysis/comparison.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

/// @file
/// A comparison of two runs as JSON; docs/comparison.schema.json is its JSON Schema.

namespace memprof::inline MEMPROF_ABI {

/// The value of the document's key "format".
inline constexpr std::string_view comparison_json_format = "memprof-comparison";

/// The value of the key "version". It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t comparison_json_version = 1;

/// The verdict, both runs, and every row that differs; "unchanged_bytes" is the sum of the operations that do not. Bytes are
/// integers.
[[nodiscard]] nlohmann::ordered_json to_json(const comparison& of);

}  // namespace memprof::inline MEMPROF_ABI
