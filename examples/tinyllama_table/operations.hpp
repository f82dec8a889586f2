#pragma once

#include <tinyllama_table/tape.hpp>

#include <cstddef>
#include <tuple>

/// @file
/// The operations of tt-train's Llama, each with the tensors that it creates, keeps and releases. Without a tape (a null
/// pointer), nothing is kept for a backward pass.

namespace tinyllama_table {

/// The model of the published table, with a batch of one sequence.
struct dimensions {
  std::size_t sequence = 2048;
  std::size_t vocabulary = 96;
  std::size_t layers = 22;
  std::size_t width = 2048;
  std::size_t heads = 32;
  std::size_t groups = 4;  ///< the number of groups of heads that share a key and a value
  std::size_t mlp_width = 5632;

  [[nodiscard]] constexpr std::size_t head_width() const { return width / heads; }
};

class operations {
 public:
  operations(const dimensions& sizes, const device_memory& device, tape* nodes) : sizes_{sizes}, device_{&device}, tape_{nodes} {}

  /// The rows of the table selected by the tokens.
  [[nodiscard]] variable_ptr embedding(const tensor& tokens, const variable_ptr& table) const;
  /// x times a matrix with the given number of columns.
  [[nodiscard]] variable_ptr linear(const variable_ptr& x, const variable_ptr& weight, std::size_t columns) const;
  [[nodiscard]] variable_ptr rms_norm(const variable_ptr& x, const variable_ptr& scale) const;
  /// Queries, keys and values, each divided into its heads.
  [[nodiscard]] std::tuple<variable_ptr, variable_ptr, variable_ptr> split_heads(const variable_ptr& queries,
                                                                                 const variable_ptr& keys_and_values) const;
  [[nodiscard]] variable_ptr rotate(const variable_ptr& x) const;
  [[nodiscard]] variable_ptr attention(const variable_ptr& queries, const variable_ptr& keys, const variable_ptr& values) const;
  [[nodiscard]] variable_ptr merge_heads(const variable_ptr& x) const;
  [[nodiscard]] variable_ptr add(const variable_ptr& left, const variable_ptr& right) const;
  [[nodiscard]] variable_ptr silu(const variable_ptr& x) const;
  [[nodiscard]] variable_ptr multiply(const variable_ptr& left, const variable_ptr& right) const;
  [[nodiscard]] variable_ptr cross_entropy(const variable_ptr& logits, const tensor& targets) const;

 private:
  [[nodiscard]] tensor probabilities(const variable_ptr& queries) const;
  [[nodiscard]] tensor repeated_for_heads(memprof::category category) const;

  template <class Differentiate>
  void record(Differentiate differentiate) const {
    if (tape_ != nullptr) tape_->add(std::move(differentiate));
  }

  dimensions sizes_;
  const device_memory* device_;
  tape* tape_;
};

}  // namespace tinyllama_table
