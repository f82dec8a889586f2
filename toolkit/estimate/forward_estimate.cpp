#include <memprof/config.hpp>
#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/exact_count.hpp>
#include <memprof/toolkit/estimate/forward_estimate.hpp>
#include <memprof/toolkit/estimate/shape_estimator.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// Adds the operations of a decoder in the order of its forward pass.
class forward_estimator {
 public:
  forward_estimator(const decoder_model& model, std::int64_t batch_size, std::int64_t seq_len)
      : model_{model},
        b_{batch_size},
        t_{seq_len},
        estimate_{{.batch_size = batch_size,
                   .seq_len = seq_len,
                   .d_model = model.d_model,
                   .n_heads = model.heads,
                   .layers = model.layers,
                   .base_vocab_size = model.vocabulary,
                   .num_special_tokens = 0}} {}

  [[nodiscard]] shape_estimate take() && {
    using enum estimate_bucket;
    const exact_count width = model_.d_model, vocabulary = model_.vocabulary;
    estimate_.add(others, "batch(int32)", 2, {b_, t_}, 0, element_bytes{4, 4});
    const exact_count positions = is_llama() ? 0 : model_.positions == 0 ? t_ : model_.positions;
    estimate_.add(others, "embedding", 1, {b_, t_, model_.d_model}, vocabulary * width + positions * width);
    add_attention();
    if (model_.experts == 0) {
      add_mlp();
    } else {
      add_experts();
    }
    add_norm(others, norm_name(), 1);
    estimate_.add(output_project, "lm_head", 1, {b_, t_, model_.vocabulary}, model_.tied_output ? 0 : vocabulary * width);
    shape_estimate result = std::move(estimate_).take();
    result.architecture = architecture();
    return result;
  }

 private:
  [[nodiscard]] bool is_llama() const noexcept { return model_.is_llama(); }
  [[nodiscard]] std::string norm_name() const { return is_llama() ? "rms_norm" : "layer_norm"; }

  void add_norm(estimate_bucket bucket, const std::string& name, std::int64_t count) {
    const exact_count vectors = is_llama() ? 1 : 2;
    estimate_.add(bucket, name, count, {b_, t_, model_.d_model}, exact_count{count} * vectors * model_.d_model);
    estimate_.add(bucket, name + ".statistics", exact_count{count} * vectors, {b_, t_});
  }
  /// `count` linear layers whose result has a row for each of `positions`.
  void add_linear(estimate_bucket bucket, const std::string& name, exact_count count, std::int64_t positions, std::int64_t inputs,
                  std::int64_t outputs) {
    estimate_.add(bucket, name, count, {b_, positions, outputs}, count * linear(inputs, outputs));
  }
  [[nodiscard]] exact_count linear(exact_count inputs, exact_count outputs) const {
    return inputs * outputs + (is_llama() ? exact_count{0} : outputs);
  }

  void add_attention() {
    using enum estimate_bucket;
    const std::int64_t queries = model_.heads * model_.head_width();
    const std::int64_t packed = queries + 2 * model_.key_value_heads() * model_.head_width();
    add_norm(per_layer_attention, "blocks.*.attention." + norm_name(), model_.layers);
    add_linear(input_projects, "blocks.*.attention.qkv", model_.layers, t_, model_.d_model, packed);
    estimate_.add(per_layer_attention, "blocks.*.attention.scores(probs)", model_.layers, {b_, model_.heads, t_, t_});
    estimate_.add(per_layer_attention, "blocks.*.attention.context", model_.layers, {b_, t_, queries});
    add_linear(per_layer_attention, "blocks.*.attention.projection", model_.layers, t_, queries, model_.d_model);
  }

  void add_mlp() {
    using enum estimate_bucket;
    add_norm(per_layer_mlp, "blocks.*.mlp." + norm_name(), model_.layers);
    add_expanded("blocks.*.mlp.", model_.layers, t_);
    add_linear(per_layer_mlp, "blocks.*.mlp.contract", model_.layers, t_, model_.mlp_channels(), model_.d_model);
  }
  /// The first layer of an MLP and its activation. A gated one has two halves.
  void add_expanded(const std::string& prefix, exact_count count, std::int64_t positions) {
    using enum estimate_bucket;
    const std::int64_t channels = model_.mlp_channels();
    add_linear(per_layer_mlp, prefix + "expand", count, positions, model_.d_model, is_llama() ? 2 * channels : channels);
    estimate_.add(per_layer_mlp, prefix + (is_llama() ? "swiglu" : "gelu"), count, {b_, positions, channels});
  }

  void add_experts() {
    using enum estimate_bucket;
    const exact_count experts = exact_count{model_.layers} * model_.experts;
    const std::int64_t chosen = (exact_count{t_} * model_.experts_per_token).value();
    const std::int64_t tokens_of_each = (chosen + model_.experts - 1) / model_.experts;
    add_norm(per_layer_mlp, "blocks.*.experts." + norm_name(), model_.layers);
    add_linear(per_layer_mlp, "blocks.*.experts.router", model_.layers, t_, model_.d_model, model_.experts);
    estimate_.add(per_layer_mlp, "blocks.*.experts.*.tokens", experts, {b_, tokens_of_each, model_.d_model});
    add_expanded("blocks.*.experts.*.", experts, tokens_of_each);
    estimate_.add(per_layer_mlp, "blocks.*.experts.contract", model_.layers, {b_, chosen, model_.d_model},
                  experts * linear(model_.mlp_channels(), model_.d_model));
    estimate_.add(per_layer_mlp, "blocks.*.experts.sum", model_.layers, {b_, t_, model_.d_model});
  }

  /// What the dimensions of a `decoder_shape` do not say.
  [[nodiscard]] std::string architecture() const {
    std::string text{decoder_family_names[static_cast<std::size_t>(model_.family)]};
    text += ", KV=" + std::to_string(model_.key_value_heads()) + ", M=" + std::to_string(model_.mlp_channels());
    if (model_.experts != 0)
      text += ", experts=" + std::to_string(model_.experts) + ", experts-per-token=" + std::to_string(model_.experts_per_token);
    return text + (model_.tied_output ? ", tied output" : "");
  }

  const decoder_model& model_;
  std::int64_t b_;
  std::int64_t t_;
  shape_estimator estimate_;
};

}  // namespace
}  // namespace detail

shape_estimate estimate_forward(const decoder_model& model, std::int64_t batch_size, std::int64_t seq_len) {
  detail::check(model);
  detail::require_positive(batch_size, "batch_size");
  detail::require_positive(seq_len, "seq_len");
  return detail::forward_estimator{model, batch_size, seq_len}.take();
}

}  // namespace memprof::inline MEMPROF_ABI
