#pragma once

#include <memprof/toolkit/analysis/rank_merge.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

/// @file
/// The ranks of a job as JSON; docs/merge.schema.json is its JSON Schema.

namespace memprof::inline MEMPROF_ABI {

/// The value of the document's key "format".
inline constexpr std::string_view merge_json_format = "memprof-merge";

/// The value of the key "version". It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t merge_json_version = 1;

/// The ranks that stand out with the operations that make the difference, missing and unfinished ranks, and a row a rank, as in
/// `merged_ranks`. Bytes are integers, steps count from 0.
[[nodiscard]] nlohmann::ordered_json to_json(const merged_ranks& of);

}  // namespace memprof::inline MEMPROF_ABI
