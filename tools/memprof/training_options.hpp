#pragma once

#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/trace.hpp>

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace memprof_tool {

/// What `--config` or `--run-config` names, and the dimensions given along with it.
struct decoder_options {
  memprof::decoder_shape shape;  ///< initially the defaults of its flags
  std::string config;            ///< the name of a published decoder, or a file
  std::string run_config;        ///< a file

  void add(CLI::App& command);
};

struct chosen_decoder {
  memprof::decoder_shape shape;
  memprof::decoder_model model;
  std::int64_t longest_sequence = 0;  ///< the longest the model was made for; 0: unknown
  bool has_architecture = false;      ///< whether the model is a published one or Hugging Face's, not only dimensions
};

/// The decoder that the options describe. Throws `memprof::error`.
[[nodiscard]] chosen_decoder choose_decoder(const decoder_options& options, const CLI::App& command);

/// How the decoder is trained: the options that `memprof estimate`, `fit` and `waterfall` share.
struct setup_options {
  memprof::training_setup setup;
  std::string recompute;
  std::string device;  ///< a preset, a file or a size; empty: none

  void add(CLI::App& command);
};

/// Estimates a training step and puts all its events into `events`. Of a pipeline, estimates the stage with the greatest peak
/// unless `setup` names one. Throws `memprof::error`.
[[nodiscard]] memprof::training_estimate estimate_with_trace(const memprof::decoder_model& model, memprof::training_setup setup,
                                                             memprof::trace& events);

/// The device that the argument names: a preset, a file, or a GPU with that much memory. Throws `memprof::error`.
[[nodiscard]] memprof::device_description device_of(const std::string& preset_file_or_size);

}  // namespace memprof_tool
