#pragma once

#include <torch_gpt/model.hpp>
#include <torch_gpt/token_text.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace torch_gpt {

/// What the command line can set.
struct options {
  model_config model;
  std::int64_t batch_size = 8;
  std::int64_t steps = 100;
  std::int64_t seed = 1;
  std::optional<std::string> text;        ///< none: nano_gpt's lighthouse.txt
  std::optional<std::string> json;        ///< where to write the profile
  std::optional<std::string> trace_file;  ///< where to write all events
  std::string device = "cpu";             ///< cpu, cuda, or a preset with `no_dispatch`, which needs no GPU
  bool no_dispatch = false;               ///< compute and allocate nothing
  std::optional<std::int64_t> fit;        ///< bytes of the GPU for which to check whether the training fits
  bool help = false;

  /// The device of the model.
  [[nodiscard]] torch::Device torch_device() const { return device == "cpu" ? torch::kCPU : torch::kCUDA; }
};

/// Trains and prints progress; the program with memprof also reports where the memory went.
void train(const options& options, const token_text& text);

}  // namespace torch_gpt
