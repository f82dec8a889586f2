#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// @file
/// The tables of an estimated training step.

namespace memprof::inline MEMPROF_ABI {

/// All segments of one name together.
struct step_phase {
  std::string name;
  std::int64_t count = 0;
  std::int64_t peak = 0;  ///< greatest live bytes during one of them
  std::int64_t end = 0;   ///< live bytes after the last

  bool operator==(const step_phase&) const = default;
};

/// The phases of a step, in the order in which they first come, without the end of the capture.
[[nodiscard]] std::vector<step_phase> phases_of(const space_profile& space);

namespace detail {

[[nodiscard]] std::string model_text(const decoder_model& model, std::int64_t parameters);

/// "79.150 GiB".
[[nodiscard]] std::string gibibytes_text(std::int64_t bytes);

}  // namespace detail

/// A step: its peak first, then by phase, and what the peak is made of. GiB is 2^30 bytes. `room` is what `predict_step` says of
/// its CUDA device; without it, the device is compared with the peak. `columns`: 0 for any width.
[[nodiscard]] std::string to_text(const training_estimate& estimate, const decoder_model& model, const training_setup& setup,
                                  const predicted_fit* room = nullptr, std::size_t columns = 0);

}  // namespace memprof::inline MEMPROF_ABI
