#pragma once

#include <memprof/toolkit/estimate/step_layers.hpp>
#include <memprof/toolkit/estimate/step_recorder.hpp>
#include <memprof/trace/category.hpp>

#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// Causal self-attention of the heads on one device, of any `attention_kind`.
class step_attention {
 public:
  struct kept {
    step_tensor input;
    step_product qkv;
    step_tensor probabilities;  ///< or, in fused attention, a number for each of their rows
    step_tensor context;
  };

  explicit step_attention(const step_plan& plan);
  [[nodiscard]] step_tensor forward(const step_plan& plan, step_tensor input, kept& saved) const;
  [[nodiscard]] step_tensor backward(const step_plan& plan, kept& saved);
  /// Frees what selective recomputation computes again.
  void drop_recomputed(const step_plan& plan, kept& saved) const;
  void list(parameter_pointers& parameters);

 private:
  /// Makes what the projection reads, and what the backward pass needs for it.
  void attend(const step_plan& plan, kept& saved) const;
  [[nodiscard]] step_tensor scores(const step_plan& plan) const;
  /// Transposed keys or values, for a product that reads them the other way.
  [[nodiscard]] step_tensor transposed_heads(const step_plan& plan) const;
  [[nodiscard]] step_tensor probabilities(const step_plan& plan) const;
  /// A float32 for each row of the scores: the logarithm of its sum, or the term that reduces its gradient.
  [[nodiscard]] step_tensor row_numbers(const step_plan& plan, std::string_view name, optional_category kind = {}) const;
  [[nodiscard]] step_tensor context_of(const step_plan& plan) const;
  /// Of the whole sequence, while it is divided.
  [[nodiscard]] step_tensor gathered_keys_and_values(const step_plan& plan, std::string_view name) const;
  [[nodiscard]] std::int64_t kept_columns(const step_plan& plan) const noexcept;
  [[nodiscard]] step_tensor qkv_gradient(const step_plan& plan) const;
  [[nodiscard]] step_tensor plain_backward(const step_plan& plan, kept& saved) const;
  [[nodiscard]] step_tensor fused_backward(const step_plan& plan) const;

  std::int64_t heads_;  ///< on this device
  std::int64_t kv_heads_;
  std::int64_t head_width_;
  step_linear to_qkv_;
  step_linear projection_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
