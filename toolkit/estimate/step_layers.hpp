#pragma once

#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/step_recorder.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/dtype.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

/// @file
/// The allocations and frees of a decoder's layers, in the order of examples/nano_gpt, for one of the devices that share the
/// training. Operations have that program's names too, so that the two can be compared line by line.

namespace memprof::inline MEMPROF_ABI::detail {

/// What all layers need to know. One object per step.
struct step_plan {
  step_plan(const decoder_model& of, const training_setup& with, step_recorder& to);

  const decoder_model& model;
  training_setup setup;        ///< its sequence is this device's part
  std::int64_t whole_seq_len;  ///< of all parts
  step_recorder& recorder;
  device_description device;

  [[nodiscard]] std::int64_t bytes(std::initializer_list<std::int64_t> shape, dtype type) const;
  [[nodiscard]] step_tensor tensor(std::initializer_list<std::int64_t> shape, optional_category kind = {}) const;
  [[nodiscard]] step_tensor tensor_of(dtype type, std::initializer_list<std::int64_t> shape, optional_category kind = {}) const;
  /// [batch, time, channels]
  [[nodiscard]] step_tensor activation(std::int64_t channels) const;
  /// One number for each position of each sequence.
  [[nodiscard]] step_tensor statistic() const { return tensor({setup.batch_size * setup.seq_len}); }
  [[nodiscard]] step_operation operation(std::string_view name, optional_category kind = {}) const;

  [[nodiscard]] std::int64_t per_tensor_rank(std::int64_t whole) const noexcept;
  /// The share of one replica in a tensor that is divided among all replicas, or among the parts of their sequences.
  [[nodiscard]] std::int64_t per_replica(std::int64_t bytes_of_whole) const noexcept;
  [[nodiscard]] bool divides(int from_stage) const noexcept;
  /// The devices that have the same parameters.
  [[nodiscard]] std::int64_t replicas() const noexcept { return setup.parallel.data * setup.parallel.context; }
  [[nodiscard]] bool keeps_products() const noexcept { return setup.recompute == recomputation_kind::selective; }
  [[nodiscard]] bool divides_states() const noexcept { return divides(1); }
  [[nodiscard]] bool divides_gradients() const noexcept { return divides(2); }
  [[nodiscard]] bool divides_parameters() const noexcept { return divides(3); }
};

/// A trainable tensor: a matrix, or a vector with one row.
class step_parameter {
 public:
  step_parameter(const step_plan& plan, std::int64_t rows, std::int64_t columns);

  /// The bytes in a type; if it matters for the layout, a vector counts as a vector and not as a matrix with one row.
  [[nodiscard]] std::int64_t bytes(const step_plan& plan, dtype type) const;
  [[nodiscard]] bool is_matrix() const noexcept { return rows_ != 0; }
  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t columns() const noexcept { return columns_; }
  [[nodiscard]] std::int64_t count() const noexcept { return is_matrix() ? rows_ * columns_ : columns_; }

  /// Adds to the gradient in a backward pass, which allocates it on first use.
  void add_gradient(const step_plan& plan);
  /// Divides the gradient after the replicas have summed theirs: each keeps its part.
  void divide_gradient(const step_plan& plan);
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
[[nodiscard]] step_tensor gathered(const step_plan& plan, const parameter_pointers& parameters);

void divide_gradients(const step_plan& plan, const parameter_pointers& parameters);

/// The result of a matrix product: columns that selective recomputation keeps, and those that it computes again.
struct step_product {
  step_tensor kept;
  step_tensor rest;

  void free() {
    kept.free();
    rest.free();
  }
};

/// `y = x * weight + bias`. The caller holds what a forward pass keeps, since several may be in flight.
class step_linear {
 public:
  step_linear(const step_plan& plan, std::string_view name, std::int64_t inputs, std::int64_t outputs, bool has_bias);

  /// `positions` are those of a sequence unless a router chose others.
  [[nodiscard]] step_tensor forward(const step_plan& plan, step_tensor input, step_tensor& kept_input,
                                    std::int64_t positions) const;
  /// The same into `result`, some of whose columns are kept: these are not computed again if they are there.
  void forward(const step_plan& plan, step_tensor input, step_tensor& kept_input, std::int64_t positions,
               std::int64_t kept_columns, step_product& result) const;
  [[nodiscard]] step_tensor backward(const step_plan& plan, step_tensor& kept_input, std::int64_t positions);
  void list(parameter_pointers& parameters);

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

  explicit step_norm(const step_plan& plan);

  [[nodiscard]] step_tensor forward(const step_plan& plan, kept& statistics) const;
  /// Frees the gradient of its result.
  [[nodiscard]] step_tensor backward(const step_plan& plan, kept& statistics, step_tensor d_result);
  void list(parameter_pointers& parameters);

 private:
  [[nodiscard]] static std::string_view name(const step_plan& plan) noexcept;

  step_parameter gain_;
  std::optional<step_parameter> shift_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
