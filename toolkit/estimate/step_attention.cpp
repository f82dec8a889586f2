#include <memprof/config.hpp>
#include <memprof/toolkit/estimate/step_attention.hpp>
#include <memprof/toolkit/estimate/step_layers.hpp>
#include <memprof/toolkit/estimate/step_recorder.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/dtype.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

step_attention::step_attention(const step_plan& plan)
    : heads_{plan.per_tensor_rank(plan.model.heads)},
      kv_heads_{std::max<std::int64_t>(1, plan.model.key_value_heads() / plan.setup.parallel.tensor)},
      head_width_{plan.model.head_width()},
      to_qkv_{plan, "qkv", plan.model.d_model, (heads_ + 2 * kv_heads_) * head_width_, !plan.model.is_llama()},
      projection_{plan, "projection", heads_ * head_width_, plan.model.d_model, !plan.model.is_llama()} {}

step_tensor step_attention::forward(const step_plan& plan, step_tensor input, kept& saved) const {
  const auto scope = plan.operation("attention");
  to_qkv_.forward(plan, std::move(input), saved.input, plan.setup.seq_len, kept_columns(plan), saved.qkv);
  if (saved.context.empty()) attend(plan, saved);
  step_tensor context = std::move(saved.context);
  if (plan.setup.attention == attention_kind::recomputed) saved.probabilities.free();
  return projection_.forward(plan, std::move(context), saved.context, plan.setup.seq_len);
}

void step_attention::attend(const step_plan& plan, kept& saved) const {
  const step_tensor gathered = gathered_keys_and_values(plan, "gathered_keys_and_values");
  saved.probabilities = plan.setup.attention == attention_kind::fused ? row_numbers(plan, "scores") : probabilities(plan);
  saved.context = context_of(plan);
}

void step_attention::drop_recomputed(const step_plan& plan, kept& saved) const {
  saved.input.free();
  saved.qkv.rest.free();
  if (plan.setup.attention == attention_kind::fused) return;
  saved.probabilities.free();
  saved.context.free();
}

step_tensor step_attention::backward(const step_plan& plan, kept& saved) {
  const auto scope = plan.operation("attention");
  step_tensor d_context = projection_.backward(plan, saved.context, plan.setup.seq_len);
  step_tensor gathered = gathered_keys_and_values(plan, "gathered_keys_and_values");
  step_tensor d_gathered = gathered_keys_and_values(plan, "gradient_of_gathered_keys_and_values");
  step_tensor d_qkv = plan.setup.attention == attention_kind::fused ? fused_backward(plan) : plain_backward(plan, saved);
  gathered.free();
  d_gathered.free();
  d_context.free();
  saved.probabilities.free();
  saved.qkv.free();
  return to_qkv_.backward(plan, saved.input, plan.setup.seq_len);
}

void step_attention::list(parameter_pointers& parameters) {
  to_qkv_.list(parameters);
  projection_.list(parameters);
}

step_tensor step_attention::scores(const step_plan& plan) const {
  return plan.tensor({plan.setup.batch_size, heads_, plan.setup.seq_len, plan.whole_seq_len});
}

step_tensor step_attention::transposed_heads(const step_plan& plan) const {
  if (!plan.setup.layers.transposes_copy) return {};
  const auto scope = plan.operation("transpose", category::temporary);
  return plan.tensor({plan.setup.batch_size, kv_heads_, head_width_, plan.whole_seq_len});
}

step_tensor step_attention::probabilities(const step_plan& plan) const {
  const auto scope = plan.operation("scores");
  step_tensor result = scores(plan);
  const step_tensor keys = transposed_heads(plan);
  return result;
}

step_tensor step_attention::row_numbers(const step_plan& plan, std::string_view name, optional_category kind) const {
  const auto scope = plan.operation(name);
  return plan.tensor_of(dtype::float32, {plan.setup.batch_size, heads_, plan.setup.seq_len}, kind);
}

step_tensor step_attention::context_of(const step_plan& plan) const {
  const auto scope = plan.operation("context");
  return plan.activation(heads_ * head_width_);
}

step_tensor step_attention::gathered_keys_and_values(const step_plan& plan, std::string_view name) const {
  if (plan.setup.parallel.context == 1) return {};
  const auto scope = plan.operation(name, category::temporary);
  return plan.tensor({plan.setup.batch_size, plan.whole_seq_len, 2 * kv_heads_ * head_width_});
}

std::int64_t step_attention::kept_columns(const step_plan& plan) const noexcept {
  if (!plan.keeps_products()) return 0;
  // Llama has three products in place of this one: the first and the third are those of queries and values.
  return (heads_ + (plan.model.is_llama() ? 1 : 2) * kv_heads_) * head_width_;
}

step_tensor step_attention::qkv_gradient(const step_plan& plan) const {
  return plan.activation((heads_ + 2 * kv_heads_) * head_width_);
}

step_tensor step_attention::plain_backward(const step_plan& plan, kept& saved) const {
  if (plan.setup.attention == attention_kind::recomputed) {
    const auto recomputation = plan.operation("recomputation", category::activation);
    saved.probabilities = probabilities(plan);
  }
  step_tensor d_scores;
  {
    const auto scope = plan.operation("softmax");
    d_scores = scores(plan);
    const step_tensor values = transposed_heads(plan);
  }
  const auto scope = plan.operation("scores");
  return qkv_gradient(plan);
}

step_tensor step_attention::fused_backward(const step_plan& plan) const {
  const step_tensor row_sums = row_numbers(plan, "softmax", category::temporary);
  const auto scope = plan.operation("scores");
  // Blocks of keys add to the gradient of the queries in turn, for which 16 bits are too few.
  step_tensor sums;
  if (plan.setup.type != dtype::float32) {
    sums = plan.tensor_of(dtype::float32, {plan.setup.batch_size, plan.setup.seq_len, heads_, head_width_}, category::temporary);
  }
  return qkv_gradient(plan);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
