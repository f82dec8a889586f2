#pragma once

#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

/// @file
/// What `memprof estimate` says, as JSON of a few kilobytes with every number's caveats; docs/estimate.schema.json is its JSON
/// Schema.

namespace memprof::inline MEMPROF_ABI {

/// The value of the document's key "format".
inline constexpr std::string_view estimate_json_format = "memprof-estimate";

/// The value of the key "version". It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t estimate_json_version = 1;

/// One sentence about what a forward pass keeps: its bytes in both precisions, and the bucket with most of them.
[[nodiscard]] std::string forward_sentence(const shape_estimate& estimate);

/// The verdict, the caveats, the forward pass by bucket with the twelve greatest operations and, if `step` is not null, the
/// step's phases and its summary, with what `predict_step` says of its CUDA device if `room` is not null.
[[nodiscard]] nlohmann::ordered_json estimate_answer_json(const shape_estimate& estimate, const training_estimate* step,
                                                          const predicted_fit* room = nullptr);

}  // namespace memprof::inline MEMPROF_ABI
