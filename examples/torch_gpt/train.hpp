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
  std::optional<std::string> text;  ///< without: the repository's documents
  std::optional<std::string> json;  ///< where to write the profile
  bool help = false;
};

/// Trains and says how it goes; the program with memprof reports where the memory went.
void train(const options& options, const token_text& text);

}  // namespace torch_gpt
