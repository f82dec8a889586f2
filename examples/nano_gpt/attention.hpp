#pragma once

#include <nano_gpt/kernels.hpp>
#include <nano_gpt/layers.hpp>
#include <nano_gpt/model_config.hpp>
#include <nano_gpt/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace nano_gpt {

/// The cosine and the sine of each position's angles; both are [positions, head_width / 2].
template <class T>
struct rotary_tables {
  rotary_tables(const model_config& config, const tensor_memory& memory);

  tensor<T> cosines;
  tensor<T> sines;
};

/// Causal self-attention with several heads, some of which may share keys and values (grouped-query attention: Ainslie et al.,
/// arXiv:2305.13245).
template <class T>
class attention {
 public:
  /// `rotary` must outlive the layer; null: queries and keys have no positional encoding.
  attention(const std::string& name, const model_config& config, const rotary_tables<T>* rotary, const layer_source& source);

  [[nodiscard]] tensor<T> forward(tensor<T> x);
  [[nodiscard]] tensor<T> backward(const tensor<T>& d_out);
  void free_activations();
  void list_parameters(parameter_list<T>& list);

 private:
  enum class part : std::uint8_t { query, key, value };

  /// Rotates the queries and keys in `qkv`, activations or gradients, by their positions.
  void rotate(tensor<T>& qkv, rotation direction) const;
  [[nodiscard]] tensor<T> scores() const;
  void softmax();
  [[nodiscard]] tensor<T> context() const;
  [[nodiscard]] tensor<T> softmax_backward(const tensor<T>& d_context) const;
  [[nodiscard]] tensor<T> qkv_backward(const tensor<T>& d_scores, const tensor<T>& d_context) const;

  [[nodiscard]] std::size_t batch_size() const { return qkv_.shape()[0]; }
  [[nodiscard]] std::size_t time() const { return qkv_.shape()[1]; }
  [[nodiscard]] std::size_t channels() const { return heads_ * head_width_; }
  [[nodiscard]] std::size_t qkv_channels() const { return (heads_ + 2 * kv_heads_) * head_width_; }
  [[nodiscard]] accumulator<T> scale() const;
  /// The head whose keys and values a query uses.
  [[nodiscard]] std::size_t kv_head(std::size_t head) const { return head / (heads_ / kv_heads_); }
  /// Calls `function(sequence, head)` for each head, up to the given number, of each sequence in the batch.
  template <class Function>
  void for_each_head(std::size_t heads, Function function) const;
  template <class Element>
  [[nodiscard]] matrix<Element> head_of_qkv(Element* qkv, part which, std::size_t sequence, std::size_t head) const;
  template <class Element>
  [[nodiscard]] matrix<Element> head_of_context(Element* context, std::size_t sequence, std::size_t head) const;
  template <class Element>
  [[nodiscard]] matrix<Element> head_of_scores(Element* scores, std::size_t sequence, std::size_t head) const;
  /// Keys or values of all heads as [sequence, head, head_width, time]: the right-hand side of a product along head_width.
  [[nodiscard]] tensor<T> transposed_heads(part which) const;
  [[nodiscard]] matrix<const T> transposed_head(const tensor<T>& heads, std::size_t sequence, std::size_t head) const;

  tensor_memory memory_;
  std::size_t heads_;
  std::size_t kv_heads_;
  std::size_t head_width_;
  const rotary_tables<T>* rotary_;
  linear<T> to_qkv_;
  linear<T> projection_;
  tensor<T> qkv_;
  tensor<T> probabilities_;
};

}  // namespace nano_gpt
