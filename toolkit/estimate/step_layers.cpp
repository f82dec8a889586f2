#include <memprof/config.hpp>
#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/step_layers.hpp>
#include <memprof/toolkit/estimate/step_recorder.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/dtype.hpp>
#include <memprof/trace/tensor_bytes.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

step_plan::step_plan(const decoder_model& of, const training_setup& with, step_recorder& to)
    : model{of}, setup{with}, whole_seq_len{with.seq_len}, recorder{to}, device{with.device} {
  setup.seq_len /= setup.parallel.context;
  if (device.empty()) device.add({.name = "cpu"});
}

std::int64_t step_plan::bytes(std::initializer_list<std::int64_t> shape, dtype type) const {
  std::array<std::size_t, 4> sizes{};
  std::size_t rank = 0;
  for (const std::int64_t size : shape) sizes.at(rank++) = static_cast<std::size_t>(size);
  return tensor_bytes(device, type, std::span<const std::size_t>{sizes}.first(rank));
}

step_tensor step_plan::tensor(std::initializer_list<std::int64_t> shape, optional_category kind) const {
  return {recorder, bytes(shape, setup.type), kind};
}

step_tensor step_plan::tensor_of(dtype type, std::initializer_list<std::int64_t> shape, optional_category kind) const {
  return {recorder, bytes(shape, type), kind};
}

step_tensor step_plan::activation(std::int64_t channels) const { return tensor({setup.batch_size, setup.seq_len, channels}); }

step_operation step_plan::operation(std::string_view name, optional_category kind) const { return {recorder, name, kind}; }

std::int64_t step_plan::per_tensor_rank(std::int64_t whole) const noexcept {
  return (whole + setup.parallel.tensor - 1) / setup.parallel.tensor;
}

std::int64_t step_plan::per_replica(std::int64_t bytes_of_whole) const noexcept {
  const std::int64_t multiple = device.tensor_space().size_multiple;
  const std::int64_t part = (bytes_of_whole + replicas() - 1) / replicas();
  return (part + multiple - 1) / multiple * multiple;
}

bool step_plan::divides(int from_stage) const noexcept { return setup.parallel.zero_stage >= from_stage && replicas() > 1; }

step_parameter::step_parameter(const step_plan& plan, std::int64_t rows, std::int64_t columns) : rows_{rows}, columns_{columns} {
  const std::int64_t whole = bytes(plan, plan.setup.type);
  value_ = {plan.recorder, plan.divides_parameters() ? plan.per_replica(whole) : whole, category::parameter};
}

std::int64_t step_parameter::bytes(const step_plan& plan, dtype type) const {
  return is_matrix() ? plan.bytes({rows_, columns_}, type) : plan.bytes({columns_}, type);
}

void step_parameter::add_gradient(const step_plan& plan) {
  step_tensor& gradient = plan.divides_gradients() ? whole_gradient_ : gradient_;
  if (!gradient.empty()) return;
  const auto scope = plan.operation("parameter_gradient", category::gradient);
  gradient = {plan.recorder, bytes(plan, plan.setup.gradient_type.value_or(plan.setup.type))};
}

void step_parameter::divide_gradient(const step_plan& plan) {
  if (whole_gradient_.empty()) return;
  const auto scope = plan.operation("parameter_gradient", category::gradient);
  if (gradient_.empty()) gradient_ = {plan.recorder, plan.per_replica(whole_gradient_.bytes())};
  whole_gradient_.free();
}

step_tensor gathered(const step_plan& plan, const parameter_pointers& parameters) {
  if (!plan.divides_parameters()) return {};
  const auto scope = plan.operation("gathered_parameters", category::parameter);
  std::int64_t bytes = 0;
  for (const step_parameter* parameter : parameters) bytes += parameter->bytes(plan, plan.setup.type);
  return {plan.recorder, bytes};
}

void divide_gradients(const step_plan& plan, const parameter_pointers& parameters) {
  for (step_parameter* parameter : parameters) parameter->divide_gradient(plan);
}

step_linear::step_linear(const step_plan& plan, std::string_view name, std::int64_t inputs, std::int64_t outputs, bool has_bias)
    : name_{name}, weight_{plan, inputs, outputs} {
  if (has_bias) bias_.emplace(plan, 0, outputs);
}

step_tensor step_linear::forward(const step_plan& plan, step_tensor input, step_tensor& kept_input,
                                 std::int64_t positions) const {
  const auto scope = plan.operation(name_);
  step_tensor result = plan.tensor({plan.setup.batch_size, positions, weight_.columns()});
  kept_input = std::move(input);
  return result;
}

void step_linear::forward(const step_plan& plan, step_tensor input, step_tensor& kept_input, std::int64_t positions,
                          std::int64_t kept_columns, step_product& result) const {
  const auto scope = plan.operation(name_);
  const auto made = [&](std::int64_t columns) { return plan.tensor({plan.setup.batch_size, positions, columns}); };
  const std::int64_t other_columns = weight_.columns() - kept_columns;
  if (kept_columns != 0 && result.kept.empty()) result.kept = made(kept_columns);
  if (other_columns != 0) result.rest = made(other_columns);
  kept_input = std::move(input);
}

step_tensor step_linear::backward(const step_plan& plan, step_tensor& kept_input, std::int64_t positions) {
  const auto scope = plan.operation(name_);
  weight_.add_gradient(plan);
  if (bias_) bias_->add_gradient(plan);
  kept_input.free();
  step_tensor transposed;
  if (plan.setup.layers.transposes_copy) transposed = plan.tensor({weight_.columns(), weight_.rows()});
  return plan.tensor({plan.setup.batch_size, positions, weight_.rows()});
}

void step_linear::list(parameter_pointers& parameters) {
  parameters.push_back(&weight_);
  if (bias_) parameters.push_back(&*bias_);
}

step_norm::step_norm(const step_plan& plan) : gain_{plan, 0, plan.model.d_model} {
  if (!plan.model.is_llama()) shift_.emplace(plan, 0, plan.model.d_model);
}

step_tensor step_norm::forward(const step_plan& plan, kept& statistics) const {
  const auto scope = plan.operation(name(plan));
  if (!plan.model.is_llama()) statistics.means = plan.statistic();
  statistics.inverse_deviations = plan.statistic();
  return plan.activation(plan.model.d_model);
}

step_tensor step_norm::backward(const step_plan& plan, kept& statistics, step_tensor d_result) {
  const auto scope = plan.operation(name(plan));
  step_tensor result = plan.activation(plan.model.d_model);
  gain_.add_gradient(plan);
  if (shift_) shift_->add_gradient(plan);
  statistics = {};
  d_result.free();
  return result;
}

void step_norm::list(parameter_pointers& parameters) {
  parameters.push_back(&gain_);
  if (shift_) parameters.push_back(&*shift_);
}

std::string_view step_norm::name(const step_plan& plan) noexcept { return plan.model.is_llama() ? "rms_norm" : "layer_norm"; }

}  // namespace memprof::inline MEMPROF_ABI::detail
