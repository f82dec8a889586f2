#pragma once

#include <nano_gpt/random_stream.hpp>
#include <nano_gpt/tensor.hpp>

#include <memprof/memprof.hpp>

#include <string>
#include <utility>
#include <vector>

namespace nano_gpt {

/// A trainable tensor. Its gradient exists from the first `accumulated_gradient` of a backward pass until the trainer frees it.
template <class T>
class parameter {
 public:
  parameter(std::string name, const extents& shape, const tensor_memory& memory)
      : name_{std::move(name)}, memory_{memory}, value_{shape, memory} {
    memprof::annotate(value_.data(), {.name = name_,
                                      .shape = shape.to_string(),
                                      .dtype = memory_.template dtype<T>(),
                                      .category = memprof::category::parameter});
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] tensor<T>& value() { return value_; }
  [[nodiscard]] const tensor<T>& value() const { return value_; }

  /// Starts as zeros; the contributions of several uses of the parameter are summed.
  [[nodiscard]] tensor<T>& accumulated_gradient() {
    if (gradient_.empty()) {
      const auto scope = memprof::track_operation<"parameter_gradient">(memprof::category::gradient);
      gradient_ = tensor<T>::zeros(value_.shape(), memory_);
    }
    return gradient_;
  }
  void free_gradient() { gradient_ = {}; }  // always: the next step begins with zeros

  void fill(T constant) { value_.fill(constant); }
  void fill_normal(random_stream& random, double deviation) {
    if (!memprof::dispatching()) return;
    for (T& element : value_.elements()) element = T(static_cast<accumulator<T>>(deviation * random.normal()));
  }

 private:
  std::string name_;
  tensor_memory memory_;
  tensor<T> value_;
  tensor<T> gradient_;
};

template <class T>
using parameter_list = std::vector<parameter<T>*>;

}  // namespace nano_gpt
