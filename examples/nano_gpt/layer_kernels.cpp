#include <nano_gpt/kernels.hpp>

#include <nano_gpt/column_sums.hpp>

#include <memprof/backend/no_dispatch.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

/// @file
/// The kernels other than linear algebra: positions, normalisations, softmax, activations, loss.

namespace nano_gpt {
namespace {

/// Keeps the square root of a normalisation away from 0.
template <class T>
constexpr accumulator<T> norm_epsilon = accumulator<T>(1e-5);

template <class T>
accumulator<T> sum_of(const T* row, std::size_t columns) {
  accumulator<T> sum = 0;
  for (std::size_t j = 0; j < columns; ++j) sum += row[j];
  return sum;
}

/// 0.5 * (1 + tanh(u)) = 1 / (1 + exp(-2u)); if exp overflows to infinity, the result is 0, as it should be.
template <class Number>
Number gelu_gate(Number x) {
  constexpr Number cubic = Number(0.044715);
  const Number u = std::sqrt(Number(2) / std::numbers::pi_v<Number>) * (x + cubic * x * x * x);
  return Number(1) / (Number(1) + std::exp(Number(-2) * u));
}

template <class Number>
Number logistic(Number x) {
  return Number(1) / (Number(1) + std::exp(-x));
}

/// exp(scale * (row - max)) / sum over the first `columns` elements, in place. Returns the sum. Subtracting the maximum keeps exp
/// finite.
template <class T>
accumulator<T> softmax_row(T* row, std::size_t columns, accumulator<T> scale) {
  const accumulator<T> max = *std::max_element(row, row + columns);
  for (std::size_t j = 0; j < columns; ++j) row[j] = T(std::exp(scale * (row[j] - max)));
  const accumulator<T> sum = sum_of(row, columns);
  const accumulator<T> inverse_sum = accumulator<T>(1) / sum;
  for (std::size_t j = 0; j < columns; ++j) row[j] = T(row[j] * inverse_sum);
  return sum;
}

}  // namespace

template <class T>
void fill_rotary_tables(matrix<T> cosines, matrix<T> sines) {
  if (!memprof::dispatching()) return;
  constexpr double base = 10000;
  for (std::size_t t = 0; t < cosines.rows; ++t) {
    for (std::size_t p = 0; p < cosines.columns; ++p) {
      const double exponent = static_cast<double>(p) / static_cast<double>(cosines.columns);
      const double angle = static_cast<double>(t) / std::pow(base, exponent);
      cosines.row(t)[p] = T(static_cast<accumulator<T>>(std::cos(angle)));
      sines.row(t)[p] = T(static_cast<accumulator<T>>(std::sin(angle)));
    }
  }
}

template <class T>
void rotate_pairs(in_matrix<T> cosines, in_matrix<T> sines, rotation direction, matrix<T> rows) {
  if (!memprof::dispatching()) return;
  const accumulator<T> sign = direction == rotation::forward ? 1 : -1;
  for (std::size_t t = 0; t < rows.rows; ++t) {
    for (std::size_t p = 0; p < rows.columns / 2; ++p) {
      T* const pair = rows.row(t) + 2 * p;
      const accumulator<T> cosine = cosines.row(t)[p];
      const accumulator<T> sine = sign * sines.row(t)[p];
      const accumulator<T> x = pair[0];
      const accumulator<T> y = pair[1];
      pair[0] = T(x * cosine - y * sine);
      pair[1] = T(x * sine + y * cosine);
    }
  }
}

template <class T>
void layer_norm_forward(in_matrix<T> x, in_span<T> gain, in_span<T> shift, std::span<T> means, std::span<T> inverse_deviations,
                        matrix<T> out) {
  if (!memprof::dispatching()) return;
  using number = accumulator<T>;
  const number columns = static_cast<number>(x.columns);
  for (std::size_t i = 0; i < x.rows; ++i) {
    const T* row = x.row(i);
    const number mean = sum_of(row, x.columns) / columns;
    number squares = 0;
    for (std::size_t j = 0; j < x.columns; ++j) squares += (row[j] - mean) * (row[j] - mean);
    const number inverse_deviation = number(1) / std::sqrt(squares / columns + norm_epsilon<T>);
    for (std::size_t j = 0; j < x.columns; ++j) out.row(i)[j] = T((row[j] - mean) * inverse_deviation * gain[j] + shift[j]);
    means[i] = T(mean);
    inverse_deviations[i] = T(inverse_deviation);
  }
}

template <class T>
void layer_norm_backward(in_matrix<T> x, in_span<T> gain, in_span<T> means, in_span<T> inverse_deviations, in_matrix<T> d_out,
                         matrix<T> d_x, std::span<T> d_gain, std::span<T> d_shift) {
  if (!memprof::dispatching()) return;
  using number = accumulator<T>;
  const number columns = static_cast<number>(x.columns);
  const auto normalised = [&](std::size_t i, std::size_t j) { return (x.row(i)[j] - number(means[i])) * inverse_deviations[i]; };
  for (std::size_t i = 0; i < x.rows; ++i) {
    const T* d_row = d_out.row(i);
    number sum = 0;
    number sum_along_row = 0;
    for (std::size_t j = 0; j < x.columns; ++j) {
      const number d_normalised = number(d_row[j]) * gain[j];
      sum += d_normalised;
      sum_along_row += d_normalised * normalised(i, j);
    }
    for (std::size_t j = 0; j < x.columns; ++j) {
      // The mean and the deviation depend on every element of the row: both paths are projected out.
      d_x.row(i)[j] =
          T(inverse_deviations[i] * (number(d_row[j]) * gain[j] - (sum + normalised(i, j) * sum_along_row) / columns));
    }
  }
  add_column_sums(x.rows, d_gain, [&](std::size_t i, std::size_t j) { return number(d_out.row(i)[j]) * normalised(i, j); });
  add_column_sums(x.rows, d_shift, [&](std::size_t i, std::size_t j) { return number(d_out.row(i)[j]); });
}

template <class T>
void rms_norm_forward(in_matrix<T> x, in_span<T> gain, std::span<T> inverse_roots, matrix<T> out) {
  if (!memprof::dispatching()) return;
  using number = accumulator<T>;
  for (std::size_t i = 0; i < x.rows; ++i) {
    const T* row = x.row(i);
    number squares = 0;
    for (std::size_t j = 0; j < x.columns; ++j) squares += number(row[j]) * row[j];
    const number inverse_root = number(1) / std::sqrt(squares / static_cast<number>(x.columns) + norm_epsilon<T>);
    for (std::size_t j = 0; j < x.columns; ++j) out.row(i)[j] = T(row[j] * inverse_root * gain[j]);
    inverse_roots[i] = T(inverse_root);
  }
}

template <class T>
void rms_norm_backward(in_matrix<T> x, in_span<T> gain, in_span<T> inverse_roots, in_matrix<T> d_out, matrix<T> d_x,
                       std::span<T> d_gain) {
  if (!memprof::dispatching()) return;
  using number = accumulator<T>;
  const number columns = static_cast<number>(x.columns);
  const auto normalised = [&](std::size_t i, std::size_t j) { return number(x.row(i)[j]) * inverse_roots[i]; };
  for (std::size_t i = 0; i < x.rows; ++i) {
    const T* d_row = d_out.row(i);
    number sum_along_row = 0;
    for (std::size_t j = 0; j < x.columns; ++j) sum_along_row += number(d_row[j]) * gain[j] * normalised(i, j);
    for (std::size_t j = 0; j < x.columns; ++j) {
      // The root depends on every element of the row: that path is projected out.
      d_x.row(i)[j] = T(inverse_roots[i] * (number(d_row[j]) * gain[j] - normalised(i, j) * sum_along_row / columns));
    }
  }
  add_column_sums(x.rows, d_gain, [&](std::size_t i, std::size_t j) { return number(d_out.row(i)[j]) * normalised(i, j); });
}

template <class T>
void causal_softmax(matrix<T> scores, accumulator<T> scale) {
  if (!memprof::dispatching()) return;
  for (std::size_t t = 0; t < scores.rows; ++t) {
    softmax_row(scores.row(t), t + 1, scale);
    std::fill(scores.row(t) + t + 1, scores.row(t) + scores.columns, T(0));
  }
}

template <class T>
void causal_softmax_backward(in_matrix<T> probabilities, accumulator<T> scale, matrix<T> d_scores) {
  if (!memprof::dispatching()) return;
  using number = accumulator<T>;
  for (std::size_t t = 0; t < d_scores.rows; ++t) {
    const T* p = probabilities.row(t);
    T* d = d_scores.row(t);
    number along_row = 0;
    for (std::size_t s = 0; s <= t; ++s) along_row += number(p[s]) * d[s];
    // Probabilities of the future are 0, so the whole row may take part: it becomes 0 there.
    for (std::size_t s = 0; s < d_scores.columns; ++s) d[s] = T(scale * p[s] * (d[s] - along_row));
  }
}

template <class T>
void gelu(in_span<T> x, std::span<T> out) {
  if (!memprof::dispatching()) return;
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = T(x[i] * gelu_gate<accumulator<T>>(x[i]));
}

template <class T>
void gelu_backward(in_span<T> x, std::span<T> d_out) {
  if (!memprof::dispatching()) return;
  using number = accumulator<T>;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const number value = x[i];
    const number gate = gelu_gate(value);
    // gate' = gate * (1 - gate) * 2u', from the logistic form of the gate
    const number slope = number(2) * std::sqrt(number(2) / std::numbers::pi_v<number>) *
                         (number(1) + number(3) * number(0.044715) * value * value);
    d_out[i] = T(d_out[i] * (gate + value * gate * (number(1) - gate) * slope));
  }
}

template <class T>
void swiglu(in_matrix<T> x, matrix<T> out) {
  if (!memprof::dispatching()) return;
  for (std::size_t i = 0; i < out.rows; ++i) {
    const T* left = x.row(i);
    const T* right = left + out.columns;
    for (std::size_t j = 0; j < out.columns; ++j) out.row(i)[j] = T(left[j] * logistic<accumulator<T>>(left[j]) * right[j]);
  }
}

template <class T>
void swiglu_backward(in_matrix<T> x, in_matrix<T> d_out, matrix<T> d_x) {
  if (!memprof::dispatching()) return;
  using number = accumulator<T>;
  for (std::size_t i = 0; i < d_out.rows; ++i) {
    const T* left = x.row(i);
    const T* right = left + d_out.columns;
    T* d_left = d_x.row(i);
    T* d_right = d_left + d_out.columns;
    for (std::size_t j = 0; j < d_out.columns; ++j) {
      const number d = d_out.row(i)[j];
      const number gate = logistic<number>(left[j]);
      d_left[j] = T(d * right[j] * gate * (number(1) + left[j] * (number(1) - gate)));
      d_right[j] = T(d * left[j] * gate);
    }
  }
}

template <class T>
accumulator<T> cross_entropy(std::span<const std::int32_t> targets, matrix<T> logits) {
  if (!memprof::dispatching()) return 0;
  using number = accumulator<T>;
  double loss = 0;
  for (std::size_t i = 0; i < logits.rows; ++i) {
    T* row = logits.row(i);
    // Not the logarithm of the probability, which may round to 0 if the logits are far apart.
    const number below_max = *std::max_element(row, row + logits.columns) - row[targets[i]];
    loss += static_cast<double>(below_max + std::log(softmax_row(row, logits.columns, number(1))));
  }
  return static_cast<number>(loss / static_cast<double>(logits.rows));
}

template <class T>
void cross_entropy_backward(std::span<const std::int32_t> targets, accumulator<T> scale, matrix<T> probabilities) {
  if (!memprof::dispatching()) return;
  using number = accumulator<T>;
  const number weight = scale / static_cast<number>(probabilities.rows);
  for (std::size_t i = 0; i < probabilities.rows; ++i) {
    T* row = probabilities.row(i);
    row[targets[i]] = T(row[targets[i]] - number(1));
    for (std::size_t j = 0; j < probabilities.columns; ++j) row[j] = T(row[j] * weight);
  }
}

#define NANO_GPT_INSTANTIATE(T)                                                                                              \
  template void fill_rotary_tables(matrix<T>, matrix<T>);                                                                    \
  template void rotate_pairs(in_matrix<T>, in_matrix<T>, rotation, matrix<T>);                                               \
  template void layer_norm_forward(in_matrix<T>, in_span<T>, in_span<T>, std::span<T>, std::span<T>, matrix<T>);             \
  template void layer_norm_backward(in_matrix<T>, in_span<T>, in_span<T>, in_span<T>, in_matrix<T>, matrix<T>, std::span<T>, \
                                    std::span<T>);                                                                           \
  template void rms_norm_forward(in_matrix<T>, in_span<T>, std::span<T>, matrix<T>);                                         \
  template void rms_norm_backward(in_matrix<T>, in_span<T>, in_span<T>, in_matrix<T>, matrix<T>, std::span<T>);              \
  template void causal_softmax(matrix<T>, accumulator<T>);                                                                   \
  template void causal_softmax_backward(in_matrix<T>, accumulator<T>, matrix<T>);                                            \
  template void gelu(in_span<T>, std::span<T>);                                                                              \
  template void gelu_backward(in_span<T>, std::span<T>);                                                                     \
  template void swiglu(in_matrix<T>, matrix<T>);                                                                             \
  template void swiglu_backward(in_matrix<T>, in_matrix<T>, matrix<T>);                                                      \
  template accumulator<T> cross_entropy(std::span<const std::int32_t>, matrix<T>);                                           \
  template void cross_entropy_backward(std::span<const std::int32_t>, accumulator<T>, matrix<T>)

NANO_GPT_INSTANTIATE(float);
NANO_GPT_INSTANTIATE(double);
NANO_GPT_INSTANTIATE(bf16);
NANO_GPT_INSTANTIATE(fp16);
#undef NANO_GPT_INSTANTIATE

}  // namespace nano_gpt
