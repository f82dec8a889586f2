#include <memprof/config.hpp>
#include <memprof/toolkit/estimate/step_layers.hpp>
#include <memprof/toolkit/estimate/step_mlp.hpp>
#include <memprof/toolkit/estimate/step_recorder.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

step_mlp::step_mlp(const step_plan& plan)
    : is_gated_{plan.model.is_llama()},
      channels_{plan.per_tensor_rank(plan.model.mlp_channels())},
      expand_{plan, "expand", plan.model.d_model, is_gated_ ? 2 * channels_ : channels_, !is_gated_},
      contract_{plan, "contract", channels_, plan.model.d_model, !is_gated_} {}

step_tensor step_mlp::forward(const step_plan& plan, step_tensor input, kept& saved, std::int64_t positions) const {
  const auto scope = plan.operation("mlp");
  // Llama has two products in place of the first, of which the gate's is kept, and then the last.
  expand_.forward(plan, std::move(input), saved.input, positions, plan.keeps_products() ? channels_ : 0, saved.expanded);
  const bool keeps_result = plan.keeps_products() && is_gated_;
  contract_.forward(plan, activate(plan, positions), saved.activated, positions, keeps_result ? plan.model.d_model : 0,
                    saved.result);
  return std::move(saved.result.rest);
}

void step_mlp::drop_recomputed(kept& saved) {
  saved.input.free();
  saved.expanded.rest.free();
  saved.activated.free();
}

step_tensor step_mlp::backward(const step_plan& plan, kept& saved, std::int64_t positions) {
  const auto scope = plan.operation("mlp");
  const step_tensor d_expanded = activate_backward(plan, contract_.backward(plan, saved.activated, positions), positions);
  saved.expanded.free();
  return expand_.backward(plan, saved.input, positions);
}

void step_mlp::list(parameter_pointers& parameters) {
  expand_.list(parameters);
  contract_.list(parameters);
}

step_tensor step_mlp::activate(const step_plan& plan, std::int64_t positions) const {
  const auto scope = plan.operation(name());
  return plan.tensor({plan.setup.batch_size, positions, channels_});
}

step_tensor step_mlp::activate_backward(const step_plan& plan, step_tensor d_activated, std::int64_t positions) const {
  const auto scope = plan.operation(name());
  if (!is_gated_ && plan.setup.layers.works_in_place) return d_activated;
  return plan.tensor({plan.setup.batch_size, positions, is_gated_ ? 2 * channels_ : channels_});
}

step_experts::step_experts(const step_plan& plan) : router_{plan, "router", plan.model.d_model, plan.model.experts, false} {
  for (std::int64_t expert = 0; expert < plan.model.experts; ++expert) experts_.emplace_back(plan);
}

step_tensor step_experts::forward(const step_plan& plan, step_tensor input, kept& saved) const {
  const auto scope = plan.operation("experts");
  saved.choices = router_.forward(plan, std::move(input), saved.router_input, plan.setup.seq_len);
  saved.experts.resize(experts_.size());
  saved.results = plan.tensor({plan.setup.batch_size, plan.setup.seq_len * plan.model.experts_per_token, plan.model.d_model});
  for (std::size_t expert = 0; expert < experts_.size(); ++expert) {
    step_tensor chosen = tokens_of_expert(plan);
    const step_tensor result = experts_[expert].forward(plan, std::move(chosen), saved.experts[expert], positions(plan));
  }
  return plan.activation(plan.model.d_model);
}

step_tensor step_experts::backward(const step_plan& plan, kept& saved) {
  const auto scope = plan.operation("experts");
  step_tensor d_input = plan.activation(plan.model.d_model);
  for (std::size_t expert = experts_.size(); expert-- > 0;) {
    const step_tensor d_result = tokens_of_expert(plan);
    const step_tensor d_chosen = experts_[expert].backward(plan, saved.experts[expert], positions(plan));
  }
  saved.results.free();
  const step_tensor d_choices = plan.tensor({plan.setup.batch_size, plan.setup.seq_len, plan.model.experts});
  saved.choices.free();
  const step_tensor d_router_input = router_.backward(plan, saved.router_input, plan.setup.seq_len);
  return d_input;
}

void step_experts::list(parameter_pointers& parameters) {
  router_.list(parameters);
  for (step_mlp& expert : experts_) expert.list(parameters);
}

std::int64_t step_experts::positions(const step_plan& plan) noexcept {
  const std::int64_t chosen = plan.setup.seq_len * plan.model.experts_per_token;
  return (chosen + plan.model.experts - 1) / plan.model.experts;
}

step_tensor step_experts::tokens_of_expert(const step_plan& plan) {
  return plan.tensor({plan.setup.batch_size, positions(plan), plan.model.d_model});
}

}  // namespace memprof::inline MEMPROF_ABI::detail
