#include <memprof/config.hpp>
#include <memprof/toolkit/estimate/step_block.hpp>
#include <memprof/toolkit/estimate/step_layers.hpp>
#include <memprof/toolkit/estimate/step_model.hpp>
#include <memprof/toolkit/estimate/step_recorder.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

step_embedding::step_embedding(const step_plan& plan)
    : tokens_{plan, plan.per_tensor_rank(plan.model.vocabulary), plan.model.d_model} {
  if (!plan.model.is_llama()) positions_.emplace(plan, positions_of(plan), plan.model.d_model);
}

step_tensor step_embedding::forward(const step_plan& plan) {
  const auto scope = plan.operation("embedding");
  const step_tensor whole = gathered(plan, parameters());
  return plan.activation(plan.model.d_model);
}

void step_embedding::backward(const step_plan& plan) {
  const auto scope = plan.operation("embedding");
  for (step_parameter* parameter : parameters()) parameter->add_gradient(plan);
  divide_gradients(plan, parameters());
}

parameter_pointers step_embedding::parameters() {
  parameter_pointers all{&tokens_};
  if (positions_) all.push_back(&*positions_);
  return all;
}

std::int64_t step_embedding::positions_of(const step_plan& plan) noexcept {
  return plan.model.positions == 0 ? plan.whole_seq_len : plan.model.positions;
}

step_head::step_head(const step_plan& plan, step_parameter* token_table)
    : vocabulary_{plan.per_tensor_rank(plan.model.vocabulary)}, norm_{plan}, table_{token_table} {
  if (table_ != nullptr) return;
  // Tied to an embedding on another stage of the pipeline: a copy with the rows of the table.
  const bool is_table = plan.model.tied_output;
  own_.emplace(plan, is_table ? vocabulary_ : plan.model.d_model, is_table ? plan.model.d_model : vocabulary_);
  table_ = &*own_;
}

void step_head::forward(const step_plan& plan, step_tensor input, kept& saved) {
  const step_tensor whole = gathered(plan, parameters());
  saved.input = std::move(input);
  step_tensor normalised = norm_.forward(plan, saved.norm);
  step_tensor logits = logits_of(plan, std::move(normalised), saved);
  const auto scope = plan.operation("cross_entropy");
  step_tensor copied;
  if (copies_logits(plan)) copied = loss_tensor(plan);
  saved.probabilities = plan.setup.layers.works_in_place ? std::move(logits) : loss_tensor(plan);
}

step_tensor step_head::backward(const step_plan& plan, kept& saved) {
  const step_tensor whole = gathered(plan, parameters());
  step_tensor d_normalised = logits_backward(plan, loss_backward(plan, saved), saved);
  step_tensor d_input = norm_.backward(plan, saved.norm, std::move(d_normalised));
  saved.input.free();
  divide_gradients(plan, parameters());
  return d_input;
}

parameter_pointers step_head::parameters() {
  parameter_pointers all;
  norm_.list(all);
  if (own_) all.push_back(&*own_);
  return all;
}

step_tensor step_head::logits_of(const step_plan& plan, step_tensor normalised, kept& saved) const {
  const auto scope = plan.operation("lm_head");
  step_tensor logits = plan.activation(vocabulary_);
  step_tensor transposed;
  if (plan.model.tied_output && plan.setup.layers.transposes_copy) transposed = plan.tensor({plan.model.d_model, vocabulary_});
  saved.normalised = std::move(normalised);
  return logits;
}

step_tensor step_head::loss_backward(const step_plan& plan, kept& saved) const {
  const auto scope = plan.operation("cross_entropy");
  if (plan.setup.layers.works_in_place) return std::move(saved.probabilities);
  step_tensor d_probabilities = loss_tensor(plan);
  step_tensor d_logits = loss_tensor(plan);
  saved.probabilities.free();
  d_probabilities.free();
  return copies_logits(plan) ? plan.activation(vocabulary_) : std::move(d_logits);
}

bool step_head::copies_logits(const step_plan& plan) noexcept {
  return plan.setup.float32_logits && plan.setup.type != dtype::float32;
}

step_tensor step_head::loss_tensor(const step_plan& plan) const {
  return plan.tensor_of(copies_logits(plan) ? dtype::float32 : plan.setup.type,
                        {plan.setup.batch_size, plan.setup.seq_len, vocabulary_});
}

step_tensor step_head::logits_backward(const step_plan& plan, step_tensor d_logits, kept& saved) {
  const auto scope = plan.operation("lm_head");
  table_->add_gradient(plan);
  saved.normalised.free();
  step_tensor transposed;
  if (!plan.model.tied_output && plan.setup.layers.transposes_copy) transposed = plan.tensor({vocabulary_, plan.model.d_model});
  step_tensor result = plan.activation(plan.model.d_model);
  transposed.free();
  d_logits.free();
  return result;
}

namespace {

/// The type of the optimizer's moments.
dtype state_type(const training_setup& setup) noexcept {
  return setup.master_weights ? dtype::float32 : setup.state_type.value_or(setup.type);
}

/// What an optimizer keeps for one parameter.
std::vector<step_tensor> optimizer_states(const step_plan& plan, const step_parameter& parameter) {
  const training_setup& setup = plan.setup;
  const dtype type = state_type(setup);
  std::vector<step_tensor> states;
  const auto add = [&](std::int64_t bytes) {
    states.emplace_back(plan.recorder, plan.divides_states() ? plan.per_replica(bytes) : bytes);
  };
  if (setup.master_weights) add(parameter.bytes(plan, dtype::float32));
  switch (setup.optimizer) {
    case optimizer_kind::sgd: break;
    case optimizer_kind::momentum: add(parameter.bytes(plan, type)); break;
    case optimizer_kind::adam:
    case optimizer_kind::adamw:
      for (int moment = 0; moment < 2; ++moment) add(parameter.bytes(plan, type));
      break;
    case optimizer_kind::adam_8bit: {
      constexpr std::int64_t least_elements = 4096, block = 256;
      const bool is_small = parameter.count() < least_elements;
      for (int moment = 0; moment < 2; ++moment) {
        add(parameter.bytes(plan, is_small ? dtype::float32 : dtype::int8));
        if (!is_small) add(plan.bytes({(parameter.count() + block - 1) / block}, dtype::float32));
      }
      break;
    }
  }
  return states;
}

}  // namespace

step_stage::step_stage(const step_plan& plan, std::int64_t stage)
    : is_first_{stage == 0}, is_last_{stage == plan.setup.parallel.pipeline - 1} {
  if (is_first_) embedding_.emplace(plan);
  if (plan.model.is_llama()) make_rotary_tables(plan);
  const std::int64_t layers = plan.model.layers / plan.setup.parallel.pipeline;
  blocks_.reserve(static_cast<std::size_t>(layers));
  for (std::int64_t layer = 0; layer < layers; ++layer) blocks_.emplace_back(plan);
  if (is_last_) head_.emplace(plan, is_first_ && plan.model.tied_output ? &embedding_->token_table() : nullptr);
  make_list();
}

void step_stage::make_optimizer(const step_plan& plan) {
  const auto scope = plan.operation("adamw", category::optimizer_state);
  for (const step_parameter* parameter : parameters_) {
    for (step_tensor& state : optimizer_states(plan, *parameter)) states_.push_back(std::move(state));
  }
}

void step_stage::make_batch(const step_plan& plan, kept& saved) const {
  const auto scope = plan.operation("batch", category::input);
  step_tensor tokens, targets;
  if (is_first_) tokens = plan.tensor_of(dtype::int32, {plan.setup.batch_size, plan.setup.seq_len});
  if (is_last_) targets = plan.tensor_of(dtype::int32, {plan.setup.batch_size, plan.setup.seq_len});
  saved.tokens = std::move(tokens);
  saved.targets = std::move(targets);
}

void step_stage::forward(const step_plan& plan, kept& saved) {
  const auto scope = plan.operation("forward", category::activation);
  step_tensor stream = is_first_ ? embedding_->forward(plan) : received(plan);
  saved.blocks.resize(blocks_.size());
  for (std::size_t index = 0; index < blocks_.size(); ++index) {
    stream = blocks_[index].forward(plan, std::move(stream), saved.blocks[index]);
  }
  // Without a head it is sent on: only the next stage needs it.
  if (is_last_) head_->forward(plan, std::move(stream), saved.head);
}

void step_stage::backward(const step_plan& plan, kept& saved) {
  const auto scope = plan.operation("backward", category::temporary);
  step_tensor gradient = is_last_ ? head_->backward(plan, saved.head) : received(plan);
  for (std::size_t index = blocks_.size(); index-- > 0;) {
    gradient = blocks_[index].backward(plan, std::move(gradient), saved.blocks[index]);
  }
  if (is_first_) embedding_->backward(plan);
}

void step_stage::step(const step_plan& plan) {
  update(plan);
  const auto scope = plan.operation("free_gradients");
  for (step_parameter* parameter : parameters_) parameter->free_gradient();
}

void step_stage::update(const step_plan& plan) const {
  const auto scope = plan.operation("adamw", category::temporary);
  const bool has_roots = plan.setup.optimizer == optimizer_kind::adam || plan.setup.optimizer == optimizer_kind::adamw;
  if (plan.setup.layers.works_in_place || !has_roots) return;
  for (const step_parameter* parameter : parameters_) {
    const std::int64_t whole = parameter->bytes(plan, state_type(plan.setup));
    const std::int64_t bytes = plan.divides_states() ? plan.per_replica(whole) : whole;
    const step_tensor root{plan.recorder, bytes};  // of the second moment
    const step_tensor divisor{plan.recorder, bytes};
  }
}

step_tensor step_stage::received(const step_plan& plan) {
  const auto scope = plan.operation("receive");
  return plan.activation(plan.model.d_model);
}

void step_stage::make_rotary_tables(const step_plan& plan) {
  const auto scope = plan.operation("rotary_tables");
  for (step_tensor& table : rotary_tables_) {
    table = plan.tensor({step_embedding::positions_of(plan), plan.model.head_width() / 2});
  }
}

void step_stage::make_list() {
  const auto append = [&](const parameter_pointers& more) { parameters_.insert(parameters_.end(), more.begin(), more.end()); };
  if (embedding_) append(embedding_->parameters());
  for (step_block& block : blocks_) append(block.parameters());
  if (head_) append(head_->parameters());
}

}  // namespace memprof::inline MEMPROF_ABI::detail
