#include <nano_gpt/layers.hpp>

#include <nano_gpt/kernels.hpp>

#include <memprof/memprof.hpp>

#include <cmath>
#include <utility>

namespace nano_gpt {
namespace {

template <class T>
void add_residual(const tensor<T>& from, tensor<T>& to) {
  const auto scope = memprof::track_operation<"residual">();
  add<T>(from.elements(), to.elements());
}

}  // namespace

template <class T>
linear<T>::linear(std::string operation, const std::string& name, std::size_t inputs, std::size_t outputs, double deviation,
                  linear_bias bias, layer_source source)
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
    std::ranges::fill(out.elements(), T(0));
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
layer_norm<T>::layer_norm(const std::string& name, std::size_t channels, layer_source source)
    : memory_{source.memory},
      gain_{name + ".gain", {channels}, source.memory},
      shift_{name + ".shift", {channels}, source.memory} {
  gain_.fill(T(1));
  shift_.fill(T(0));
}

template <class T>
tensor<T> layer_norm<T>::forward(const tensor<T>& x) {
  const auto scope = memprof::track_operation<"layer_norm">();
  const extents rows{x.size() / x.shape().last()};
  means_ = tensor<T>{rows, memory_};
  inverse_deviations_ = tensor<T>{rows, memory_};
  tensor<T> out{x.shape(), memory_};
  layer_norm_forward(x.as_matrix(), gain_.value().elements(), shift_.value().elements(), means_.elements(),
                     inverse_deviations_.elements(), out.as_matrix());
  return out;
}

template <class T>
tensor<T> layer_norm<T>::backward(const tensor<T>& x, const tensor<T>& d_out) {
  const auto scope = memprof::track_operation<"layer_norm">();
  tensor<T> d_x{x.shape(), memory_};
  layer_norm_backward(x.as_matrix(), gain_.value().elements(), means_.elements(), inverse_deviations_.elements(),
                      d_out.as_matrix(), d_x.as_matrix(), gain_.accumulated_gradient().elements(),
                      shift_.accumulated_gradient().elements());
  means_.free();
  inverse_deviations_.free();
  return d_x;
}

template <class T>
void layer_norm<T>::list_parameters(parameter_list<T>& list) {
  list.push_back(&gain_);
  list.push_back(&shift_);
}

template <class T>
mlp<T>::mlp(const std::string& name, std::size_t channels, double projection_deviation, layer_source source)
    : memory_{source.memory},
      expand_{"expand", name + ".expand", channels, 4 * channels, initial_deviation(channels), linear_bias::with, source},
      contract_{"contract", name + ".contract", 4 * channels, channels, projection_deviation, linear_bias::with, source} {}

template <class T>
tensor<T> mlp<T>::forward(tensor<T> x) {
  const auto scope = memprof::track_operation<"mlp">();
  expanded_ = expand_.forward(std::move(x));
  return contract_.forward(activate());
}

template <class T>
tensor<T> mlp<T>::activate() const {
  const auto scope = memprof::track_operation<"gelu">();
  tensor<T> out{expanded_.shape(), memory_};
  gelu(expanded_.elements(), out.elements());
  return out;
}

template <class T>
tensor<T> mlp<T>::backward(const tensor<T>& d_out) {
  const auto scope = memprof::track_operation<"mlp">();
  tensor<T> d_expanded = contract_.backward(d_out);
  activate_backward(d_expanded);
  return expand_.backward(d_expanded);
}

template <class T>
void mlp<T>::activate_backward(tensor<T>& d_activated) {
  const auto scope = memprof::track_operation<"gelu">();
  gelu_backward(expanded_.elements(), d_activated.elements());
  expanded_.free();
}

template <class T>
void mlp<T>::list_parameters(parameter_list<T>& list) {
  expand_.list_parameters(list);
  contract_.list_parameters(list);
}

template <class T>
block<T>::block(const std::string& name, std::size_t channels, std::size_t heads, double projection_deviation,
                layer_source source)
    : attention_norm_{name + ".attention_norm", channels, source},
      attention_{name + ".attention", channels, heads, projection_deviation, source},
      mlp_norm_{name + ".mlp_norm", channels, source},
      mlp_{name + ".mlp", channels, projection_deviation, source} {}

template <class T>
tensor<T> block<T>::forward(tensor<T> x) {
  const auto scope = memprof::track_operation<"block">();
  input_ = std::move(x);
  middle_ = attention_.forward(attention_norm_.forward(input_));
  add_residual(input_, middle_);
  tensor<T> out = mlp_.forward(mlp_norm_.forward(middle_));
  add_residual(middle_, out);
  return out;
}

template <class T>
tensor<T> block<T>::backward(tensor<T> d_out) {
  const auto scope = memprof::track_operation<"block">();
  tensor<T> d_middle = mlp_norm_.backward(middle_, mlp_.backward(d_out));
  add_residual(d_out, d_middle);
  d_out.free();
  middle_.free();
  tensor<T> d_input = attention_norm_.backward(input_, attention_.backward(d_middle));
  add_residual(d_middle, d_input);
  input_.free();
  return d_input;
}

template <class T>
void block<T>::list_parameters(parameter_list<T>& list) {
  attention_norm_.list_parameters(list);
  attention_.list_parameters(list);
  mlp_norm_.list_parameters(list);
  mlp_.list_parameters(list);
}

template <class T>
embedding<T>::embedding(std::size_t vocabulary_size, std::size_t positions, std::size_t channels, layer_source source)
    : memory_{source.memory},
      token_table_{"embedding.token", {vocabulary_size, channels}, source.memory},
      position_table_{"embedding.position", {positions, channels}, source.memory} {
  token_table_.fill_normal(*source.random, initial_deviation(channels));
  position_table_.fill_normal(*source.random, initial_deviation(channels));
}

template <class T>
tensor<T> embedding<T>::forward(const tensor<std::int32_t>& tokens) {
  const auto scope = memprof::track_operation<"embedding">();
  tokens_ = &tokens;
  tensor<T> out{{tokens.shape()[0], tokens.shape()[1], token_table_.value().shape().last()}, memory_};
  embed(tokens.elements(), token_table_.value().as_matrix(), position_table_.value().as_matrix(), tokens.shape()[1],
        out.as_matrix());
  return out;
}

template <class T>
void embedding<T>::backward(const tensor<T>& d_out) {
  const auto scope = memprof::track_operation<"embedding">();
  embed_backward(tokens_->elements(), d_out.as_matrix(), tokens_->shape()[1], token_table_.accumulated_gradient().as_matrix(),
                 position_table_.accumulated_gradient().as_matrix());
}

template <class T>
void embedding<T>::list_parameters(parameter_list<T>& list) {
  list.push_back(&token_table_);
  list.push_back(&position_table_);
}

template class linear<float>;
template class linear<double>;
template class layer_norm<float>;
template class layer_norm<double>;
template class mlp<float>;
template class mlp<double>;
template class block<float>;
template class block<double>;
template class embedding<float>;
template class embedding<double>;

}  // namespace nano_gpt
