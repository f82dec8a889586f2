#pragma once

#include <memprof/toolkit/analysis/memory_prediction.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// @file
/// The parts of a prediction in words, and how sure its verdict is.

namespace memprof::inline MEMPROF_ABI {

/// The parts that are expected to hold something, on one line: "CUDA context 0.46, parameters 0.46, activations 20.1 GiB".
[[nodiscard]] std::string parts_text(const memory_prediction& prediction);

/// A sentence for each uncertain part: "CUDA context: 379 to 563 MiB: published out-of-memory messages of PyTorch on RTX 4090".
[[nodiscard]] std::vector<std::string> uncertain_parts_text(const memory_prediction& prediction);

/// What may change a verdict, "0.3 GiB to spare; uncertain parts may take 0.4 GiB more": of a run that is expected to fit on a
/// device of that capacity, or not to. `spare` is what the expected parts leave of it, negative if they are too large. Empty: the
/// verdict is certain.
[[nodiscard]] std::string uncertainty_text(const memory_prediction& prediction, fit_certainty certainty, std::int64_t spare);

}  // namespace memprof::inline MEMPROF_ABI
