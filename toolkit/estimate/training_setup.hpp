#pragma once

#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/dtype.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

/// @file
/// How a decoder is trained, as far as it affects memory.

namespace memprof::inline MEMPROF_ABI {

enum class optimizer_kind : std::uint8_t {
  sgd,        ///< no state
  momentum,   ///< one number per parameter
  adam,       ///< two numbers per parameter
  adamw,      ///< the same
  adam_8bit,  ///< two bytes a parameter, and a float32 for each 256 of either (bitsandbytes); tensors below 4096 elements as
              ///< `adam`
};

inline constexpr std::array<std::string_view, 5> optimizer_kind_names{"sgd", "momentum", "adam", "adamw", "adam-8bit"};

enum class attention_kind : std::uint8_t {
  plain,       ///< keeps the probabilities, [batch, heads, time, time], for the backward pass
  fused,       ///< never materialises them; keeps a float32 for each row (FlashAttention: Dao, arXiv:2307.08691)
  recomputed,  ///< frees them after use and recomputes them in the backward pass
};

inline constexpr std::array<std::string_view, 3> attention_kind_names{"plain", "fused", "recomputed"};

enum class recomputation_kind : std::uint8_t {
  off,
  blocks,     ///< a block keeps only its input and repeats its forward pass before its backward pass
  selective,  ///< it also keeps the results of fused attention and of every second matrix product from its first on, and repeats
              ///< the rest (torchtitan's selective checkpointing by operators, through PyTorch's `CheckpointPolicy`)
};

inline constexpr std::array<std::string_view, 3> recomputation_kind_names{"off", "blocks", "selective"};

/// What the layers of a program allocate beyond what the arithmetic requires.
struct layer_implementation {
  /// The backward pass of a linear layer copies its weight transposed; so does attention its keys and values, and a tied output
  /// layer the token table.
  bool transposes_copy = true;
  /// Residual sums, the loss, the gradients of logits and GELUs, and Adam's divisor are computed in an operand's memory, or not
  /// as tensors at all; otherwise each is a separate tensor.
  bool works_in_place = true;

  bool operator==(const layer_implementation&) const = default;
};

/// examples/nano_gpt.
inline constexpr layer_implementation plain_layers{};

/// Eager libtorch, whose optimizers update one parameter after the other.
inline constexpr layer_implementation torch_layers{.transposes_copy = false, .works_in_place = false};

/// The number of devices that share a training; memory is counted for one of them.
struct parallel_degrees {
  std::int64_t tensor = 1;    ///< parts of each layer: heads, MLP channels and vocabulary (Megatron-LM: arXiv:1909.08053)
  std::int64_t pipeline = 1;  ///< stages of consecutive layers, with one-forward-one-backward (arXiv:2104.04473)
  std::int64_t data = 1;      ///< replicas with other sequences
  /// Parts of each sequence. Attention gathers the keys and values of all of them (arXiv:2407.21783, section 3.3.2).
  std::int64_t context = 1;
  /// What is divided among the replicas, and among the parts of their sequences (ZeRO, arXiv:1910.02054): 0 nothing, 1 the
  /// optimizer's state, 2 also gradients, 3 also parameters, which are gathered block by block while a block is computed.
  int zero_stage = 0;

  bool operator==(const parallel_degrees&) const = default;
};

/// One training step. Sizes are those of one replica.
struct training_setup {
  std::int64_t batch_size = 1;  ///< sequences in a micro-batch
  std::int64_t seq_len = 1024;
  std::int64_t micro_batches = 1;  ///< per step; their gradients add up
  dtype type = dtype::float32;     ///< of parameters, gradients and activations
  /// Of gradients, if not `type`.
  std::optional<dtype> gradient_type = {};
  /// Of the optimizer's state, if not `type`; with `master_weights` it is float32.
  std::optional<dtype> state_type = {};
  bool master_weights = false;  ///< the optimizer keeps a float32 copy of all parameters
  optimizer_kind optimizer = optimizer_kind::adamw;
  attention_kind attention = attention_kind::plain;
  recomputation_kind recompute = recomputation_kind::off;
  bool float32_logits = false;  ///< the loss copies the logits to float32 first
  layer_implementation layers = plain_layers;
  parallel_degrees parallel = {};
  std::int64_t pipeline_stage = -1;  ///< the one to estimate; -1: the one with the greatest peak
  device_description device = {};    ///< how tensors are padded and what limits them; empty: no padding, no limit
};

namespace detail {

/// Raises an error for a model or a setup that cannot be, or that do not go together.
void check(const decoder_model& model, const training_setup& setup);

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
