#pragma once

#include <memprof/toolkit/estimate/decoder_model.hpp>
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
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// The allocations and frees of a decoder's layers, in the order of examples/nano_gpt, for one of the devices that share the
/// training. Operations have that program's names too, so that the two can be compared line by line.

namespace memprof::inline MEMPROF_ABI::detail {

/// What all layers need to know. One object per step.
struct step_plan {
  step_plan(const decoder_model& of, const training_setup& with, step_recorder& to)
      : model{of}, setup{with}, recorder{to}, device{with.device} {
    if (device.empty()) device.add({.name = "cpu"});
  }

  const decoder_model& model;
  const training_setup& setup;
  step_recorder& recorder;
  device_description device;

  [[nodiscard]] std::int64_t bytes(std::initializer_list<std::int64_t> shape, dtype type) const {
    std::array<std::size_t, 4> sizes{};
    std::size_t rank = 0;
    for (const std::int64_t size : shape) sizes.at(rank++) = static_cast<std::size_t>(size);
    return tensor_bytes(device, type, std::span<const std::size_t>{sizes}.first(rank));
  }
  [[nodiscard]] step_tensor tensor(std::initializer_list<std::int64_t> shape, optional_category kind = {}) const {
    return {recorder, bytes(shape, setup.type), kind};
  }
  [[nodiscard]] step_tensor tensor_of(dtype type, std::initializer_list<std::int64_t> shape, optional_category kind = {}) const {
    return {recorder, bytes(shape, type), kind};
  }
  /// [batch, time, channels]
  [[nodiscard]] step_tensor activation(std::int64_t channels) const {
    return tensor({setup.batch_size, setup.seq_len, channels});
  }
  /// One number for each position of each sequence.
  [[nodiscard]] step_tensor statistic() const { return tensor({setup.batch_size * setup.seq_len}); }
  [[nodiscard]] step_operation operation(std::string_view name, optional_category kind = {}) const {
    return {recorder, name, kind};
  }

  [[nodiscard]] std::int64_t per_tensor_rank(std::int64_t whole) const noexcept {
    return (whole + setup.parallel.tensor - 1) / setup.parallel.tensor;
  }
  /// The share of one replica in a tensor that is divided among all replicas.
  [[nodiscard]] std::int64_t per_replica(std::int64_t bytes_of_whole) const noexcept {
    const std::int64_t multiple = device.tensor_space().size_multiple;
    const std::int64_t part = (bytes_of_whole + setup.parallel.data - 1) / setup.parallel.data;
    return (part + multiple - 1) / multiple * multiple;
  }
  [[nodiscard]] bool divides(int from_stage) const noexcept {
    return setup.parallel.zero_stage >= from_stage && setup.parallel.data > 1;
  }
  [[nodiscard]] bool divides_states() const noexcept { return divides(1); }
  [[nodiscard]] bool divides_gradients() const noexcept { return divides(2); }
  [[nodiscard]] bool divides_parameters() const noexcept { return divides(3); }
};

/// A trainable tensor: a matrix, or a vector with one row.
class step_parameter {
 public:
  step_parameter(const step_plan& plan, std::int64_t rows, std::int64_t columns) : rows_{rows}, columns_{columns} {
    const std::int64_t whole = bytes(plan, plan.setup.type);
    value_ = {plan.recorder, plan.divides_parameters() ? plan.per_replica(whole) : whole, category::parameter};
  }

  /// The bytes in a type; if it matters for the layout, a vector counts as a vector and not as a matrix with one row.
  [[nodiscard]] std::int64_t bytes(const step_plan& plan, dtype type) const {
    return is_matrix() ? plan.bytes({rows_, columns_}, type) : plan.bytes({columns_}, type);
  }
  [[nodiscard]] bool is_matrix() const noexcept { return rows_ != 0; }
  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t columns() const noexcept { return columns_; }
  [[nodiscard]] std::int64_t count() const noexcept { return is_matrix() ? rows_ * columns_ : columns_; }

  /// Adds to the gradient in a backward pass, which allocates it on first use.
  void add_gradient(const step_plan& plan) {
    step_tensor& gradient = plan.divides_gradients() ? whole_gradient_ : gradient_;
    if (!gradient.empty()) return;
    const auto scope = plan.operation("parameter_gradient", category::gradient);
    gradient = {plan.recorder, bytes(plan, plan.setup.gradient_type.value_or(plan.setup.type))};
  }
  /// Divides the gradient after the replicas have summed theirs: each keeps its part.
  void divide_gradient(const step_plan& plan) {
    if (whole_gradient_.empty()) return;
    const auto scope = plan.operation("parameter_gradient", category::gradient);
    if (gradient_.empty()) gradient_ = {plan.recorder, plan.per_replica(whole_gradient_.bytes())};
    whole_gradient_.free();
  }
  void free_gradient() { gradient_.free(); }

 private:
  std::int64_t rows_;  ///< 0: a vector
  std::int64_t columns_;
  step_tensor value_;
  step_tensor gradient_;
  step_tensor whole_gradient_;  ///< before the replicas divide it
};

using parameter_pointers = std::vector<step_parameter*>;

/// All parameters of a part of the model, gathered while the part is computed if replicas divide them.
[[nodiscard]] inline step_tensor gathered(const step_plan& plan, const parameter_pointers& parameters) {
  if (!plan.divides_parameters()) return {};
  const auto scope = plan.operation("gathered_parameters", category::parameter);
  std::int64_t bytes = 0;
  for (const step_parameter* parameter : parameters) bytes += parameter->bytes(plan, plan.setup.type);
  return {plan.recorder, bytes};
}

inline void divide_gradients(const step_plan& plan, const parameter_pointers& parameters) {
  for (step_parameter* parameter : parameters) parameter->divide_gradient(plan);
}

/// `y = x * weight + bias`. The caller holds what a forward pass keeps, since several may be in flight.
class step_linear {
 public:
  step_linear(const step_plan& plan, std::string_view name, std::int64_t inputs, std::int64_t outputs, bool has_bias)
      : name_{name}, weight_{plan, inputs, outputs} {
    if (has_bias) bias_.emplace(plan, 0, outputs);
  }

  /// `positions` are those of a sequence unless a router chose others.
  [[nodiscard]] step_tensor forward(const step_plan& plan, step_tensor input, step_tensor& kept_input,
                                    std::int64_t positions) const {
    const auto scope = plan.operation(name_);
    step_tensor result = plan.tensor({plan.setup.batch_size, positions, weight_.columns()});
    kept_input = std::move(input);
    return result;
  }
  [[nodiscard]] step_tensor backward(const step_plan& plan, step_tensor& kept_input, std::int64_t positions) {
    const auto scope = plan.operation(name_);
    weight_.add_gradient(plan);
    if (bias_) bias_->add_gradient(plan);
    kept_input.free();
    step_tensor transposed;
    if (plan.setup.layers.transposes_copy) transposed = plan.tensor({weight_.columns(), weight_.rows()});
    return plan.tensor({plan.setup.batch_size, positions, weight_.rows()});
  }
  void list(parameter_pointers& parameters) {
    parameters.push_back(&weight_);
    if (bias_) parameters.push_back(&*bias_);
  }

 private:
  std::string_view name_;
  step_parameter weight_;
  std::optional<step_parameter> bias_;
};

/// Layer normalisation, or RMS normalisation, which has neither means nor a shift.
class step_norm {
 public:
  struct kept {
    step_tensor means;
    step_tensor inverse_deviations;
  };

  explicit step_norm(const step_plan& plan) : gain_{plan, 0, plan.model.d_model} {
    if (!plan.model.is_llama()) shift_.emplace(plan, 0, plan.model.d_model);
  }

  [[nodiscard]] step_tensor forward(const step_plan& plan, kept& statistics) const {
    const auto scope = plan.operation(name(plan));
    if (!plan.model.is_llama()) statistics.means = plan.statistic();
    statistics.inverse_deviations = plan.statistic();
    return plan.activation(plan.model.d_model);
  }
  /// Frees the gradient of its result.
  [[nodiscard]] step_tensor backward(const step_plan& plan, kept& statistics, step_tensor d_result) {
    const auto scope = plan.operation(name(plan));
    step_tensor result = plan.activation(plan.model.d_model);
    gain_.add_gradient(plan);
    if (shift_) shift_->add_gradient(plan);
    statistics = {};
    d_result.free();
    return result;
  }
  void list(parameter_pointers& parameters) {
    parameters.push_back(&gain_);
    if (shift_) parameters.push_back(&*shift_);
  }

 private:
  [[nodiscard]] static std::string_view name(const step_plan& plan) noexcept {
    return plan.model.is_llama() ? "rms_norm" : "layer_norm";
  }

  step_parameter gain_;
  std::optional<step_parameter> shift_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
