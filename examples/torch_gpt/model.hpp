#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace torch_gpt {

enum class family {
  gpt,    ///< LayerNorm, learned positions, GELU, biases
  llama,  ///< RMSNorm, rotary positions, SwiGLU, no biases
};

/// The dimensions of a model; the defaults train for about ten seconds.
struct model_config {
  family kind = family::gpt;
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t d_model = 64;
  std::int64_t seq_len = 64;
  std::int64_t vocabulary = 256;

  [[nodiscard]] bool is_llama() const { return kind == family::llama; }
};

/// LayerNorm, or RMSNorm without a bias.
struct norm_impl : torch::nn::Module {
  explicit norm_impl(const model_config& config);
  at::Tensor forward(const at::Tensor& input);

  at::Tensor weight;
  at::Tensor bias;  ///< undefined for RMSNorm
};
TORCH_MODULE_IMPL(norm, norm_impl);

/// Causal self-attention over [batch, time, width].
struct attention_impl : torch::nn::Module {
  explicit attention_impl(const model_config& dimensions);
  at::Tensor forward(const at::Tensor& input);

  model_config config;
  torch::nn::Linear qkv{nullptr};
  torch::nn::Linear projection{nullptr};
  at::Tensor cosines;  ///< rotary positions, [time, width of a head]
  at::Tensor sines;

 private:
  [[nodiscard]] at::Tensor heads_of(const at::Tensor& part) const;
  [[nodiscard]] at::Tensor rotate(const at::Tensor& heads) const;
};
TORCH_MODULE_IMPL(attention, attention_impl);

struct mlp_impl : torch::nn::Module {
  explicit mlp_impl(const model_config& config);
  at::Tensor forward(const at::Tensor& input);

  torch::nn::Linear gate{nullptr};  ///< of SwiGLU only
  torch::nn::Linear up{nullptr};
  torch::nn::Linear down{nullptr};
};
TORCH_MODULE_IMPL(mlp, mlp_impl);

struct block_impl : torch::nn::Module {
  explicit block_impl(const model_config& config);
  at::Tensor forward(const at::Tensor& input);

  norm before_attention{nullptr};
  norm before_mlp{nullptr};
  attention attend{nullptr};
  mlp feed{nullptr};
};
TORCH_MODULE_IMPL(block, block_impl);

/// A decoder-only language model.
struct decoder_impl : torch::nn::Module {
  explicit decoder_impl(const model_config& dimensions);
  /// Mean cross-entropy of `targets`; both are [batch, time] of int64.
  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& targets);

  [[nodiscard]] std::int64_t parameter_count() const;

  model_config config;
  torch::nn::Embedding tokens_embedding{nullptr};
  torch::nn::Embedding positions_embedding{nullptr};  ///< of a GPT only
  torch::nn::ModuleList blocks;
  norm last_norm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE_IMPL(decoder, decoder_impl);

}  // namespace torch_gpt
