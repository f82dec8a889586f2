#pragma once

#include <memprof/toolkit/estimate/step_attention.hpp>
#include <memprof/toolkit/estimate/step_layers.hpp>
#include <memprof/toolkit/estimate/step_mlp.hpp>
#include <memprof/toolkit/estimate/step_recorder.hpp>

#include <optional>

namespace memprof::inline MEMPROF_ABI::detail {

/// `y = x + attention(norm(x))`, then `y + mlp(norm(y))`.
class step_block {
 public:
  struct kept {
    step_tensor input;
    step_norm::kept attention_norm;
    step_attention::kept attention;
    step_tensor middle;
    step_norm::kept mlp_norm;
    step_mlp::kept mlp;
    step_experts::kept experts;
  };

  explicit step_block(const step_plan& plan);
  [[nodiscard]] step_tensor forward(const step_plan& plan, step_tensor input, kept& saved);
  [[nodiscard]] step_tensor backward(const step_plan& plan, step_tensor d_result, kept& saved);
  [[nodiscard]] parameter_pointers parameters();

 private:
  [[nodiscard]] step_tensor run(const step_plan& plan, kept& saved);
  /// Frees what is computed again before the backward pass, if anything is.
  void drop_recomputed(const step_plan& plan, kept& saved) const;
  [[nodiscard]] step_tensor feed_backward(const step_plan& plan, kept& saved);
  /// The sum of both, in the memory of the second if layers work in place.
  [[nodiscard]] static step_tensor add_residual(const step_plan& plan, const step_tensor& from, step_tensor to);

  step_norm attention_norm_;
  step_attention attention_;
  step_norm mlp_norm_;
  std::optional<step_mlp> mlp_;  ///< either this or `experts_`
  std::optional<step_experts> experts_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
