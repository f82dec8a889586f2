#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace nano_gpt {

/// The components of a block and its surroundings.
enum class architecture : std::uint8_t {
  gpt2,   ///< layer normalisation, GELU, learned positions, biases in every linear layer but the last
  llama,  ///< RMS normalisation, SwiGLU, rotary positions, no biases
};

/// The dimensions of a decoder-only transformer with pre-normalisation.
struct model_config {
  std::size_t vocabulary_size = 0;  ///< 0: as many as the text has
  std::size_t seq_len = 64;         ///< longest sequence, tokens
  std::size_t layers = 3;
  std::size_t heads = 4;  ///< divides d_model
  std::size_t d_model = 64;
  std::size_t kv_heads = 0;   ///< heads that share keys and values do so in groups of heads / kv_heads; 0: none share
  std::size_t mlp_width = 0;  ///< 0: 4 * d_model
  nano_gpt::architecture architecture = architecture::gpt2;
  bool tied_output = false;       ///< the output layer's weight is the token table
  bool memory_efficient = false;  ///< a block keeps only its input and runs its forward pass again before the backward pass

  [[nodiscard]] std::size_t head_width() const { return d_model / heads; }
  [[nodiscard]] std::size_t key_value_heads() const { return kv_heads == 0 ? heads : kv_heads; }
  [[nodiscard]] std::size_t mlp_channels() const { return mlp_width == 0 ? 4 * d_model : mlp_width; }
  [[nodiscard]] bool is_llama() const { return architecture == architecture::llama; }
};

struct named_config {
  std::string_view name;
  model_config model;
  std::size_t batch_size = 1;  ///< sequences, by default
  std::size_t steps = 1;       ///< the same
};

/// The models that `--config` knows. GPT-2: Radford et al., 2019, and its published weights; TinyLlama: Zhang et al.,
/// arXiv:2401.02385; Llama 2: Touvron et al., arXiv:2307.09288.
inline constexpr std::array<named_config, 6> named_configs{{
    {"nano", {}, 16, 200},
    {"gpt2-124m", {.vocabulary_size = 50257, .seq_len = 1024, .layers = 12, .heads = 12, .d_model = 768, .tied_output = true}},
    {"gpt2-1.5b", {.vocabulary_size = 50257, .seq_len = 1024, .layers = 48, .heads = 25, .d_model = 1600, .tied_output = true}},
    {"tinyllama-1.1b",
     {.vocabulary_size = 32000,
      .seq_len = 2048,
      .layers = 22,
      .heads = 32,
      .d_model = 2048,
      .kv_heads = 4,
      .mlp_width = 5632,
      .architecture = architecture::llama}},
    {"llama-7b",
     {.vocabulary_size = 32000,
      .seq_len = 4096,
      .layers = 32,
      .heads = 32,
      .d_model = 4096,
      .mlp_width = 11008,
      .architecture = architecture::llama}},
    {"llama-70b",
     {.vocabulary_size = 32000,
      .seq_len = 4096,
      .layers = 80,
      .heads = 64,
      .d_model = 8192,
      .kv_heads = 8,
      .mlp_width = 28672,
      .architecture = architecture::llama}},
}};

}  // namespace nano_gpt
