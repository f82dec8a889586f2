#pragma once

#include <nano_gpt/attention.hpp>
#include <nano_gpt/block.hpp>
#include <nano_gpt/corpus.hpp>
#include <nano_gpt/layers.hpp>
#include <nano_gpt/model_config.hpp>
#include <nano_gpt/random_stream.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace nano_gpt {

/// A decoder-only transformer in the manner of GPT-2 or Llama, with pre-normalisation.
template <class T>
class gpt {
 public:
  /// Every tensor the model ever allocates comes from `memory`, whose resource must outlive it.
  gpt(const model_config& config, random_stream& random, const tensor_memory& memory);
  gpt(const gpt&) = delete;  // `parameters` hands out addresses
  gpt& operator=(const gpt&) = delete;

  /// The mean cross-entropy of the targets, in nats. `batch` must live until `backward` has returned.
  [[nodiscard]] accumulator<T> forward(const batch& batch);
  /// Adds the gradients of `share` times the last `forward`'s loss, times `loss_scale`, to the parameters' and frees what that
  /// call had kept.
  void backward(double share = 1);

  [[nodiscard]] parameter_list<T> parameters();
  [[nodiscard]] std::size_t parameter_count();

 private:
  [[nodiscard]] accumulator<T> loss(tensor<T> logits);
  [[nodiscard]] tensor<T> loss_backward(double share);

  embedding<T> embedding_;
  std::optional<rotary_tables<T>> rotary_;  ///< the blocks point to it
  std::vector<block<T>> blocks_;
  norm<T> final_norm_;
  lm_head<T> lm_head_;
  const batch* batch_ = nullptr;
  tensor<T> final_;
  tensor<T> probabilities_;
};

}  // namespace nano_gpt
