#pragma once

#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>

#include <CLI/App.hpp>
#include <cstdint>
#include <string>

namespace memprof_tool {

/// How `--train-step-profile` runs its step.
struct train_step_options {
  std::string device = "auto";  ///< auto, cuda or cpu
  std::string bf16 = "auto";    ///< auto, on or off
  double learning_rate = 0.001;
  std::uint64_t seed = 42;

  void add(CLI::App& command);
};

/// Throws `memprof::error` if the machine does not have that much memory available: Linux might grant it anyway and kill programs
/// later.
void require_memory(std::int64_t needed);

/// Throws `memprof::error` unless the step can run on this machine.
void require_train_step(const memprof::decoder_model& model, const train_step_options& options);

/// Runs one real training step of a model and prints what its stages allocated. Returns an exit status.
[[nodiscard]] int run_train_step(const memprof::decoder_shape& shape, const memprof::decoder_model& model,
                                 const train_step_options& options);

}  // namespace memprof_tool
