#pragma once

#include <memprof/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What the forward pass of a decoder keeps, from its dimensions alone: closed forms, with no step and no optimizer. The results
/// equal those of the shape-only estimator of transformer-room (`baseline.utils.util`); docs/estimate.md has the formulas.

namespace memprof::inline MEMPROF_ABI {

/// The dimensions of that model: embeddings, post-normalised blocks with an MLP four times as wide, and an output layer with a
/// bias.
struct decoder_shape {
  std::int64_t batch_size = 64;
  std::int64_t seq_len = 1024;
  std::int64_t d_model = 768;
  std::int64_t n_heads = 8;  ///< divides `d_model`
  std::int64_t layers = 12;
  std::int64_t base_vocab_size = 33280;
  std::int64_t num_special_tokens = 3;  ///< may be 0

  [[nodiscard]] std::int64_t vocab_size() const noexcept { return base_vocab_size + num_special_tokens; }

  bool operator==(const decoder_shape&) const = default;
};

/// The groups of the estimate's bytes.
enum class estimate_bucket : std::uint8_t { input_projects, others, output_project, per_layer_attention, per_layer_mlp };

/// The names of `estimate_bucket`, in the order of its values, which is alphabetical.
inline constexpr std::array<std::string_view, 5> estimate_bucket_names{"input-projects", "others", "output-project",
                                                                       "per-layer-attn", "per-layer-mlp"};

[[nodiscard]] constexpr std::string_view to_string(estimate_bucket bucket) noexcept {
  return estimate_bucket_names[static_cast<std::size_t>(bucket)];
}

/// Parameters, and bytes in each precision.
struct estimated_bytes {
  std::int64_t parameters = 0;
  std::int64_t fp32_bytes = 0;
  std::int64_t bf16_bytes = 0;

  bool operator==(const estimated_bytes&) const = default;
};

/// The results of one operation in all layers.
struct estimated_operation {
  estimate_bucket bucket = estimate_bucket::others;
  std::string name;                 ///< "dec_layers.*.linear1": the star stands for the layer
  std::int64_t count = 0;           ///< layers
  std::vector<std::int64_t> shape;  ///< of one result
  estimated_bytes total;

  bool operator==(const estimated_operation&) const = default;
};

struct shape_estimate {
  decoder_shape shape;
  std::string architecture{};  ///< what the shape does not say: "llama, KV=32, M=11008"; empty: transformer-room's decoder
  std::array<estimated_bytes, estimate_bucket_names.size()> buckets{};  ///< in the order of `estimate_bucket`
  std::vector<estimated_operation> operations{};                        ///< in the order of the forward pass, masks last

  [[nodiscard]] const estimated_bytes& bucket(estimate_bucket which) const noexcept {
    return buckets[static_cast<std::size_t>(which)];
  }
};

namespace detail {

/// Raises an error that names the first size that no decoder can have.
void check(const decoder_shape& shape);

}  // namespace detail

/// The estimate for a shape: the operation results that a forward pass in training keeps, in fp32 and bf16. Throws
/// `memprof::error` for sizes below 1, for heads that do not divide the width and for bytes beyond 2^63-1.
[[nodiscard]] shape_estimate estimate_shape(const decoder_shape& shape);

}  // namespace memprof::inline MEMPROF_ABI
