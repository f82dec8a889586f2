#include <nano_gpt/model.hpp>

#include <nano_gpt/kernels.hpp>

#include <memprof/memprof.hpp>

#include <cmath>
#include <string>
#include <utility>

namespace nano_gpt {
namespace {

/// 2 * layers sums go into the residual stream; this keeps its variance independent of the depth (GPT-2, section 2.3).
double projection_deviation(const model_config& config) {
  return initial_deviation(config.d_model) / std::sqrt(2.0 * static_cast<double>(config.layers));
}

template <class T>
std::vector<block<T>> make_blocks(const model_config& config, layer_source source) {
  std::vector<block<T>> blocks;
  blocks.reserve(config.layers);
  for (std::size_t index = 0; index < config.layers; ++index) {
    blocks.emplace_back("blocks." + std::to_string(index), config.d_model, config.heads, projection_deviation(config), source);
  }
  return blocks;
}

}  // namespace

template <class T>
gpt<T>::gpt(const model_config& config, random_stream& random, std::pmr::memory_resource* memory)
    : embedding_{config.vocabulary_size, config.seq_len, config.d_model, {&random, memory}},
      blocks_{make_blocks<T>(config, {&random, memory})},
      final_norm_{"final_norm", config.d_model, {&random, memory}},
      lm_head_{"lm_head",
               "lm_head",
               config.d_model,
               config.vocabulary_size,
               initial_deviation(config.d_model),
               linear_bias::without,
               {&random, memory}} {}

template <class T>
T gpt<T>::forward(const batch& batch) {
  const auto scope = memprof::track_operation<"forward">(memprof::category::activation);
  batch_ = &batch;
  tensor<T> x = embedding_.forward(batch.tokens);
  for (block<T>& block : blocks_) x = block.forward(std::move(x));
  final_ = std::move(x);
  return loss(lm_head_.forward(final_norm_.forward(final_)));
}

template <class T>
T gpt<T>::loss(tensor<T> logits) {
  const auto scope = memprof::track_operation<"cross_entropy">();
  probabilities_ = std::move(logits);
  return cross_entropy(batch_->targets.elements(), probabilities_.as_matrix());
}

template <class T>
void gpt<T>::backward() {
  const auto scope = memprof::track_operation<"backward">(memprof::category::temporary);
  tensor<T> d_x = lm_head_.backward(loss_backward());  // a statement of its own: the logits' gradient is freed at its end
  d_x = final_norm_.backward(final_, d_x);
  final_.free();
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) d_x = block->backward(std::move(d_x));
  embedding_.backward(d_x);
}

template <class T>
tensor<T> gpt<T>::loss_backward() {
  const auto scope = memprof::track_operation<"cross_entropy">();
  cross_entropy_backward(batch_->targets.elements(), probabilities_.as_matrix());
  return std::move(probabilities_);
}

template <class T>
parameter_list<T> gpt<T>::parameters() {
  parameter_list<T> list;
  embedding_.list_parameters(list);
  for (block<T>& block : blocks_) block.list_parameters(list);
  final_norm_.list_parameters(list);
  lm_head_.list_parameters(list);
  return list;
}

template <class T>
std::size_t gpt<T>::parameter_count() {
  std::size_t count = 0;
  for (const parameter<T>* parameter : parameters()) count += parameter->value().size();
  return count;
}

template class gpt<float>;
template class gpt<double>;

}  // namespace nano_gpt
