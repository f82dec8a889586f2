#include <memprof/config.hpp>
#include <memprof/toolkit/estimate/step_attention.hpp>
#include <memprof/toolkit/estimate/step_block.hpp>
#include <memprof/toolkit/estimate/step_layers.hpp>
#include <memprof/toolkit/estimate/step_mlp.hpp>
#include <memprof/toolkit/estimate/step_recorder.hpp>
#include <memprof/trace/category.hpp>

#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

step_block::step_block(const step_plan& plan) : attention_norm_{plan}, attention_{plan}, mlp_norm_{plan} {
  if (plan.model.experts == 0) {
    mlp_.emplace(plan);
  } else {
    experts_.emplace(plan);
  }
}

step_tensor step_block::forward(const step_plan& plan, step_tensor input, kept& saved) {
  const auto scope = plan.operation("block");
  const step_tensor whole = gathered(plan, parameters());
  saved.input = std::move(input);
  step_tensor result = run(plan, saved);
  drop_recomputed(plan, saved);
  return result;
}

step_tensor step_block::backward(const step_plan& plan, step_tensor d_result, kept& saved) {
  const auto scope = plan.operation("block");
  const step_tensor whole = gathered(plan, parameters());
  if (plan.setup.recompute != recomputation_kind::off) {
    const auto recomputation = plan.operation("recomputation", category::activation);
    (void)run(plan, saved);
  }
  step_tensor d_middle = add_residual(plan, d_result, mlp_norm_.backward(plan, saved.mlp_norm, feed_backward(plan, saved)));
  d_result.free();
  saved.middle.free();
  step_tensor d_input = add_residual(
      plan, d_middle, attention_norm_.backward(plan, saved.attention_norm, attention_.backward(plan, saved.attention)));
  saved.input.free();
  saved.mlp.result.free();
  divide_gradients(plan, parameters());
  return d_input;
}

parameter_pointers step_block::parameters() {
  parameter_pointers all;
  attention_norm_.list(all);
  attention_.list(all);
  mlp_norm_.list(all);
  if (mlp_) mlp_->list(all);
  if (experts_) experts_->list(all);
  return all;
}

step_tensor step_block::run(const step_plan& plan, kept& saved) {
  saved.middle = add_residual(plan, saved.input,
                              attention_.forward(plan, attention_norm_.forward(plan, saved.attention_norm), saved.attention));
  step_tensor normalised = mlp_norm_.forward(plan, saved.mlp_norm);
  return add_residual(plan, saved.middle,
                      mlp_ ? mlp_->forward(plan, std::move(normalised), saved.mlp, plan.setup.seq_len)
                           : experts_->forward(plan, std::move(normalised), saved.experts));
}

void step_block::drop_recomputed(const step_plan& plan, kept& saved) const {
  if (plan.setup.recompute == recomputation_kind::off) return;
  if (plan.setup.recompute == recomputation_kind::blocks) {
    step_tensor only_input = std::move(saved.input);
    saved = {};
    saved.input = std::move(only_input);
    return;
  }
  saved.attention_norm = {};
  attention_.drop_recomputed(plan, saved.attention);
  saved.middle.free();
  saved.mlp_norm = {};
  step_mlp::drop_recomputed(saved.mlp);
}

step_tensor step_block::feed_backward(const step_plan& plan, kept& saved) {
  return mlp_ ? mlp_->backward(plan, saved.mlp, plan.setup.seq_len) : experts_->backward(plan, saved.experts);
}

step_tensor step_block::add_residual(const step_plan& plan, const step_tensor& from, step_tensor to) {
  const auto scope = plan.operation("residual");
  if (plan.setup.layers.works_in_place) return to;
  return {plan.recorder, from.bytes()};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
