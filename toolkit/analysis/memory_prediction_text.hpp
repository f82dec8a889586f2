#pragma once

#include <memprof/toolkit/analysis/memory_prediction.hpp>

#include <string>
#include <vector>

/// @file
/// The parts of a prediction in words.

namespace memprof::inline MEMPROF_ABI {

/// The parts that are counted, on one line: "CUDA context 0.492, parameters 0.46, activations 20.1 GiB".
[[nodiscard]] std::string parts_text(const memory_prediction& prediction);

/// A line for each part that is not simulated: "CUDA context 473 to 504 MiB: 3 published out-of-memory messages, RTX 4090".
[[nodiscard]] std::vector<std::string> sources_text(const memory_prediction& prediction);

}  // namespace memprof::inline MEMPROF_ABI
