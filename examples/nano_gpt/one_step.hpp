#pragma once

#include <nano_gpt/options.hpp>

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>
#include <memprof/trace/trace.hpp>

namespace nano_gpt {

/// The options for a step of a model to estimate. Throws `memprof::error` for what this trainer does not support.
[[nodiscard]] options options_for(const memprof::decoder_model& model, const memprof::training_setup& setup);

struct measured_step {
  memprof::profile profile;        ///< with the segments of `train`
  bool ran_out_of_memory = false;  ///< if so, `profile` ends there
};

/// Runs one training step on random tokens under its own capture. Uses only these options: the model, which needs a vocabulary,
/// the batch, the micro-batches, the seed, the dtype, the mode and the device. Also writes the events to `events`, unless that is
/// null.
[[nodiscard]] measured_step measure_one_step(const options& options, double learning_rate, memprof::trace* events = nullptr);

}  // namespace nano_gpt
