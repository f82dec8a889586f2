#pragma once

#include <nano_gpt/element.hpp>
#include <nano_gpt/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

/// @file
/// The arithmetic, on existing memory: no function here allocates, and none does anything while `memprof::dispatching()` is
/// false. All are instantiated for float, bf16 and fp16, which are used for training, and double, which is used to check
/// gradients.

namespace nano_gpt {

/// A view that a kernel only reads. Not deduced, so that views of mutable elements convert.
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

/// `out[i] = table[tokens[i]]`
template <class T>
void embed(std::span<const std::int32_t> tokens, in_matrix<T> table, matrix<T> out);

/// Adds the gradient of `embed`'s output to that of the table's rows.
template <class T>
void embed_backward(std::span<const std::int32_t> tokens, in_matrix<T> d_out, matrix<T> d_table);

/// `out[i] += table[i mod positions]`
template <class T>
void add_positions(in_matrix<T> table, std::size_t positions, matrix<T> out);

/// Adds the gradient of `add_positions`'s output to that of the table's rows.
template <class T>
void add_positions_backward(in_matrix<T> d_out, std::size_t positions, matrix<T> d_table);

/// The angles of rotary position embeddings (RoPE: Su et al., arXiv:2104.09864): row t, column p has the cosine and the sine of
/// t / 10000^(p / columns).
template <class T>
void fill_rotary_tables(matrix<T> cosines, matrix<T> sines);

/// The reverse rotation is the transpose, which the gradient needs.
enum class rotation : bool { forward, backward };

/// In place: rotates each pair of adjacent elements of row t by the angle in the tables at row t and the pair's column.
template <class T>
void rotate_pairs(in_matrix<T> cosines, in_matrix<T> sines, rotation direction, matrix<T> rows);

/// Normalises each row to mean 0 and variance 1, then scales and shifts it. `means` and `inverse_deviations` have one element per
/// row, for the backward pass.
template <class T>
void layer_norm_forward(in_matrix<T> x, in_span<T> gain, in_span<T> shift, std::span<T> means, std::span<T> inverse_deviations,
                        matrix<T> out);

/// `d_x` is written; `d_gain` and `d_shift` are added to.
template <class T>
void layer_norm_backward(in_matrix<T> x, in_span<T> gain, in_span<T> means, in_span<T> inverse_deviations, in_matrix<T> d_out,
                         matrix<T> d_x, std::span<T> d_gain, std::span<T> d_shift);

/// Divides each row by the root of its mean square, then scales it (RMSNorm: Zhang and Sennrich, arXiv:1910.07467).
template <class T>
void rms_norm_forward(in_matrix<T> x, in_span<T> gain, std::span<T> inverse_roots, matrix<T> out);

/// `d_x` is written; `d_gain` is added to.
template <class T>
void rms_norm_backward(in_matrix<T> x, in_span<T> gain, in_span<T> inverse_roots, in_matrix<T> d_out, matrix<T> d_x,
                       std::span<T> d_gain);

/// In place: row t of a square matrix becomes `softmax(scale * row)` over its first t + 1 columns; the future gets 0.
template <class T>
void causal_softmax(matrix<T> scores, accumulator<T> scale);

/// In place: gradients of the probabilities become gradients of the unscaled scores.
template <class T>
void causal_softmax_backward(in_matrix<T> probabilities, accumulator<T> scale, matrix<T> d_scores);

/// The tanh approximation of Hendrycks and Gimpel, arXiv:1606.08415, as in GPT-2.
template <class T>
void gelu(in_span<T> x, std::span<T> out);

/// In place: gradients of the output become gradients of the input.
template <class T>
void gelu_backward(in_span<T> x, std::span<T> d_out);

/// The left half of each row of `x` is a gate: `out = silu(left) * right` (SwiGLU: Shazeer, arXiv:2002.05202).
template <class T>
void swiglu(in_matrix<T> x, matrix<T> out);

/// `d_x` is written.
template <class T>
void swiglu_backward(in_matrix<T> x, in_matrix<T> d_out, matrix<T> d_x);

/// Turns each row of logits into probabilities, in place, and returns the mean negative log-likelihood of the targets;
/// 0 if nothing is dispatched.
template <class T>
accumulator<T> cross_entropy(std::span<const std::int32_t> targets, matrix<T> logits);

/// In place: probabilities become gradients of `scale` times the mean loss in the logits.
template <class T>
void cross_entropy_backward(std::span<const std::int32_t> targets, accumulator<T> scale, matrix<T> probabilities);

/// The scalars of one AdamW update of one tensor.
template <class T>
struct adamw_update {
  accumulator<T> learning_rate;
  accumulator<T> beta1;
  accumulator<T> beta2;
  accumulator<T> correction1;  ///< 1 - beta1^t
  accumulator<T> correction2;  ///< 1 - beta2^t
  accumulator<T> epsilon;
  accumulator<T> decay;  ///< already multiplied by the learning rate
};

/// Decoupled weight decay, algorithm 2 of Loshchilov and Hutter, arXiv:1711.05101.
template <class T>
void adamw_step(const adamw_update<T>& update, in_span<T> gradient, std::span<T> first_moment, std::span<T> second_moment,
                std::span<T> value);

}  // namespace nano_gpt
