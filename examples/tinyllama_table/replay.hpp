#pragma once

#include <tinyllama_table/operations.hpp>

#include <memprof/profile/profile.hpp>

#include <cstdint>

namespace tinyllama_table {

enum class activations : std::uint8_t {
  kept,        ///< every operation keeps what its backward pass needs
  recomputed,  ///< a layer keeps its input, and runs again in the backward pass
};

/// The profile of one training step, with the segments of the published table. Takes milliseconds and a few MB: nothing is
/// allocated on any device.
[[nodiscard]] memprof::profile replay_training_step(activations mode, const dimensions& sizes = {});

}  // namespace tinyllama_table
