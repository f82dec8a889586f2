#pragma once

// A trainer that uses libtorch.
#include <torch/torch.h>

#include <vector>

struct gpt_config {};
struct gpt_impl : torch::nn::Module {
  explicit gpt_impl(gpt_config);
  at::Tensor forward(const at::Tensor&);
};
TORCH_MODULE_IMPL(gpt, gpt_impl);
inline gpt_config config;
inline std::vector<at::Tensor> batches;
inline at::Tensor loss;
void train(gpt&);
