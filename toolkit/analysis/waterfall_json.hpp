#pragma once

#include <memprof/toolkit/analysis/waterfall.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

/// @file
/// A waterfall as JSON; docs/waterfall.schema.json is its JSON Schema.

namespace memprof::inline MEMPROF_ABI {

/// The value of the document's key "format".
inline constexpr std::string_view waterfall_json_format = "memprof-waterfall";

/// The value of the key "version". It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t waterfall_json_version = 1;

/// The whole waterfall. Bytes are integers; if "paths" is 0, the column has no such operation.
[[nodiscard]] nlohmann::ordered_json to_json(const waterfall& of);

}  // namespace memprof::inline MEMPROF_ABI
