#pragma once

#include <nano_gpt/model_config.hpp>
#include <nano_gpt/parameter.hpp>
#include <nano_gpt/random_stream.hpp>
#include <nano_gpt/tensor.hpp>

#include <memprof/memprof.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// @file
/// The layers of a transformer. Activations are [batch, time, channels]. A forward pass keeps what the backward pass needs; the
/// backward pass frees it along the way and turns the gradient of the output into the gradient of the input.

namespace nano_gpt {

/// The initial deviation of all weights except those that write to the residual stream. At GPT-2's width of 768 it is GPT-2's
/// 0.02 (rounded); narrower models need larger weights for the same activations.
inline double initial_deviation(std::size_t channels) { return 0.5 / std::sqrt(static_cast<double>(channels)); }

/// The residual stream is a sum of 2 * layers terms; this keeps its variance independent of the depth (GPT-2, section 2.3).
inline double projection_deviation(const model_config& config) {
  return initial_deviation(config.d_model) / std::sqrt(2.0 * static_cast<double>(config.layers));
}

/// What every layer needs for its construction.
struct layer_source {
  random_stream* random;
  tensor_memory memory;
};

enum class linear_bias : bool { without, with };
inline linear_bias bias_of_blocks(const model_config& config) {
  return config.is_llama() ? linear_bias::without : linear_bias::with;
}

/// `y = x * weight + bias`; weight is [inputs, outputs].
template <class T>
class linear {
 public:
  /// `operation` is the name of the layer's work in the profile, `name` that of its parameters.
  linear(std::string operation, const std::string& name, std::size_t inputs, std::size_t outputs, double deviation,
         linear_bias bias, const layer_source& source);

  [[nodiscard]] tensor<T> forward(tensor<T> x);
  [[nodiscard]] tensor<T> backward(const tensor<T>& d_out);
  void free_activations() { input_.free(); }
  void list_parameters(parameter_list<T>& list);

 private:
  std::string operation_;
  tensor_memory memory_;
  parameter<T> weight_;
  std::optional<parameter<T>> bias_;
  tensor<T> input_;
};

/// Normalises every position, by mean and deviation or, in a Llama, by the root mean square only. Does not keep its input, which
/// the residual connection keeps anyway.
template <class T>
class norm {
 public:
  norm(const std::string& name, const model_config& config, const layer_source& source);

  [[nodiscard]] tensor<T> forward(const tensor<T>& x);
  [[nodiscard]] tensor<T> backward(const tensor<T>& x, const tensor<T>& d_out);
  void free_activations();
  void list_parameters(parameter_list<T>& list);

 private:
  [[nodiscard]] memprof::operation_scope track() const;

  tensor_memory memory_;
  parameter<T> gain_;
  std::optional<parameter<T>> shift_;  ///< only with a mean
  tensor<T> means_;
  tensor<T> inverse_deviations_;  ///< or the inverse roots of the mean squares
};

/// Two linear layers with a GELU or, in a Llama, a SwiGLU between them; the gate's weights are then stored beside those it gates.
template <class T>
class mlp {
 public:
  mlp(const std::string& name, const model_config& config, const layer_source& source);

  [[nodiscard]] tensor<T> forward(tensor<T> x);
  [[nodiscard]] tensor<T> backward(const tensor<T>& d_out);
  void free_activations();
  void list_parameters(parameter_list<T>& list);

 private:
  [[nodiscard]] tensor<T> activate() const;
  [[nodiscard]] tensor<T> activate_backward(tensor<T> d_activated) const;

  tensor_memory memory_;
  linear<T> expand_;
  linear<T> contract_;
  bool is_gated_;
  tensor<T> expanded_;
};

/// A token's vector, plus a position's unless the positions are rotary.
template <class T>
class embedding {
 public:
  embedding(const model_config& config, const layer_source& source);

  /// `tokens` is [batch, time] and must live until the backward pass.
  [[nodiscard]] tensor<T> forward(const tensor<std::int32_t>& tokens);
  void backward(const tensor<T>& d_out);
  void list_parameters(parameter_list<T>& list);
  [[nodiscard]] parameter<T>& token_table() { return token_table_; }

 private:
  tensor_memory memory_;
  parameter<T> token_table_;
  std::optional<parameter<T>> position_table_;
  const tensor<std::int32_t>* tokens_ = nullptr;
};

/// Maps the last activations to one logit for each token of the vocabulary.
template <class T>
class lm_head {
 public:
  /// `token_table` is the weight if `config.tied_output`, and must outlive the layer then.
  lm_head(const model_config& config, parameter<T>& token_table, const layer_source& source);

  [[nodiscard]] tensor<T> forward(tensor<T> x);
  [[nodiscard]] tensor<T> backward(const tensor<T>& d_out);
  void list_parameters(parameter_list<T>& list);

 private:
  [[nodiscard]] tensor<T> tied_forward(tensor<T> x);
  [[nodiscard]] tensor<T> tied_backward(const tensor<T>& d_out);

  tensor_memory memory_;
  std::optional<linear<T>> own_;
  parameter<T>* token_table_;
  tensor<T> input_;  ///< of the tied layer
};

}  // namespace nano_gpt
