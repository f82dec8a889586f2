#include <nano_gpt/block.hpp>

#include <nano_gpt/kernels.hpp>

#include <memprof/memprof.hpp>

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
block<T>::block(const std::string& name, const model_config& config, const rotary_tables<T>* rotary, const layer_source& source)
    : memory_efficient_{config.memory_efficient},
      attention_norm_{name + ".attention_norm", config, source},
      attention_{name + ".attention", config, rotary, source},
      mlp_norm_{name + ".mlp_norm", config, source},
      mlp_{name + ".mlp", config, source} {}

template <class T>
tensor<T> block<T>::forward(tensor<T> x) {
  const auto scope = memprof::track_operation<"block">();
  input_ = std::move(x);
  tensor<T> out = run();
  if (memory_efficient_) free_activations();
  return out;
}

template <class T>
tensor<T> block<T>::run() {
  middle_ = attention_.forward(attention_norm_.forward(input_));
  add_residual(input_, middle_);
  tensor<T> out = mlp_.forward(mlp_norm_.forward(middle_));
  add_residual(middle_, out);
  return out;
}

template <class T>
tensor<T> block<T>::backward(tensor<T> d_out) {
  const auto scope = memprof::track_operation<"block">();
  if (memory_efficient_) {
    const auto recomputation = memprof::track_operation<"recomputation">(memprof::category::activation);
    (void)run();
  }
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
void block<T>::free_activations() {
  attention_norm_.free_activations();
  attention_.free_activations();
  mlp_norm_.free_activations();
  mlp_.free_activations();
  middle_.free();
}

template <class T>
void block<T>::list_parameters(parameter_list<T>& list) {
  attention_norm_.list_parameters(list);
  attention_.list_parameters(list);
  mlp_norm_.list_parameters(list);
  mlp_.list_parameters(list);
}

template class block<float>;
template class block<double>;
template class block<bf16>;
template class block<fp16>;

}  // namespace nano_gpt
