#pragma once

#include <memprof/toolkit/estimate/step_block.hpp>
#include <memprof/toolkit/estimate/step_layers.hpp>
#include <memprof/toolkit/estimate/step_recorder.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

/// @file
/// A stage of a decoder (all of it unless a pipeline divides it), and its optimizer.

namespace memprof::inline MEMPROF_ABI::detail {

/// Token embeddings, and position embeddings unless positions are rotary.
class step_embedding {
 public:
  explicit step_embedding(const step_plan& plan);

  [[nodiscard]] step_tensor forward(const step_plan& plan);
  void backward(const step_plan& plan);
  [[nodiscard]] step_parameter& token_table() noexcept { return tokens_; }
  [[nodiscard]] parameter_pointers parameters();

  [[nodiscard]] static std::int64_t positions_of(const step_plan& plan) noexcept;

 private:
  step_parameter tokens_;
  std::optional<step_parameter> positions_;
};

/// The last normalisation, a logit for each token of the vocabulary, and the loss.
class step_head {
 public:
  struct kept {
    step_tensor input;
    step_norm::kept norm;
    step_tensor normalised;
    step_tensor probabilities;
  };

  /// `token_table` is the embedding's if the two are tied; null: the head has its own matrix.
  step_head(const step_plan& plan, step_parameter* token_table);
  step_head(const step_head&) = delete;  // points into itself
  step_head& operator=(const step_head&) = delete;

  void forward(const step_plan& plan, step_tensor input, kept& saved);

  [[nodiscard]] step_tensor backward(const step_plan& plan, kept& saved);

  /// The parameters that are not the embedding's.
  [[nodiscard]] parameter_pointers parameters();

 private:
  [[nodiscard]] step_tensor logits_of(const step_plan& plan, step_tensor normalised, kept& saved) const;
  [[nodiscard]] static bool copies_logits(const step_plan& plan) noexcept;
  /// A number for each token of the vocabulary, in the type that the loss is computed in.
  [[nodiscard]] step_tensor loss_tensor(const step_plan& plan) const;
  [[nodiscard]] step_tensor loss_backward(const step_plan& plan, kept& saved) const;
  [[nodiscard]] step_tensor logits_backward(const step_plan& plan, step_tensor d_logits, kept& saved);

  std::int64_t vocabulary_;  ///< on this device
  step_norm norm_;
  std::optional<step_parameter> own_;
  step_parameter* table_;
};

/// The blocks of one stage, with the embedding before the first and the head after the last, if it has them.
class step_stage {
 public:
  /// What one micro-batch keeps on the stage between its two passes.
  struct kept {
    step_tensor tokens;
    step_tensor targets;
    std::vector<step_block::kept> blocks;
    step_head::kept head;
  };

  step_stage(const step_plan& plan, std::int64_t stage);

  void make_optimizer(const step_plan& plan);

  /// Allocates tokens and targets of a micro-batch; the previous ones stay until these exist.
  void make_batch(const step_plan& plan, kept& saved) const;

  void forward(const step_plan& plan, kept& saved);

  void backward(const step_plan& plan, kept& saved);

  void step(const step_plan& plan);

 private:
  /// Updates one parameter after the other.
  void update(const step_plan& plan) const;
  /// The stream, or its gradient, from a neighbouring stage.
  [[nodiscard]] static step_tensor received(const step_plan& plan);
  void make_rotary_tables(const step_plan& plan);
  void make_list();

  bool is_first_;
  bool is_last_;
  std::optional<step_embedding> embedding_;
  std::array<step_tensor, 2> rotary_tables_;
  std::vector<step_block> blocks_;
  std::optional<step_head> head_;
  parameter_pointers parameters_;
  std::vector<step_tensor> states_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
