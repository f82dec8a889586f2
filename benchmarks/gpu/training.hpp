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

/// The training of that name. Throws `std::invalid_argument`, which lists all, if there is none.
[[nodiscard]] const training& find_training(std::string_view name);

/// Makes the model on the GPU and takes three steps of AdamW, of which the first makes the moments. Calls `finished` at the end
/// of each phase, with its name. Knows nothing of memprof.
void train(const training& wanted, const std::function<void(std::string_view phase)>& finished);

}  // namespace gpu_accuracy
