#pragma once

#include <memprof/detail/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
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

/// A product or sum of sizes. Raises an error that names the dimensions if it does not fit in 63 bits.
class exact_count {
 public:
  constexpr exact_count(std::int64_t value) : value_{value} {}  // implicit, so that formulas read as formulas

  friend exact_count operator*(exact_count left, exact_count right) {
    if (__builtin_mul_overflow(left.value_, right.value_, &left.value_)) refuse();
    return left;
  }
  friend exact_count operator+(exact_count left, exact_count right) {
    if (__builtin_add_overflow(left.value_, right.value_, &left.value_)) refuse();
    return left;
  }
  [[nodiscard]] constexpr std::int64_t value() const noexcept { return value_; }

 private:
  [[noreturn, gnu::cold]] static void refuse() {
    raise("the estimate does not fit 63 bits: a size is too large (bytes are products of up to four of them)");
  }

  std::int64_t value_;
};

inline void require_positive(std::int64_t value, std::string_view name) {
  if (value >= 1) return;
  raise(std::string{name} + " is " + std::to_string(value) + ", but must be at least 1");
}

/// Requires that `whole` can be divided into `parts` equal parts.
inline void require_divides(std::int64_t parts, std::string_view name_of_parts, std::int64_t whole,
                            std::string_view name_of_whole) {
  if (whole % parts == 0) return;
  raise(std::string{name_of_parts} + " " + std::to_string(parts) + " does not divide " + std::string{name_of_whole} + " " +
        std::to_string(whole));
}

inline void check(const decoder_shape& shape) {
  require_positive(shape.batch_size, "batch_size");
  require_positive(shape.seq_len, "seq_len");
  require_positive(shape.d_model, "d_model");
  require_positive(shape.n_heads, "n_heads");
  require_positive(shape.layers, "layers");
  require_positive(shape.base_vocab_size, "base_vocab_size");
  if (shape.num_special_tokens < 0) {
    raise("num_special_tokens is " + std::to_string(shape.num_special_tokens) + ", but must be at least 0");
  }
  (void)(exact_count{shape.base_vocab_size} + shape.num_special_tokens);
  require_divides(shape.n_heads, "n_heads", shape.d_model, "d_model");
}

/// The bytes of an element in each precision.
struct element_bytes {
  std::int64_t fp32 = 4;
  std::int64_t bf16 = 2;
};

/// Fills a `shape_estimate`.
class shape_estimator {
 public:
  explicit shape_estimator(const decoder_shape& shape) : result_{.shape = shape} {}

  /// Adds an operation whose result is kept for each of `count` layers.
  void add(estimate_bucket bucket, std::string_view name, exact_count count, std::vector<std::int64_t> shape,
           exact_count parameters = 0, element_bytes each = {}) {
    exact_count elements = count;
    for (const std::int64_t size : shape) elements = elements * size;
    const estimated_bytes total{parameters.value(), (elements * each.fp32).value(), (elements * each.bf16).value()};
    estimated_bytes& sum = result_.buckets[static_cast<std::size_t>(bucket)];
    sum.fp32_bytes = (exact_count{sum.fp32_bytes} + total.fp32_bytes).value();
    sum.bf16_bytes = (exact_count{sum.bf16_bytes} + total.bf16_bytes).value();
    result_.operations.push_back({bucket, std::string{name}, count.value(), std::move(shape), total});
    add_parameters(bucket, parameters);
  }

  void add_parameters(estimate_bucket bucket, exact_count parameters) {
    std::int64_t& sum = result_.buckets[static_cast<std::size_t>(bucket)].parameters;
    sum = (parameters + sum).value();
  }

  [[nodiscard]] shape_estimate take() && { return std::move(result_); }

 private:
  shape_estimate result_;
};

}  // namespace detail

/// The estimate for a shape: the operation results that a forward pass in training keeps, in fp32 and bf16. Throws
/// `memprof::error` for sizes below 1, for heads that do not divide the width and for bytes beyond 2^63-1.
[[nodiscard]] inline shape_estimate estimate_shape(const decoder_shape& shape) {
  detail::check(shape);
  const std::int64_t b = shape.batch_size, t = shape.seq_len, h = shape.n_heads;
  const detail::exact_count d = shape.d_model, l = shape.layers, v = shape.vocab_size();
  const detail::exact_count packed_width = d * 3, mlp_width = d * 4;

  detail::shape_estimator estimate{shape};
  using enum estimate_bucket;
  constexpr detail::element_bytes mask{1, 1};
  estimate.add(input_projects, "dec_layers.*.multi_head_attention.packed_proj", l, {b, t, packed_width.value()},
               l * (d * packed_width + packed_width));
  estimate.add(per_layer_attention, "dec_layers.*.multi_head_attention.softmax.in(scores)", l, {b, h, t, t});
  estimate.add(per_layer_attention, "dec_layers.*.multi_head_attention.softmax.out(probs)", l, {b, h, t, t});
  estimate.add(per_layer_mlp, "dec_layers.*.linear1", l, {b, t, mlp_width.value()}, l * (d * mlp_width + mlp_width));
  estimate.add(per_layer_mlp, "dec_layers.*.linear2", l, {b, t, d.value()}, l * (mlp_width * d + d));
  estimate.add(output_project, "output_proj", 1, {b, t, v.value()}, d * v + v);
  estimate.add(others, "dec_layers.*.attention_mask(bool)", l, {b, 1, t, t}, 0, mask);
  estimate.add(others, "dec_layers.*.causal_mask(bool)", l, {t, t}, 0, mask);
  estimate.add(others, "key_padding_mask(bool)", 1, {b, t}, 0, mask);
  // For operations whose results the estimate leaves out: attention's output layer, embeddings, normalisations.
  estimate.add_parameters(per_layer_attention, l * (d * d + d));
  estimate.add_parameters(others, v * d + l * (d * 4));
  return std::move(estimate).take();
}

}  // namespace memprof::inline MEMPROF_ABI
