#include <nano_gpt/layers.hpp>

#include <nano_gpt/kernels.hpp>

#include <memprof/memprof.hpp>

#include <utility>

namespace nano_gpt {
template <class T>
linear<T>::linear(std::string operation, const std::string& name, std::size_t inputs, std::size_t outputs, double deviation,
                  linear_bias bias, const layer_source& source)
    : operation_{std::move(operation)}, memory_{source.memory}, weight_{name + ".weight", {inputs, outputs}, source.memory} {
  weight_.fill_normal(*source.random, deviation);
  if (bias == linear_bias::with) bias_.emplace(name + ".bias", extents{outputs}, memory_).fill(T(0));
}

template <class T>
tensor<T> linear<T>::forward(tensor<T> x) {
  const auto scope = memprof::track_operation(operation_);
  tensor<T> out{x.shape().with_last(weight_.value().shape().last()), memory_};
  if (bias_) {
    copy_to_rows<T>(bias_->value().elements(), out.as_matrix());
  } else {
    out.fill(T(0));
  }
  add_product(x.as_matrix(), weight_.value().as_matrix(), out.as_matrix());
  input_ = std::move(x);
  return out;
}

template <class T>
tensor<T> linear<T>::backward(const tensor<T>& d_out) {
  const auto scope = memprof::track_operation(operation_);
  add_product(std::as_const(input_).as_matrix().transposed(), d_out.as_matrix(), weight_.accumulated_gradient().as_matrix());
  if (bias_) add_rows(d_out.as_matrix(), bias_->accumulated_gradient().elements());

  const extents input_shape = input_.shape();
  input_.free();
  const matrix<T> weight = weight_.value().as_matrix();
  tensor<T> transposed_weight{{weight.columns, weight.rows}, memory_};
  transpose(weight, transposed_weight.as_matrix());
  auto d_x = tensor<T>::zeros(input_shape, memory_);
  add_product(d_out.as_matrix(), transposed_weight.as_matrix(), d_x.as_matrix());
  return d_x;
}

template <class T>
void linear<T>::list_parameters(parameter_list<T>& list) {
  list.push_back(&weight_);
  if (bias_) list.push_back(&*bias_);
}

template <class T>
norm<T>::norm(const std::string& name, const model_config& config, const layer_source& source)
    : memory_{source.memory}, gain_{name + ".gain", {config.d_model}, source.memory} {
  gain_.fill(T(1));
  if (!config.is_llama()) shift_.emplace(name + ".shift", extents{config.d_model}, memory_).fill(T(0));
}

template <class T>
memprof::operation_scope norm<T>::track() const {
  return shift_ ? memprof::track_operation<"layer_norm">() : memprof::track_operation<"rms_norm">();
}

template <class T>
tensor<T> norm<T>::forward(const tensor<T>& x) {
  const auto scope = track();
  const extents rows{x.size() / x.shape().last()};
  if (shift_) means_ = tensor<T>{rows, memory_};
  inverse_deviations_ = tensor<T>{rows, memory_};
  tensor<T> out{x.shape(), memory_};
  if (shift_) {
    layer_norm_forward(x.as_matrix(), gain_.value().elements(), shift_->value().elements(), means_.elements(),
                       inverse_deviations_.elements(), out.as_matrix());
  } else {
    rms_norm_forward(x.as_matrix(), gain_.value().elements(), inverse_deviations_.elements(), out.as_matrix());
  }
  return out;
}

template <class T>
tensor<T> norm<T>::backward(const tensor<T>& x, const tensor<T>& d_out) {
  const auto scope = track();
  tensor<T> d_x{x.shape(), memory_};
  tensor<T>& d_gain = gain_.accumulated_gradient();
  if (shift_) {
    layer_norm_backward(x.as_matrix(), gain_.value().elements(), means_.elements(), inverse_deviations_.elements(),
                        d_out.as_matrix(), d_x.as_matrix(), d_gain.elements(), shift_->accumulated_gradient().elements());
  } else {
    rms_norm_backward(x.as_matrix(), gain_.value().elements(), inverse_deviations_.elements(), d_out.as_matrix(), d_x.as_matrix(),
                      d_gain.elements());
  }
  free_activations();
  return d_x;
}

template <class T>
void norm<T>::free_activations() {
  means_.free();
  inverse_deviations_.free();
}

template <class T>
void norm<T>::list_parameters(parameter_list<T>& list) {
  list.push_back(&gain_);
  if (shift_) list.push_back(&*shift_);
}

template <class T>
mlp<T>::mlp(const std::string& name, const model_config& config, const layer_source& source)
    : memory_{source.memory},
      expand_{"expand",
              name + ".expand",
              config.d_model,
              config.is_llama() ? 2 * config.mlp_channels() : config.mlp_channels(),
              initial_deviation(config.d_model),
              bias_of_blocks(config),
              source},
      contract_{"contract",     name + ".contract",           config.mlp_channels(),
                config.d_model, projection_deviation(config), bias_of_blocks(config),
                source},
      is_gated_{config.is_llama()} {}

template <class T>
tensor<T> mlp<T>::forward(tensor<T> x) {
  const auto scope = memprof::track_operation<"mlp">();
  expanded_ = expand_.forward(std::move(x));
  return contract_.forward(activate());
}

template <class T>
tensor<T> mlp<T>::activate() const {
  if (is_gated_) {
    const auto scope = memprof::track_operation<"swiglu">();
    tensor<T> out{expanded_.shape().with_last(expanded_.shape().last() / 2), memory_};
    swiglu(expanded_.as_matrix(), out.as_matrix());
    return out;
  }
  const auto scope = memprof::track_operation<"gelu">();
  tensor<T> out{expanded_.shape(), memory_};
  gelu(expanded_.elements(), out.elements());
  return out;
}

template <class T>
tensor<T> mlp<T>::backward(const tensor<T>& d_out) {
  const auto scope = memprof::track_operation<"mlp">();
  const tensor<T> d_expanded = activate_backward(contract_.backward(d_out));
  expanded_.free();
  return expand_.backward(d_expanded);
}

template <class T>
tensor<T> mlp<T>::activate_backward(tensor<T> d_activated) const {
  if (is_gated_) {
    const auto scope = memprof::track_operation<"swiglu">();
    tensor<T> d_expanded{expanded_.shape(), memory_};
    swiglu_backward(expanded_.as_matrix(), d_activated.as_matrix(), d_expanded.as_matrix());
    return d_expanded;
  }
  const auto scope = memprof::track_operation<"gelu">();
  gelu_backward(expanded_.elements(), d_activated.elements());
  return d_activated;
}

template <class T>
void mlp<T>::free_activations() {
  expand_.free_activations();
  contract_.free_activations();
  expanded_.free();
}

template <class T>
void mlp<T>::list_parameters(parameter_list<T>& list) {
  expand_.list_parameters(list);
  contract_.list_parameters(list);
}

template <class T>
embedding<T>::embedding(const model_config& config, const layer_source& source)
    : memory_{source.memory}, token_table_{"embedding.token", {config.vocabulary_size, config.d_model}, source.memory} {
  const double deviation = initial_deviation(config.d_model);
  token_table_.fill_normal(*source.random, deviation);
  if (config.is_llama()) return;
  position_table_.emplace("embedding.position", extents{config.seq_len, config.d_model}, memory_)
      .fill_normal(*source.random, deviation);
}

template <class T>
tensor<T> embedding<T>::forward(const tensor<std::int32_t>& tokens) {
  const auto scope = memprof::track_operation<"embedding">();
  tokens_ = &tokens;
  tensor<T> out{{tokens.shape()[0], tokens.shape()[1], token_table_.value().shape().last()}, memory_};
  embed(tokens.elements(), token_table_.value().as_matrix(), out.as_matrix());
  if (position_table_) add_positions(position_table_->value().as_matrix(), tokens.shape()[1], out.as_matrix());
  return out;
}

template <class T>
void embedding<T>::backward(const tensor<T>& d_out) {
  const auto scope = memprof::track_operation<"embedding">();
  embed_backward(tokens_->elements(), d_out.as_matrix(), token_table_.accumulated_gradient().as_matrix());
  if (!position_table_) return;
  add_positions_backward(d_out.as_matrix(), tokens_->shape()[1], position_table_->accumulated_gradient().as_matrix());
}

template <class T>
void embedding<T>::list_parameters(parameter_list<T>& list) {
  list.push_back(&token_table_);
  if (position_table_) list.push_back(&*position_table_);
}

template <class T>
lm_head<T>::lm_head(const model_config& config, parameter<T>& token_table, const layer_source& source)
    : memory_{source.memory}, token_table_{&token_table} {
  if (config.tied_output) return;
  own_.emplace("lm_head", "lm_head", config.d_model, config.vocabulary_size, initial_deviation(config.d_model),
               linear_bias::without, source);
}

template <class T>
tensor<T> lm_head<T>::forward(tensor<T> x) {
  return own_ ? own_->forward(std::move(x)) : tied_forward(std::move(x));
}

template <class T>
tensor<T> lm_head<T>::backward(const tensor<T>& d_out) {
  return own_ ? own_->backward(d_out) : tied_backward(d_out);
}

template <class T>
tensor<T> lm_head<T>::tied_forward(tensor<T> x) {
  const auto scope = memprof::track_operation<"lm_head">();
  const matrix<T> table = token_table_->value().as_matrix();
  auto out = tensor<T>::zeros(x.shape().with_last(table.rows), memory_);
  tensor<T> transposed_table{{table.columns, table.rows}, memory_};
  transpose(table, transposed_table.as_matrix());
  add_product(x.as_matrix(), transposed_table.as_matrix(), out.as_matrix());
  input_ = std::move(x);
  return out;
}

template <class T>
tensor<T> lm_head<T>::tied_backward(const tensor<T>& d_out) {
  const auto scope = memprof::track_operation<"lm_head">();
  tensor<T>& d_table = token_table_->accumulated_gradient();
  add_product(d_out.as_matrix().transposed(), std::as_const(input_).as_matrix(), d_table.as_matrix());
  const extents input_shape = input_.shape();
  input_.free();
  auto d_x = tensor<T>::zeros(input_shape, memory_);
  add_product(d_out.as_matrix(), token_table_->value().as_matrix(), d_x.as_matrix());
  return d_x;
}

template <class T>
void lm_head<T>::list_parameters(parameter_list<T>& list) {
  if (own_) own_->list_parameters(list);
}

#define NANO_GPT_INSTANTIATE(T) \
  template class linear<T>;     \
  template class norm<T>;       \
  template class mlp<T>;        \
  template class embedding<T>;  \
  template class lm_head<T>

NANO_GPT_INSTANTIATE(float);
NANO_GPT_INSTANTIATE(double);
NANO_GPT_INSTANTIATE(bf16);
NANO_GPT_INSTANTIATE(fp16);
#undef NANO_GPT_INSTANTIATE

}  // namespace nano_gpt
