#pragma once

#include <memprof/toolkit/estimate/step_layers.hpp>
#include <memprof/toolkit/estimate/step_recorder.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

/// @file
/// What follows attention in a block: an MLP, or several from which a router chooses for each token.

namespace memprof::inline MEMPROF_ABI::detail {

/// Two linear layers with a GELU, or a SwiGLU, between them.
class step_mlp {
 public:
  struct kept {
    step_tensor input;
    step_product expanded;
    step_tensor activated;
    step_product result;  ///< if selective recomputation keeps it
  };

  explicit step_mlp(const step_plan& plan);

  /// Empty if the result is kept.
  [[nodiscard]] step_tensor forward(const step_plan& plan, step_tensor input, kept& saved, std::int64_t positions) const;
  [[nodiscard]] step_tensor backward(const step_plan& plan, kept& saved, std::int64_t positions);
  /// Frees what selective recomputation computes again.
  static void drop_recomputed(kept& saved);
  void list(parameter_pointers& parameters);

 private:
  [[nodiscard]] std::string_view name() const noexcept { return is_gated_ ? "swiglu" : "gelu"; }
  [[nodiscard]] step_tensor activate(const step_plan& plan, std::int64_t positions) const;
  [[nodiscard]] step_tensor activate_backward(const step_plan& plan, step_tensor d_activated, std::int64_t positions) const;

  bool is_gated_;
  std::int64_t channels_;
  step_linear expand_;
  step_linear contract_;
};

/// A router assigns each token to some experts, each of which is an MLP. All experts are assumed to get equally many tokens.
class step_experts {
 public:
  struct kept {
    step_tensor input;
    step_tensor router_input;
    step_tensor choices;  ///< the router's result
    step_tensor results;  ///< of the experts, before they are weighted
    std::vector<step_mlp::kept> experts;
  };

  explicit step_experts(const step_plan& plan);

  [[nodiscard]] step_tensor forward(const step_plan& plan, step_tensor input, kept& saved) const;
  [[nodiscard]] step_tensor backward(const step_plan& plan, kept& saved);
  void list(parameter_pointers& parameters);

 private:
  /// The number of tokens of a sequence that an expert gets.
  [[nodiscard]] static std::int64_t positions(const step_plan& plan) noexcept;
  [[nodiscard]] static step_tensor tokens_of_expert(const step_plan& plan);

  step_linear router_;
  std::vector<step_mlp> experts_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
