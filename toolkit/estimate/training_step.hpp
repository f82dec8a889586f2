#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>

#include <cstdint>

/// @file
/// One training step of a decoder, from its dimensions alone, without allocating any of it.

namespace memprof::inline MEMPROF_ABI {

class allocation_sequence;
class trace;

/// What one device holds during a training step.
struct training_estimate {
  /// As from a capture with `run_mode::no_dispatch`; its times count events. Peaks, phases, operations and categories are those
  /// of the step, with the names used in examples/nano_gpt.
  profile step;
  std::int64_t parameters = 0;      ///< of the whole model
  std::int64_t pipeline_stage = 0;  ///< the stage that `step` describes

  /// The memory space of the tensors.
  [[nodiscard]] const space_profile& space() const { return step.spaces.front(); }
};

/// The memory of one training step on one of the devices that share the training: the exact bytes that examples/nano_gpt
/// allocates, in its order, for setups which that program supports.
///
/// Costs a few hundred events per layer and micro-batch. `sequence`, if given, gets all allocations and frees, for `fit_memory`;
/// for a pipeline those of `pipeline_stage`, which must then be given. `recorded`, which must be empty, likewise becomes the
/// trace of the step. Throws `memprof::error` for invalid setups and for bytes beyond 2^63-1.
[[nodiscard]] training_estimate estimate_training_step(const decoder_model& model, const training_setup& setup,
                                                       allocation_sequence* sequence = nullptr, trace* recorded = nullptr);

}  // namespace memprof::inline MEMPROF_ABI
