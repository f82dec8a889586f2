#pragma once

#include <memprof/config.hpp>

#include <array>
#include <cstdint>
#include <string_view>

/// @file
/// The dimensions of a decoder-only transformer to be trained, and those of published ones.

namespace memprof::inline MEMPROF_ABI {

/// The kind of layers in a block and around it.
enum class decoder_family : std::uint8_t {
  gpt2,   ///< layer normalisation, GELU, learned positions, biases in every linear layer but the last
  llama,  ///< RMS normalisation, SwiGLU, rotary positions, no biases
};

/// The names of `decoder_family`, in the order of its values.
inline constexpr std::array<std::string_view, 2> decoder_family_names{"gpt2", "llama"};

/// A decoder with pre-normalisation.
struct decoder_model {
  decoder_family family = decoder_family::gpt2;
  std::int64_t layers = 12;
  std::int64_t d_model = 768;
  std::int64_t heads = 12;     ///< divides `d_model`
  std::int64_t kv_heads = 0;   ///< heads of keys and values, each shared by heads / kv_heads queries; 0: as many as `heads`
  std::int64_t mlp_width = 0;  ///< between the two layers of the MLP; 0: 4 * d_model
  std::int64_t vocabulary = 50257;
  std::int64_t positions = 0;          ///< rows of the learned positions, or of the rotary tables; 0: those of a sequence
  bool tied_output = false;            ///< whether the output layer's weight is the token table
  std::int64_t experts = 0;            ///< MLPs of which a router chooses some for each token; 0: a single MLP
  std::int64_t experts_per_token = 2;  ///< the number it chooses

  [[nodiscard]] std::int64_t head_width() const noexcept { return d_model / heads; }
  [[nodiscard]] std::int64_t key_value_heads() const noexcept { return kv_heads == 0 ? heads : kv_heads; }
  [[nodiscard]] std::int64_t mlp_channels() const noexcept { return mlp_width == 0 ? 4 * d_model : mlp_width; }
  [[nodiscard]] bool is_llama() const noexcept { return family == decoder_family::llama; }

  bool operator==(const decoder_model&) const = default;
};

struct named_decoder {
  std::string_view name;
  decoder_model model;
  std::int64_t seq_len;  ///< the published maximum
};

/// GPT-2: Radford et al., 2019, and its published weights; TinyLlama: Zhang et al., arXiv:2401.02385; Llama 2: Touvron et al.,
/// arXiv:2307.09288; Mixtral: Jiang et al., arXiv:2401.04088.
inline constexpr std::array<named_decoder, 8> named_decoders{{
    {"gpt2-124m", {.layers = 12, .d_model = 768, .heads = 12, .tied_output = true}, 1024},
    {"gpt2-355m", {.layers = 24, .d_model = 1024, .heads = 16, .tied_output = true}, 1024},
    {"gpt2-774m", {.layers = 36, .d_model = 1280, .heads = 20, .tied_output = true}, 1024},
    {"gpt2-1.5b", {.layers = 48, .d_model = 1600, .heads = 25, .tied_output = true}, 1024},
    {"tinyllama-1.1b",
     {.family = decoder_family::llama,
      .layers = 22,
      .d_model = 2048,
      .heads = 32,
      .kv_heads = 4,
      .mlp_width = 5632,
      .vocabulary = 32000},
     2048},
    {"llama-7b",
     {.family = decoder_family::llama, .layers = 32, .d_model = 4096, .heads = 32, .mlp_width = 11008, .vocabulary = 32000},
     4096},
    {"llama-70b",
     {.family = decoder_family::llama,
      .layers = 80,
      .d_model = 8192,
      .heads = 64,
      .kv_heads = 8,
      .mlp_width = 28672,
      .vocabulary = 32000},
     4096},
    {"mixtral-8x7b",
     {.family = decoder_family::llama,
      .layers = 32,
      .d_model = 4096,
      .heads = 32,
      .kv_heads = 8,
      .mlp_width = 14336,
      .vocabulary = 32000,
      .experts = 8,
      .experts_per_token = 2},
     32768},
}};

/// The published decoder of that name. For any other name, throws `memprof::error` that lists the known ones.
[[nodiscard]] const named_decoder& find_decoder(std::string_view name);

namespace detail {

/// Raises an error that names the first size that no decoder can have.
void check(const decoder_model& model);

}  // namespace detail

/// The number of parameters of a decoder; if it has learned positions and `positions` is 0, with positions for sequences of
/// `seq_len`.
[[nodiscard]] std::int64_t parameter_count(const decoder_model& model, std::int64_t seq_len);

}  // namespace memprof::inline MEMPROF_ABI
