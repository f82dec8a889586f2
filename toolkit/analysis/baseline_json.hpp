#pragma once

#include <memprof/toolkit/analysis/baseline.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

/// @file
/// A run's numbers as a JSON file of a few kilobytes; docs/baseline.schema.json is its JSON Schema.

namespace memprof::inline MEMPROF_ABI {

/// The value of the document's key "format".
inline constexpr std::string_view baseline_json_format = "memprof-baseline";

/// The value of the key "version". It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t baseline_json_version = 1;

/// The document. All numbers are integers; equal runs give equal text.
[[nodiscard]] nlohmann::ordered_json to_json(const run_baseline& of);

/// Reads a document. Throws `memprof::error`, which names `source` and the place as a JSON pointer, if it is none, has a newer
/// version, or does not add up.
[[nodiscard]] run_baseline parse_baseline(std::string_view text, std::string_view source);

}  // namespace memprof::inline MEMPROF_ABI
