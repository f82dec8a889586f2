#include <nano_gpt/model.hpp>

#include <nano_gpt/kernels.hpp>

#include <memprof/memprof.hpp>

#include <string>
#include <utility>

namespace nano_gpt {
namespace {

template <class T>
std::optional<rotary_tables<T>> make_rotary_tables(const model_config& config, const tensor_memory& memory) {
  if (!config.is_llama()) return {};
  const auto scope = memprof::track_operation<"rotary_tables">();
  return std::optional<rotary_tables<T>>{std::in_place, config, memory};
}

template <class T>
std::vector<block<T>> make_blocks(const model_config& config, const rotary_tables<T>* rotary, const layer_source& source) {
  std::vector<block<T>> blocks;
  blocks.reserve(config.layers);
  for (std::size_t index = 0; index < config.layers; ++index) {
    blocks.emplace_back("blocks." + std::to_string(index), config, rotary, source);
  }
  return blocks;
}

}  // namespace

template <class T>
gpt<T>::gpt(const model_config& config, random_stream& random, const tensor_memory& memory)
    : embedding_{config, {&random, memory}},
      rotary_{make_rotary_tables<T>(config, memory)},
      blocks_{make_blocks<T>(config, rotary_ ? &*rotary_ : nullptr, {&random, memory})},
      final_norm_{"final_norm", config, {&random, memory}},
      lm_head_{config, embedding_.token_table(), {&random, memory}} {}

template <class T>
accumulator<T> gpt<T>::forward(const batch& batch) {
  const auto scope = memprof::track_operation<"forward">(memprof::category::activation);
  batch_ = &batch;
  tensor<T> x = embedding_.forward(batch.tokens);
  for (block<T>& block : blocks_) x = block.forward(std::move(x));
  final_ = std::move(x);
  return loss(lm_head_.forward(final_norm_.forward(final_)));
}

template <class T>
accumulator<T> gpt<T>::loss(tensor<T> logits) {
  const auto scope = memprof::track_operation<"cross_entropy">();
  probabilities_ = std::move(logits);
  return cross_entropy(batch_->targets.elements(), probabilities_.as_matrix());
}

template <class T>
void gpt<T>::backward(double share) {
  const auto scope = memprof::track_operation<"backward">(memprof::category::temporary);
  tensor<T> d_x =
      lm_head_.backward(loss_backward(share));  // a separate statement, so that the logits' gradient is freed at its end
  d_x = final_norm_.backward(final_, d_x);
  final_.free();
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) d_x = block->backward(std::move(d_x));
  embedding_.backward(d_x);
}

template <class T>
tensor<T> gpt<T>::loss_backward(double share) {
  const auto scope = memprof::track_operation<"cross_entropy">();
  cross_entropy_backward(batch_->targets.elements(), loss_scale<T> * static_cast<accumulator<T>>(share),
                         probabilities_.as_matrix());
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
template class gpt<bf16>;
template class gpt<fp16>;

}  // namespace nano_gpt
