#include <nano_gpt/attention.hpp>

#include <memprof/memprof.hpp>

#include <cmath>
#include <utility>

namespace nano_gpt {

template <class T>
rotary_tables<T>::rotary_tables(const model_config& config, const tensor_memory& memory)
    : cosines{{config.seq_len, config.head_width() / 2}, memory}, sines{cosines.shape(), memory} {
  fill_rotary_tables(cosines.as_matrix(), sines.as_matrix());
}

template <class T>
attention<T>::attention(const std::string& name, const model_config& config, const rotary_tables<T>* rotary,
                        const layer_source& source)
    : memory_{source.memory},
      heads_{config.heads},
      kv_heads_{config.key_value_heads()},
      head_width_{config.head_width()},
      rotary_{rotary},
      to_qkv_{"qkv", name + ".qkv", config.d_model, qkv_channels(), initial_deviation(config.d_model), bias_of_blocks(config),
              source},
      projection_{"projection",   name + ".projection",         config.d_model,
                  config.d_model, projection_deviation(config), bias_of_blocks(config),
                  source} {}

template <class T>
tensor<T> attention<T>::forward(tensor<T> x) {
  const auto scope = memprof::track_operation<"attention">();
  qkv_ = to_qkv_.forward(std::move(x));
  rotate(qkv_, rotation::forward);
  probabilities_ = scores();
  softmax();
  return projection_.forward(context());
}

template <class T>
tensor<T> attention<T>::backward(const tensor<T>& d_out) {
  const auto scope = memprof::track_operation<"attention">();
  tensor<T> d_context = projection_.backward(d_out);
  tensor<T> d_scores = softmax_backward(d_context);
  tensor<T> d_qkv = qkv_backward(d_scores, d_context);
  rotate(d_qkv, rotation::backward);
  d_context.free();
  d_scores.free();
  probabilities_.free();
  qkv_.free();
  return to_qkv_.backward(d_qkv);
}

template <class T>
void attention<T>::free_activations() {
  to_qkv_.free_activations();
  projection_.free_activations();
  qkv_.free();
  probabilities_.free();
}

template <class T>
void attention<T>::rotate(tensor<T>& qkv, rotation direction) const {
  if (rotary_ == nullptr) return;
  const auto scope = memprof::track_operation<"rotate">();
  const std::size_t sequences = qkv.shape()[0];
  for (std::size_t sequence = 0; sequence < sequences; ++sequence) {
    // The keys follow the queries, so they are additional heads.
    for (std::size_t head = 0; head < heads_ + kv_heads_; ++head) {
      rotate_pairs(rotary_->cosines.as_matrix(), rotary_->sines.as_matrix(), direction,
                   head_of_qkv(qkv.data(), part::query, sequence, head));
    }
  }
}

template <class T>
tensor<T> attention<T>::scores() const {
  const auto scope = memprof::track_operation<"scores">();
  auto out = tensor<T>::zeros({batch_size(), heads_, time(), time()}, memory_);
  const tensor<T> keys = transposed_heads(part::key);
  for_each_head(heads_, [&](std::size_t sequence, std::size_t head) {
    add_product(head_of_qkv(qkv_.data(), part::query, sequence, head), transposed_head(keys, sequence, kv_head(head)),
                head_of_scores(out.data(), sequence, head));
  });
  return out;
}

template <class T>
void attention<T>::softmax() {
  const auto scope = memprof::track_operation<"softmax">();
  for_each_head(heads_, [&](std::size_t sequence, std::size_t head) {
    causal_softmax(head_of_scores(probabilities_.data(), sequence, head), scale());
  });
}

template <class T>
tensor<T> attention<T>::context() const {
  const auto scope = memprof::track_operation<"context">();
  auto out = tensor<T>::zeros({batch_size(), time(), channels()}, memory_);
  for_each_head(heads_, [&](std::size_t sequence, std::size_t head) {
    add_product(head_of_scores(probabilities_.data(), sequence, head),
                head_of_qkv(qkv_.data(), part::value, sequence, kv_head(head)), head_of_context(out.data(), sequence, head));
  });
  return out;
}

template <class T>
tensor<T> attention<T>::softmax_backward(const tensor<T>& d_context) const {
  const auto scope = memprof::track_operation<"softmax">();
  auto d_scores = tensor<T>::zeros(probabilities_.shape(), memory_);
  const tensor<T> values = transposed_heads(part::value);
  for_each_head(heads_, [&](std::size_t sequence, std::size_t head) {
    const matrix<T> d_head = head_of_scores(d_scores.data(), sequence, head);
    add_product(head_of_context(d_context.data(), sequence, head), transposed_head(values, sequence, kv_head(head)), d_head);
    causal_softmax_backward(head_of_scores(probabilities_.data(), sequence, head), scale(), d_head);
  });
  return d_scores;
}

template <class T>
tensor<T> attention<T>::qkv_backward(const tensor<T>& d_scores, const tensor<T>& d_context) const {
  const auto scope = memprof::track_operation<"scores">();
  auto d_qkv = tensor<T>::zeros(qkv_.shape(), memory_);
  for_each_head(heads_, [&](std::size_t sequence, std::size_t head) {
    const matrix<const T> d_head = head_of_scores(d_scores.data(), sequence, head);
    add_product(d_head, head_of_qkv(qkv_.data(), part::key, sequence, kv_head(head)),
                head_of_qkv(d_qkv.data(), part::query, sequence, head));
    add_product(d_head.transposed(), head_of_qkv(qkv_.data(), part::query, sequence, head),
                head_of_qkv(d_qkv.data(), part::key, sequence, kv_head(head)));
    add_product(head_of_scores(probabilities_.data(), sequence, head).transposed(),
                head_of_context(d_context.data(), sequence, head),
                head_of_qkv(d_qkv.data(), part::value, sequence, kv_head(head)));
  });
  return d_qkv;
}

template <class T>
void attention<T>::list_parameters(parameter_list<T>& list) {
  to_qkv_.list_parameters(list);
  projection_.list_parameters(list);
}

template <class T>
accumulator<T> attention<T>::scale() const {
  return accumulator<T>(1) / std::sqrt(static_cast<accumulator<T>>(head_width_));
}

template <class T>
template <class Function>
void attention<T>::for_each_head(std::size_t heads, Function function) const {
  for (std::size_t sequence = 0; sequence < batch_size(); ++sequence) {
    for (std::size_t head = 0; head < heads; ++head) function(sequence, head);
  }
}

template <class T>
template <class Element>
matrix<Element> attention<T>::head_of_qkv(Element* qkv, part which, std::size_t sequence, std::size_t head) const {
  const std::size_t row = qkv_channels();
  const std::size_t first_head = which == part::query ? 0 : which == part::key ? heads_ : heads_ + kv_heads_;
  return {qkv + sequence * time() * row + (first_head + head) * head_width_, time(), head_width_, row};
}

template <class T>
template <class Element>
matrix<Element> attention<T>::head_of_context(Element* context, std::size_t sequence, std::size_t head) const {
  return {context + sequence * time() * channels() + head * head_width_, time(), head_width_, channels()};
}

template <class T>
template <class Element>
matrix<Element> attention<T>::head_of_scores(Element* scores, std::size_t sequence, std::size_t head) const {
  return {scores + (sequence * heads_ + head) * time() * time(), time(), time(), time()};
}

template <class T>
tensor<T> attention<T>::transposed_heads(part which) const {
  const auto scope = memprof::track_operation<"transpose">(memprof::category::temporary);
  tensor<T> out{{batch_size(), kv_heads_, head_width_, time()}, memory_};
  for_each_head(kv_heads_, [&](std::size_t sequence, std::size_t head) {
    T* const data = out.data() + (sequence * kv_heads_ + head) * head_width_ * time();
    transpose(head_of_qkv(qkv_.data(), which, sequence, head), matrix<T>{data, head_width_, time(), time()});
  });
  return out;
}

template <class T>
matrix<const T> attention<T>::transposed_head(const tensor<T>& heads, std::size_t sequence, std::size_t head) const {
  return {heads.data() + (sequence * kv_heads_ + head) * head_width_ * time(), head_width_, time(), time()};
}

#define NANO_GPT_INSTANTIATE(T)     \
  template struct rotary_tables<T>; \
  template class attention<T>

NANO_GPT_INSTANTIATE(float);
NANO_GPT_INSTANTIATE(double);
NANO_GPT_INSTANTIATE(bf16);
NANO_GPT_INSTANTIATE(fp16);
#undef NANO_GPT_INSTANTIATE

}  // namespace nano_gpt
