#pragma once

#include <memprof/analysis/estimate/decoder_model.hpp>
#include <memprof/analysis/estimate/decoder_shape.hpp>
#include <memprof/analysis/estimate/training_setup.hpp>
#include <memprof/analysis/estimate/training_step.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/trace.hpp>

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace memprof_tool {

/// What `--config` or `--run-config` names, and the dimensions that were given beside it.
struct decoder_options {
  memprof::decoder_shape shape;  ///< with the defaults of its flags
  std::string config;            ///< a published decoder, or a file
  std::string run_config;        ///< a file

  void add(CLI::App& command);
};

struct chosen_decoder {
  memprof::decoder_shape shape;
  memprof::decoder_model model;
  std::int64_t longest_sequence = 0;  ///< that the model was made for; 0: unknown
};

/// The decoder that the options describe. Throws `memprof::error`.
[[nodiscard]] chosen_decoder choose_decoder(const decoder_options& options, const CLI::App& command);

/// How it is trained: what both `memprof estimate` and `memprof fit` ask for.
struct setup_options {
  memprof::training_setup setup;
  std::string device;  ///< a preset, a file or a size; empty: none

  void add(CLI::App& command);
};

/// The estimate, and all its events in `events`. Of a pipeline it is the stage with the greatest peak, unless one is asked for.
/// Throws `memprof::error`.
[[nodiscard]] memprof::training_estimate estimate_with_trace(const memprof::decoder_model& model, memprof::training_setup setup,
                                                             memprof::trace& events);

/// The device of that name: a preset, a file, or a GPU with so many bytes. Throws `memprof::error`.
[[nodiscard]] memprof::device_description device_of(const std::string& preset_file_or_size);

}  // namespace memprof_tool
