#pragma once

#include <nano_gpt/corpus.hpp>
#include <nano_gpt/layers.hpp>
#include <nano_gpt/random_stream.hpp>

#include <cstddef>
#include <memory_resource>
#include <vector>

namespace nano_gpt {

struct model_config {
  std::size_t vocabulary_size = 0;
  std::size_t seq_len = 64;  ///< longest sequence; one position vector each
  std::size_t layers = 3;
  std::size_t heads = 4;  ///< divides d_model
  std::size_t d_model = 64;
};

/// A decoder-only transformer in the manner of GPT-2, with pre-normalisation and an untied output layer.
template <class T>
class gpt {
 public:
  /// Every tensor the model ever allocates comes from `memory`, which must outlive it.
  gpt(const model_config& config, random_stream& random, std::pmr::memory_resource* memory);
  gpt(const gpt&) = delete;  // `parameters` hands out addresses
  gpt& operator=(const gpt&) = delete;

  /// The mean cross-entropy of the targets, in nats. `batch` must live until `backward` has returned.
  [[nodiscard]] T forward(const batch& batch);
  /// Adds the gradients of the last `forward`'s loss to the parameters' and frees what that call had kept.
  void backward();

  [[nodiscard]] parameter_list<T> parameters();
  [[nodiscard]] std::size_t parameter_count();

 private:
  [[nodiscard]] T loss(tensor<T> logits);
  [[nodiscard]] tensor<T> loss_backward();

  embedding<T> embedding_;
  std::vector<block<T>> blocks_;
  layer_norm<T> final_norm_;
  linear<T> lm_head_;
  const batch* batch_ = nullptr;
  tensor<T> final_;
  tensor<T> probabilities_;
};

}  // namespace nano_gpt
