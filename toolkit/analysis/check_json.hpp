#pragma once

#include <memprof/toolkit/analysis/check.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

/// @file
/// A checked run as JSON; docs/check.schema.json is its JSON Schema.

namespace memprof::inline MEMPROF_ABI {

/// The value of the document's key "format".
inline constexpr std::string_view check_json_format = "memprof-check";

/// The value of the key "version". It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t check_json_version = 1;

/// The verdict, the caveats and the conditions, those that failed first. Bytes are integers. Of more than 100 conditions the
/// others are counted only.
[[nodiscard]] nlohmann::ordered_json to_json(const check_report& of);

}  // namespace memprof::inline MEMPROF_ABI
