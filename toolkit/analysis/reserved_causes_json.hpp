#pragma once

#include <memprof/toolkit/analysis/fragmentation.hpp>
#include <memprof/toolkit/analysis/reserved_causes.hpp>

#include <nlohmann/json_fwd.hpp>
#include <vector>

/// @file
/// Why more was reserved than allocated, as JSON: the key "reserved_causes" of other answers. docs/reserved_causes.schema.json is
/// its JSON Schema.

namespace memprof::inline MEMPROF_ABI {

/// Bytes. `hard_bytes`, `soft_bytes`, `stream_bytes` and `pending_bytes` add up to `unused_bytes`.
[[nodiscard]] nlohmann::ordered_json to_json(const fragmentation& parts);

/// An object for each memory space.
[[nodiscard]] nlohmann::ordered_json to_json(const std::vector<reserved_causes>& of);

}  // namespace memprof::inline MEMPROF_ABI
