#pragma once

#include <torch_gpt/model.hpp>

#include <ATen/core/ATen_fwd.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

namespace gpu_accuracy {

/// A model and how it is trained.
struct training {
  std::string_view name;
  torch_gpt::model_config model;
  at::ScalarType dtype;
  std::int64_t batch_size;
};

/// GPT-2's 124M parameters, and a Llama as wide and deep as TinyLlama (with as many heads for keys as for queries).
inline constexpr std::array<training, 3> trainings{{
    {"gpt2-124m-fp32", {torch_gpt::family::gpt, 12, 12, 768, 1024, 50257}, at::kFloat, 4},
    {"gpt2-124m-bf16", {torch_gpt::family::gpt, 12, 12, 768, 1024, 50257}, at::kBFloat16, 8},
    {"llama-22x2048-bf16", {torch_gpt::family::llama, 22, 32, 2048, 1024, 32000}, at::kBFloat16, 4},
}};

/// The training of that name. If there is none, throws `std::invalid_argument` with a list of all.
[[nodiscard]] const training& find_training(std::string_view name);

/// Creates the model on the GPU and takes three AdamW steps, the first of which creates the moments. Calls `finished` with the
/// name of each phase at its end. Does not use memprof.
void train(const training& wanted, const std::function<void(std::string_view phase)>& finished);

}  // namespace gpu_accuracy
