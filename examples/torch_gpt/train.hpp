#pragma once

#include <torch_gpt/model.hpp>
#include <torch_gpt/token_text.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace torch_gpt {

/// What the command line may set.
struct options {
  model_config model;
  std::int64_t batch_size = 8;
  std::int64_t steps = 100;
  std::int64_t seed = 1;
  std::optional<std::string> text;        ///< without: nano_gpt's lighthouse.txt
  std::optional<std::string> json;        ///< where to write the profile
  std::optional<std::string> trace_file;  ///< where to write all events
  std::string device = "cpu";             ///< cpu, cuda, or with `no_dispatch` a preset; with that none need be there
  bool no_dispatch = false;               ///< nothing is computed, and nothing allocated
  std::optional<std::int64_t> fit;        ///< bytes of a GPU: whether the training would fit into it
  bool help = false;

  /// Where the model is.
  [[nodiscard]] torch::Device torch_device() const { return device == "cpu" ? torch::kCPU : torch::kCUDA; }
};

/// Trains and says how it goes; the program with memprof reports where the memory went.
void train(const options& options, const token_text& text);

}  // namespace torch_gpt
