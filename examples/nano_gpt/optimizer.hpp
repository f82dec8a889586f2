#pragma once

#include <nano_gpt/parameter.hpp>
#include <nano_gpt/tensor.hpp>

#include <cstddef>
#include <vector>

namespace nano_gpt {

struct adamw_settings {
  double learning_rate = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  ///< for matrices; biases and normalisations do not decay
};

/// AdamW, with two moments the size of the parameters.
template <class T>
class adamw {
 public:
  /// `parameters` and the resource of `memory` must outlive the optimizer.
  adamw(parameter_list<T> parameters, const tensor_memory& memory, const adamw_settings& settings = {});

  /// Updates every parameter from its gradient, which is `loss_scale` times that of the loss.
  void step();
  void free_gradients();

 private:
  struct moments {
    tensor<T> first;
    tensor<T> second;
  };

  parameter_list<T> parameters_;
  adamw_settings settings_;
  std::vector<moments> moments_;
  std::size_t steps_ = 0;
};

}  // namespace nano_gpt
