#pragma once

#include <nano_gpt/attention.hpp>
#include <nano_gpt/layers.hpp>
#include <nano_gpt/model_config.hpp>
#include <nano_gpt/tensor.hpp>

#include <string>

namespace nano_gpt {

/// `y = x + attention(norm(x))`, then `y + mlp(norm(y))`.
template <class T>
class block {
 public:
  /// `rotary` as for `attention`.
  block(const std::string& name, const model_config& config, const rotary_tables<T>* rotary, const layer_source& source);

  [[nodiscard]] tensor<T> forward(tensor<T> x);
  [[nodiscard]] tensor<T> backward(tensor<T> d_out);
  void list_parameters(parameter_list<T>& list);

 private:
  /// The forward pass from `input_`.
  [[nodiscard]] tensor<T> run();
  /// Frees everything that `run` kept.
  void free_activations();

  bool memory_efficient_;
  norm<T> attention_norm_;
  attention<T> attention_;
  norm<T> mlp_norm_;
  mlp<T> mlp_;
  tensor<T> input_;
  tensor<T> middle_;
};

}  // namespace nano_gpt
