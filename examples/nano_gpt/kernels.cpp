#include <nano_gpt/kernels.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>

namespace nano_gpt {
namespace {

/// Two rows of c and four of b: every loaded element of b is used twice, every element of c is loaded and stored once for
/// four multiplications, and the 14 vectors involved fit the 16 registers of baseline x86-64. The loop over columns has
/// independent iterations, so compilers vectorise it without being allowed to reorder floating-point sums.
template <class T>
void add_two_rows_by_four(const T (&a0)[4], const T (&a1)[4], const T* __restrict b0, const T* __restrict b1,
                          const T* __restrict b2, const T* __restrict b3, T* __restrict c0, T* __restrict c1,
                          std::size_t columns) {
  for (std::size_t j = 0; j < columns; ++j) {
    c0[j] += a0[0] * b0[j] + a0[1] * b1[j] + a0[2] * b2[j] + a0[3] * b3[j];
    c1[j] += a1[0] * b0[j] + a1[1] * b1[j] + a1[2] * b2[j] + a1[3] * b3[j];
  }
}

template <class T>
void add_scaled_row(T factor, const T* __restrict from, T* __restrict to, std::size_t columns) {
  for (std::size_t j = 0; j < columns; ++j) to[j] += factor * from[j];
}

/// What is left of row i of c after the blocks of four.
template <class T>
void add_row_product(matrix<const T> a, matrix<const T> b, matrix<T> c, std::size_t i, std::size_t first_k) {
  for (std::size_t k = first_k; k < a.columns; ++k) add_scaled_row(a.at(i, k), b.row(k), c.row(i), c.columns);
}

template <class T>
T sum_of(const T* row, std::size_t columns) {
  T sum = 0;
  for (std::size_t j = 0; j < columns; ++j) sum += row[j];
  return sum;
}

/// 0.5 * (1 + tanh(u)) = 1 / (1 + exp(-2u)); exp overflows to infinity where the result is 0, as it should be.
template <class T>
T gelu_gate(T x) {
  constexpr T cubic = T(0.044715);
  const T u = std::sqrt(T(2) / std::numbers::pi_v<T>) * (x + cubic * x * x * x);
  return T(1) / (T(1) + std::exp(T(-2) * u));
}

/// exp(scale * (row - max)) / sum over the first `columns` elements, in place. Subtracting the maximum keeps exp finite.
template <class T>
void softmax_row(T* row, std::size_t columns, T scale) {
  const T max = *std::max_element(row, row + columns);
  for (std::size_t j = 0; j < columns; ++j) row[j] = std::exp(scale * (row[j] - max));
  const T inverse_sum = T(1) / sum_of(row, columns);
  for (std::size_t j = 0; j < columns; ++j) row[j] *= inverse_sum;
}

}  // namespace

template <class T>
void add_product(in_matrix<T> a, in_matrix<T> b, matrix<T> c) {
  assert(a.rows == c.rows && a.columns == b.rows && b.columns == c.columns);
  assert(b.column_stride == 1 && c.column_stride == 1);
  const std::size_t even_rows = a.rows / 2 * 2;
  const std::size_t whole_k = a.columns / 4 * 4;
  for (std::size_t i = 0; i < even_rows; i += 2) {
    for (std::size_t k = 0; k < whole_k; k += 4) {
      const T a0[4] = {a.at(i, k), a.at(i, k + 1), a.at(i, k + 2), a.at(i, k + 3)};
      const T a1[4] = {a.at(i + 1, k), a.at(i + 1, k + 1), a.at(i + 1, k + 2), a.at(i + 1, k + 3)};
      add_two_rows_by_four(a0, a1, b.row(k), b.row(k + 1), b.row(k + 2), b.row(k + 3), c.row(i), c.row(i + 1), c.columns);
    }
    add_row_product(a, b, c, i, whole_k);
    add_row_product(a, b, c, i + 1, whole_k);
  }
  if (even_rows != a.rows) add_row_product(a, b, c, even_rows, 0);
}

template <class T>
void transpose(in_matrix<T> in, matrix<T> out) {
  for (std::size_t i = 0; i < in.rows; ++i) {
    for (std::size_t j = 0; j < in.columns; ++j) out.at(j, i) = in.at(i, j);
  }
}

template <class T>
void add(in_span<T> from, std::span<T> to) {
  add_scaled_row(T(1), from.data(), to.data(), to.size());
}

template <class T>
void copy_to_rows(in_span<T> row, matrix<T> to) {
  for (std::size_t i = 0; i < to.rows; ++i) std::copy(row.begin(), row.end(), to.row(i));
}

template <class T>
void add_rows(in_matrix<T> from, std::span<T> sums) {
  for (std::size_t i = 0; i < from.rows; ++i) add_scaled_row(T(1), from.row(i), sums.data(), sums.size());
}

template <class T>
void embed(std::span<const std::int32_t> tokens, in_matrix<T> token_table, in_matrix<T> position_table, std::size_t positions,
           matrix<T> out) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const T* token = token_table.row(static_cast<std::size_t>(tokens[i]));
    const T* position = position_table.row(i % positions);
    std::transform(token, token + out.columns, position, out.row(i), std::plus<>{});
  }
}

template <class T>
void embed_backward(std::span<const std::int32_t> tokens, in_matrix<T> d_out, std::size_t positions, matrix<T> d_token_table,
                    matrix<T> d_position_table) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    add_scaled_row(T(1), d_out.row(i), d_token_table.row(static_cast<std::size_t>(tokens[i])), d_out.columns);
    add_scaled_row(T(1), d_out.row(i), d_position_table.row(i % positions), d_out.columns);
  }
}

template <class T>
void layer_norm_forward(in_matrix<T> x, in_span<T> gain, in_span<T> shift, std::span<T> means, std::span<T> inverse_deviations,
                        matrix<T> out) {
  constexpr T epsilon = T(1e-5);
  const T columns = static_cast<T>(x.columns);
  for (std::size_t i = 0; i < x.rows; ++i) {
    const T* row = x.row(i);
    const T mean = sum_of(row, x.columns) / columns;
    T squares = 0;
    for (std::size_t j = 0; j < x.columns; ++j) squares += (row[j] - mean) * (row[j] - mean);
    const T inverse_deviation = T(1) / std::sqrt(squares / columns + epsilon);
    for (std::size_t j = 0; j < x.columns; ++j) out.row(i)[j] = (row[j] - mean) * inverse_deviation * gain[j] + shift[j];
    means[i] = mean;
    inverse_deviations[i] = inverse_deviation;
  }
}

template <class T>
void layer_norm_backward(in_matrix<T> x, in_span<T> gain, in_span<T> means, in_span<T> inverse_deviations, in_matrix<T> d_out,
                         matrix<T> d_x, std::span<T> d_gain, std::span<T> d_shift) {
  const T columns = static_cast<T>(x.columns);
  for (std::size_t i = 0; i < x.rows; ++i) {
    const T* row = x.row(i);
    const T* d_row = d_out.row(i);
    const auto normalised = [&](std::size_t j) { return (row[j] - means[i]) * inverse_deviations[i]; };
    T sum = 0;
    T sum_along_row = 0;
    for (std::size_t j = 0; j < x.columns; ++j) {
      const T d_normalised = d_row[j] * gain[j];
      sum += d_normalised;
      sum_along_row += d_normalised * normalised(j);
      d_gain[j] += d_row[j] * normalised(j);
      d_shift[j] += d_row[j];
    }
    for (std::size_t j = 0; j < x.columns; ++j) {
      // The mean and the deviation depend on every element of the row: both paths are projected out.
      d_x.row(i)[j] = inverse_deviations[i] * (d_row[j] * gain[j] - (sum + normalised(j) * sum_along_row) / columns);
    }
  }
}

template <class T>
void causal_softmax(matrix<T> scores, T scale) {
  for (std::size_t t = 0; t < scores.rows; ++t) {
    softmax_row(scores.row(t), t + 1, scale);
    std::fill(scores.row(t) + t + 1, scores.row(t) + scores.columns, T(0));
  }
}

template <class T>
void causal_softmax_backward(in_matrix<T> probabilities, T scale, matrix<T> d_scores) {
  for (std::size_t t = 0; t < d_scores.rows; ++t) {
    const T* p = probabilities.row(t);
    T* d = d_scores.row(t);
    T along_row = 0;
    for (std::size_t s = 0; s <= t; ++s) along_row += p[s] * d[s];
    // Probabilities of the future are 0, so the whole row may take part: it becomes 0 there.
    for (std::size_t s = 0; s < d_scores.columns; ++s) d[s] = scale * p[s] * (d[s] - along_row);
  }
}

template <class T>
void gelu(in_span<T> x, std::span<T> out) {
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] * gelu_gate(x[i]);
}

template <class T>
void gelu_backward(in_span<T> x, std::span<T> d_out) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T gate = gelu_gate(x[i]);
    // gate' = gate * (1 - gate) * 2u', from the logistic form of the gate
    const T slope = T(2) * std::sqrt(T(2) / std::numbers::pi_v<T>) * (T(1) + T(3) * T(0.044715) * x[i] * x[i]);
    d_out[i] *= gate + x[i] * gate * (T(1) - gate) * slope;
  }
}

template <class T>
T cross_entropy(std::span<const std::int32_t> targets, matrix<T> logits) {
  // A probability may round to 0 where the logits are far apart; its logarithm must stay finite.
  constexpr T smallest = std::numeric_limits<T>::min();
  double loss = 0;
  for (std::size_t i = 0; i < logits.rows; ++i) {
    softmax_row(logits.row(i), logits.columns, T(1));
    loss -= static_cast<double>(std::log(std::max(logits.row(i)[targets[i]], smallest)));
  }
  return static_cast<T>(loss / static_cast<double>(logits.rows));
}

template <class T>
void cross_entropy_backward(std::span<const std::int32_t> targets, matrix<T> probabilities) {
  const T weight = T(1) / static_cast<T>(probabilities.rows);
  for (std::size_t i = 0; i < probabilities.rows; ++i) {
    T* row = probabilities.row(i);
    row[targets[i]] -= T(1);
    for (std::size_t j = 0; j < probabilities.columns; ++j) row[j] *= weight;
  }
}

template <class T>
void adamw_step(const adamw_update<T>& update, in_span<T> gradient, std::span<T> first_moment, std::span<T> second_moment,
                std::span<T> value) {
  for (std::size_t i = 0; i < value.size(); ++i) {
    first_moment[i] = update.beta1 * first_moment[i] + (T(1) - update.beta1) * gradient[i];
    second_moment[i] = update.beta2 * second_moment[i] + (T(1) - update.beta2) * gradient[i] * gradient[i];
    const T denominator = std::sqrt(second_moment[i] / update.correction2) + update.epsilon;
    const T step = update.learning_rate * (first_moment[i] / update.correction1) / denominator;
    value[i] -= step + update.decay * value[i];
  }
}

#define NANO_GPT_INSTANTIATE(T)                                                                                              \
  template void add_product(in_matrix<T>, in_matrix<T>, matrix<T>);                                                          \
  template void transpose(in_matrix<T>, matrix<T>);                                                                          \
  template void add(in_span<T>, std::span<T>);                                                                               \
  template void copy_to_rows(in_span<T>, matrix<T>);                                                                         \
  template void add_rows(in_matrix<T>, std::span<T>);                                                                        \
  template void embed(std::span<const std::int32_t>, in_matrix<T>, in_matrix<T>, std::size_t, matrix<T>);                    \
  template void embed_backward(std::span<const std::int32_t>, in_matrix<T>, std::size_t, matrix<T>, matrix<T>);              \
  template void layer_norm_forward(in_matrix<T>, in_span<T>, in_span<T>, std::span<T>, std::span<T>, matrix<T>);             \
  template void layer_norm_backward(in_matrix<T>, in_span<T>, in_span<T>, in_span<T>, in_matrix<T>, matrix<T>, std::span<T>, \
                                    std::span<T>);                                                                           \
  template void causal_softmax(matrix<T>, T);                                                                                \
  template void causal_softmax_backward(in_matrix<T>, T, matrix<T>);                                                         \
  template void gelu(in_span<T>, std::span<T>);                                                                              \
  template void gelu_backward(in_span<T>, std::span<T>);                                                                     \
  template T cross_entropy(std::span<const std::int32_t>, matrix<T>);                                                        \
  template void cross_entropy_backward(std::span<const std::int32_t>, matrix<T>);                                            \
  template void adamw_step(const adamw_update<T>&, in_span<T>, std::span<T>, std::span<T>, std::span<T>)

NANO_GPT_INSTANTIATE(float);
NANO_GPT_INSTANTIATE(double);
#undef NANO_GPT_INSTANTIATE

}  // namespace nano_gpt
