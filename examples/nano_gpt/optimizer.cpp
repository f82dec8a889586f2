#include <nano_gpt/optimizer.hpp>

#include <nano_gpt/kernels.hpp>

#include <memprof/memprof.hpp>

#include <cmath>
#include <utility>

namespace nano_gpt {

template <class T>
adamw<T>::adamw(parameter_list<T> parameters, const tensor_memory& memory, const adamw_settings& settings)
    : parameters_{std::move(parameters)}, settings_{settings} {
  const auto scope = memprof::track_operation<"adamw">(memprof::category::optimizer_state);
  for (const parameter<T>* parameter : parameters_) {
    const extents& shape = parameter->value().shape();
    moments_.push_back({tensor<T>::zeros(shape, memory), tensor<T>::zeros(shape, memory)});
  }
}

template <class T>
void adamw<T>::step() {
  const auto scope = memprof::track_operation<"adamw">();
  ++steps_;
  const auto power = static_cast<double>(steps_);
  using number = accumulator<T>;
  adamw_update<T> update{.learning_rate = static_cast<number>(settings_.learning_rate),
                         .beta1 = static_cast<number>(settings_.beta1),
                         .beta2 = static_cast<number>(settings_.beta2),
                         .correction1 = static_cast<number>(1.0 - std::pow(settings_.beta1, power)),
                         .correction2 = static_cast<number>(1.0 - std::pow(settings_.beta2, power)),
                         .epsilon = static_cast<number>(settings_.epsilon) * loss_scale<T>,
                         .decay = 0};
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    parameter<T>& parameter = *parameters_[index];
    const bool decays = parameter.value().shape().rank() > 1;
    update.decay = decays ? static_cast<number>(settings_.learning_rate * settings_.weight_decay) : number(0);
    adamw_step<T>(update, parameter.accumulated_gradient().elements(), moments_[index].first.elements(),
                  moments_[index].second.elements(), parameter.value().elements());
  }
}

template <class T>
void adamw<T>::free_gradients() {
  const auto scope = memprof::track_operation<"free_gradients">();
  for (parameter<T>* parameter : parameters_) parameter->free_gradient();
}

template class adamw<float>;
template class adamw<double>;
template class adamw<bf16>;
template class adamw<fp16>;

}  // namespace nano_gpt
