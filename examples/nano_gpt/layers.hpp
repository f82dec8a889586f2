#pragma once

#include <nano_gpt/parameter.hpp>
#include <nano_gpt/random_stream.hpp>
#include <nano_gpt/tensor.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>

/// @file
/// The layers of a transformer. Activations are [batch, time, channels]. A forward pass keeps what the backward pass will need;
/// the backward pass frees it as it goes and turns the gradient of the output into the gradient of the input.

namespace nano_gpt {

/// Of every weight but those that write to the residual stream. At GPT-2's width of 768 it is GPT-2's 0.02 (rounded); narrower
/// models need larger weights for the same activations.
inline double initial_deviation(std::size_t channels) { return 0.5 / std::sqrt(static_cast<double>(channels)); }

/// What every layer is built from.
struct layer_source {
  random_stream* random;
  std::pmr::memory_resource* memory;
};

enum class linear_bias : bool { without, with };

/// `y = x * weight + bias`; weight is [inputs, outputs].
template <class T>
class linear {
 public:
  /// `operation` is what its work is called in the profile, `name` what its parameters are called.
  linear(std::string operation, const std::string& name, std::size_t inputs, std::size_t outputs, double deviation,
         linear_bias bias, layer_source source);

  [[nodiscard]] tensor<T> forward(tensor<T> x);
  [[nodiscard]] tensor<T> backward(const tensor<T>& d_out);
  void list_parameters(parameter_list<T>& list);

 private:
  std::string operation_;
  std::pmr::memory_resource* memory_;
  parameter<T> weight_;
  std::optional<parameter<T>> bias_;
  tensor<T> input_;
};

/// Normalises every position. It does not keep its input, which the residual connection keeps anyway.
template <class T>
class layer_norm {
 public:
  layer_norm(const std::string& name, std::size_t channels, layer_source source);

  [[nodiscard]] tensor<T> forward(const tensor<T>& x);
  [[nodiscard]] tensor<T> backward(const tensor<T>& x, const tensor<T>& d_out);
  void list_parameters(parameter_list<T>& list);

 private:
  std::pmr::memory_resource* memory_;
  parameter<T> gain_;
  parameter<T> shift_;
  tensor<T> means_;
  tensor<T> inverse_deviations_;
};

/// Causal self-attention with several heads.
template <class T>
class attention {
 public:
  attention(const std::string& name, std::size_t channels, std::size_t heads, double projection_deviation, layer_source source);

  [[nodiscard]] tensor<T> forward(tensor<T> x);
  [[nodiscard]] tensor<T> backward(const tensor<T>& d_out);
  void list_parameters(parameter_list<T>& list);

 private:
  enum part : std::size_t { query, key, value };

  [[nodiscard]] tensor<T> scores() const;
  void softmax();
  [[nodiscard]] tensor<T> context() const;
  [[nodiscard]] tensor<T> softmax_backward(const tensor<T>& d_context) const;
  [[nodiscard]] tensor<T> qkv_backward(const tensor<T>& d_scores, const tensor<T>& d_context) const;

  [[nodiscard]] std::size_t batch_size() const { return qkv_.shape()[0]; }
  [[nodiscard]] std::size_t time() const { return qkv_.shape()[1]; }
  [[nodiscard]] std::size_t head_width() const { return channels_ / heads_; }
  [[nodiscard]] T scale() const;
  /// Calls `function(sequence, head)` for each head of each sequence of the batch.
  template <class Function>
  void for_each_head(Function function) const;
  template <class Element>
  [[nodiscard]] matrix<Element> head_of_qkv(Element* qkv, part which, std::size_t sequence, std::size_t head) const;
  template <class Element>
  [[nodiscard]] matrix<Element> head_of_context(Element* context, std::size_t sequence, std::size_t head) const;
  template <class Element>
  [[nodiscard]] matrix<Element> head_of_scores(Element* scores, std::size_t sequence, std::size_t head) const;
  /// One part of all heads as [sequence, head, head_width, time]: the right-hand side of a product along head_width.
  [[nodiscard]] tensor<T> transposed_heads(part which) const;
  [[nodiscard]] matrix<const T> transposed_head(const tensor<T>& heads, std::size_t sequence, std::size_t head) const;

  std::pmr::memory_resource* memory_;
  std::size_t channels_;
  std::size_t heads_;
  linear<T> to_qkv_;
  linear<T> projection_;
  tensor<T> qkv_;
  tensor<T> probabilities_;
};

/// Two linear layers with a GELU between them.
template <class T>
class mlp {
 public:
  mlp(const std::string& name, std::size_t channels, double projection_deviation, layer_source source);

  [[nodiscard]] tensor<T> forward(tensor<T> x);
  [[nodiscard]] tensor<T> backward(const tensor<T>& d_out);
  void list_parameters(parameter_list<T>& list);

 private:
  [[nodiscard]] tensor<T> activate() const;
  void activate_backward(tensor<T>& d_activated);

  std::pmr::memory_resource* memory_;
  linear<T> expand_;
  linear<T> contract_;
  tensor<T> expanded_;
};

/// `y = x + attention(layer_norm(x))`, then `y + mlp(layer_norm(y))`.
template <class T>
class block {
 public:
  block(const std::string& name, std::size_t channels, std::size_t heads, double projection_deviation, layer_source source);

  [[nodiscard]] tensor<T> forward(tensor<T> x);
  [[nodiscard]] tensor<T> backward(tensor<T> d_out);
  void list_parameters(parameter_list<T>& list);

 private:
  layer_norm<T> attention_norm_;
  attention<T> attention_;
  layer_norm<T> mlp_norm_;
  mlp<T> mlp_;
  tensor<T> input_;
  tensor<T> middle_;
};

/// The sum of a token's and a position's vector.
template <class T>
class embedding {
 public:
  embedding(std::size_t vocabulary_size, std::size_t positions, std::size_t channels, layer_source source);

  /// `tokens` is [batch, time] and must live until the backward pass.
  [[nodiscard]] tensor<T> forward(const tensor<std::int32_t>& tokens);
  void backward(const tensor<T>& d_out);
  void list_parameters(parameter_list<T>& list);

 private:
  std::pmr::memory_resource* memory_;
  parameter<T> token_table_;
  parameter<T> position_table_;
  const tensor<std::int32_t>* tokens_ = nullptr;
};

}  // namespace nano_gpt
