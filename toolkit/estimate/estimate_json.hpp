#pragma once

#include <memprof/toolkit/estimate/decoder_shape.hpp>

#include <nlohmann/json_fwd.hpp>

/// @file
/// The numbers of `memprof estimate` as JSON, under the keys of transformer-room's estimator.

namespace memprof::inline MEMPROF_ABI {

/// All rows of an estimate in both precisions; "gib" is in units of 2^30 bytes.
[[nodiscard]] nlohmann::ordered_json to_json(const shape_estimate& estimate);

}  // namespace memprof::inline MEMPROF_ABI
