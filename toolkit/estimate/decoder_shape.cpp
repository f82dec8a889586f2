#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/exact_count.hpp>
#include <memprof/toolkit/estimate/shape_estimator.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

void check(const decoder_shape& shape) {
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

}  // namespace detail

shape_estimate estimate_shape(const decoder_shape& shape) {
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
