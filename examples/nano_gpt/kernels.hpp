#pragma once

#include <nano_gpt/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

/// @file
/// The arithmetic, on memory that is already there: no function here allocates. All are instantiated for float, which trains,
/// and double, which checks gradients.

namespace nano_gpt {

/// What a kernel only reads. Not deduced, so that views of mutable elements convert.
template <class T>
using in_matrix = std::type_identity_t<matrix<const T>>;
template <class T>
using in_span = std::type_identity_t<std::span<const T>>;

/// `c += a * b`. The columns of `b` and `c` must be contiguous; `a` may be a transposed view.
template <class T>
void add_product(in_matrix<T> a, in_matrix<T> b, matrix<T> c);

/// `out = in^T`
template <class T>
void transpose(in_matrix<T> in, matrix<T> out);

/// `to[i] += from[i]`
template <class T>
void add(in_span<T> from, std::span<T> to);

/// Every row of `to` becomes `row`.
template <class T>
void copy_to_rows(in_span<T> row, matrix<T> to);

/// `sums[j] += from[i, j]` over all rows i
template <class T>
void add_rows(in_matrix<T> from, std::span<T> sums);

/// `out[i] = token_table[tokens[i]] + position_table[i mod positions]`
template <class T>
void embed(std::span<const std::int32_t> tokens, in_matrix<T> token_table, in_matrix<T> position_table, std::size_t positions,
           matrix<T> out);

/// Scatters the gradient of `embed`'s output to both tables' gradients.
template <class T>
void embed_backward(std::span<const std::int32_t> tokens, in_matrix<T> d_out, std::size_t positions, matrix<T> d_token_table,
                    matrix<T> d_position_table);

/// Normalises each row to mean 0 and variance 1, then scales and shifts it. `means` and `inverse_deviations` have one element
/// a row and are what the backward pass needs.
template <class T>
void layer_norm_forward(in_matrix<T> x, in_span<T> gain, in_span<T> shift, std::span<T> means, std::span<T> inverse_deviations,
                        matrix<T> out);

/// `d_x` is written; `d_gain` and `d_shift` are added to.
template <class T>
void layer_norm_backward(in_matrix<T> x, in_span<T> gain, in_span<T> means, in_span<T> inverse_deviations, in_matrix<T> d_out,
                         matrix<T> d_x, std::span<T> d_gain, std::span<T> d_shift);

/// In place: row t of a square matrix becomes `softmax(scale * row)` over its first t + 1 columns; the future gets 0.
template <class T>
void causal_softmax(matrix<T> scores, T scale);

/// In place: gradients of the probabilities become gradients of the unscaled scores.
template <class T>
void causal_softmax_backward(in_matrix<T> probabilities, T scale, matrix<T> d_scores);

/// The tanh approximation of Hendrycks and Gimpel, arXiv:1606.08415, as in GPT-2.
template <class T>
void gelu(in_span<T> x, std::span<T> out);

/// In place: gradients of the output become gradients of the input.
template <class T>
void gelu_backward(in_span<T> x, std::span<T> d_out);

/// Turns each row of logits into probabilities, in place, and returns the mean negative log-likelihood of the targets.
template <class T>
T cross_entropy(std::span<const std::int32_t> targets, matrix<T> logits);

/// In place: probabilities become gradients of the logits.
template <class T>
void cross_entropy_backward(std::span<const std::int32_t> targets, matrix<T> probabilities);

/// The scalars of one AdamW update of one tensor.
template <class T>
struct adamw_update {
  T learning_rate;
  T beta1;
  T beta2;
  T correction1;  ///< 1 - beta1^t
  T correction2;  ///< 1 - beta2^t
  T epsilon;
  T decay;  ///< already multiplied by the learning rate
};

/// Decoupled weight decay, algorithm 2 of Loshchilov and Hutter, arXiv:1711.05101.
template <class T>
void adamw_step(const adamw_update<T>& update, in_span<T> gradient, std::span<T> first_moment, std::span<T> second_moment,
                std::span<T> value);

}  // namespace nano_gpt
