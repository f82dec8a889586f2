#include <nano_gpt/kernels.hpp>
#include <nano_gpt/layers.hpp>

#include <memprof/memprof.hpp>

#include <cmath>
#include <utility>

namespace nano_gpt {

template <class T>
attention<T>::attention(const std::string& name, std::size_t channels, std::size_t heads, double projection_deviation,
                        layer_source source)
    : memory_{source.memory},
      channels_{channels},
      heads_{heads},
      to_qkv_{"qkv", name + ".qkv", channels, 3 * channels, initial_deviation(channels), linear_bias::with, source},
      projection_{"projection", name + ".projection", channels, channels, projection_deviation, linear_bias::with, source} {}

template <class T>
tensor<T> attention<T>::forward(tensor<T> x) {
  const auto scope = memprof::track_operation<"attention">();
  qkv_ = to_qkv_.forward(std::move(x));
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
  d_context.free();
  d_scores.free();
  probabilities_.free();
  qkv_.free();
  return to_qkv_.backward(d_qkv);
}

template <class T>
tensor<T> attention<T>::scores() const {
  const auto scope = memprof::track_operation<"scores">();
  auto out = tensor<T>::zeros({batch_size(), heads_, time(), time()}, memory_);
  const tensor<T> keys = transposed_heads(key);
  for_each_head([&](std::size_t sequence, std::size_t head) {
    add_product(head_of_qkv(qkv_.data(), query, sequence, head), transposed_head(keys, sequence, head),
                head_of_scores(out.data(), sequence, head));
  });
  return out;
}

template <class T>
void attention<T>::softmax() {
  const auto scope = memprof::track_operation<"softmax">();
  for_each_head([&](std::size_t sequence, std::size_t head) {
    causal_softmax(head_of_scores(probabilities_.data(), sequence, head), scale());
  });
}

template <class T>
tensor<T> attention<T>::context() const {
  const auto scope = memprof::track_operation<"context">();
  auto out = tensor<T>::zeros({batch_size(), time(), channels_}, memory_);
  for_each_head([&](std::size_t sequence, std::size_t head) {
    add_product(head_of_scores(probabilities_.data(), sequence, head), head_of_qkv(qkv_.data(), value, sequence, head),
                head_of_context(out.data(), sequence, head));
  });
  return out;
}

template <class T>
tensor<T> attention<T>::softmax_backward(const tensor<T>& d_context) const {
  const auto scope = memprof::track_operation<"softmax">();
  auto d_scores = tensor<T>::zeros(probabilities_.shape(), memory_);
  const tensor<T> values = transposed_heads(value);
  for_each_head([&](std::size_t sequence, std::size_t head) {
    const matrix<T> d_head = head_of_scores(d_scores.data(), sequence, head);
    add_product(head_of_context(d_context.data(), sequence, head), transposed_head(values, sequence, head), d_head);
    causal_softmax_backward(head_of_scores(probabilities_.data(), sequence, head), scale(), d_head);
  });
  return d_scores;
}

template <class T>
tensor<T> attention<T>::qkv_backward(const tensor<T>& d_scores, const tensor<T>& d_context) const {
  const auto scope = memprof::track_operation<"scores">();
  auto d_qkv = tensor<T>::zeros(qkv_.shape(), memory_);
  for_each_head([&](std::size_t sequence, std::size_t head) {
    const matrix<const T> d_head = head_of_scores(d_scores.data(), sequence, head);
    add_product(d_head, head_of_qkv(qkv_.data(), key, sequence, head), head_of_qkv(d_qkv.data(), query, sequence, head));
    add_product(d_head.transposed(), head_of_qkv(qkv_.data(), query, sequence, head),
                head_of_qkv(d_qkv.data(), key, sequence, head));
    add_product(head_of_scores(probabilities_.data(), sequence, head).transposed(),
                head_of_context(d_context.data(), sequence, head), head_of_qkv(d_qkv.data(), value, sequence, head));
  });
  return d_qkv;
}

template <class T>
void attention<T>::list_parameters(parameter_list<T>& list) {
  to_qkv_.list_parameters(list);
  projection_.list_parameters(list);
}

template <class T>
T attention<T>::scale() const {
  return T(1) / std::sqrt(static_cast<T>(head_width()));
}

template <class T>
template <class Function>
void attention<T>::for_each_head(Function function) const {
  for (std::size_t sequence = 0; sequence < batch_size(); ++sequence) {
    for (std::size_t head = 0; head < heads_; ++head) function(sequence, head);
  }
}

template <class T>
template <class Element>
matrix<Element> attention<T>::head_of_qkv(Element* qkv, part which, std::size_t sequence, std::size_t head) const {
  const std::size_t row = 3 * channels_;
  return {qkv + sequence * time() * row + which * channels_ + head * head_width(), time(), head_width(), row};
}

template <class T>
template <class Element>
matrix<Element> attention<T>::head_of_context(Element* context, std::size_t sequence, std::size_t head) const {
  return {context + sequence * time() * channels_ + head * head_width(), time(), head_width(), channels_};
}

template <class T>
template <class Element>
matrix<Element> attention<T>::head_of_scores(Element* scores, std::size_t sequence, std::size_t head) const {
  return {scores + (sequence * heads_ + head) * time() * time(), time(), time(), time()};
}

template <class T>
tensor<T> attention<T>::transposed_heads(part which) const {
  const auto scope = memprof::track_operation<"transpose">(memprof::category::temporary);
  tensor<T> out{{batch_size(), heads_, head_width(), time()}, memory_};
  for_each_head([&](std::size_t sequence, std::size_t head) {
    T* const data = out.data() + (sequence * heads_ + head) * head_width() * time();
    transpose(head_of_qkv(qkv_.data(), which, sequence, head), matrix<T>{data, head_width(), time(), time()});
  });
  return out;
}

template <class T>
matrix<const T> attention<T>::transposed_head(const tensor<T>& heads, std::size_t sequence, std::size_t head) const {
  return {heads.data() + (sequence * heads_ + head) * head_width() * time(), head_width(), time(), time()};
}

template class attention<float>;
template class attention<double>;

}  // namespace nano_gpt
