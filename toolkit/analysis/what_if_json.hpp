#pragma once

#include <memprof/toolkit/analysis/what_if.hpp>
#include <memprof/toolkit/analysis/what_if_rank.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

/// @file
/// The peak that a run would have had with a change, as JSON; docs/what_if.schema.json is its JSON Schema.

namespace memprof::inline MEMPROF_ABI {

/// The value of the document's key "format".
inline constexpr std::string_view what_if_json_format = "memprof-what-if";

/// The value of the key "version". It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t what_if_json_version = 1;

/// The whole answer. Bytes are integers.
[[nodiscard]] nlohmann::ordered_json to_json(const what_if_result& of);
[[nodiscard]] nlohmann::ordered_json to_json(const owner_ranking& of);
[[nodiscard]] nlohmann::ordered_json to_json(const target_answer& of);

}  // namespace memprof::inline MEMPROF_ABI
