#include <nano_gpt/kernels.hpp>

#include <nano_gpt/column_sums.hpp>

#include <memprof/backend/no_dispatch.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

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
void add_scaled_row(accumulator<T> factor, const T* __restrict from, T* __restrict to, std::size_t columns) {
  for (std::size_t j = 0; j < columns; ++j) to[j] = T(to[j] + factor * from[j]);
}

/// The remainder of row i of c after the blocks of four.
template <class T>
void add_row_product(matrix<const T> a, matrix<const T> b, matrix<T> c, std::size_t i, std::size_t first_k) {
  for (std::size_t k = first_k; k < a.columns; ++k) add_scaled_row(a.at(i, k), b.row(k), c.row(i), c.columns);
}

constexpr std::size_t tile_rows = 8;
constexpr std::size_t tile_columns = 64;

/// A tile of c in accumulators, so that every sum is complete before it is rounded, and a converted row of b serves all rows.
template <class T>
void add_tile_product(matrix<const T> a, matrix<const T> b, matrix<T> c) {
  std::array<std::array<accumulator<T>, tile_columns>, tile_rows> sums;
  for (std::size_t i = 0; i < c.rows; ++i) std::copy_n(c.row(i), c.columns, sums[i].begin());
  for (std::size_t k = 0; k < a.columns; ++k) {
    std::array<accumulator<T>, tile_columns> b_row;
    std::copy_n(b.row(k), c.columns, b_row.begin());
    for (std::size_t i = 0; i < c.rows; ++i) add_scaled_row(accumulator<T>(a.at(i, k)), b_row.data(), sums[i].data(), c.columns);
  }
  for (std::size_t i = 0; i < c.rows; ++i) {
    for (std::size_t j = 0; j < c.columns; ++j) c.row(i)[j] = T(sums[i][j]);
  }
}

/// For storage-only types.
template <class T>
void add_product_in_tiles(matrix<const T> a, matrix<const T> b, matrix<T> c) {
  for (std::size_t i = 0; i < c.rows; i += tile_rows) {
    const std::size_t rows = std::min(tile_rows, c.rows - i);
    for (std::size_t j = 0; j < c.columns; j += tile_columns) {
      const std::size_t columns = std::min(tile_columns, c.columns - j);
      add_tile_product(a.part(i, rows, 0, a.columns), b.part(0, b.rows, j, columns), c.part(i, rows, j, columns));
    }
  }
}

}  // namespace

template <class T>
void add_product(in_matrix<T> a, in_matrix<T> b, matrix<T> c) {
  assert(a.rows == c.rows && a.columns == b.rows && b.columns == c.columns);
  assert(b.column_stride == 1 && c.column_stride == 1);
  if (!memprof::dispatching()) return;
  if constexpr (is_stored_type<T>) {
    add_product_in_tiles(a, b, c);
  } else {
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
}

template <class T>
void transpose(in_matrix<T> in, matrix<T> out) {
  if (!memprof::dispatching()) return;
  for (std::size_t i = 0; i < in.rows; ++i) {
    for (std::size_t j = 0; j < in.columns; ++j) out.at(j, i) = in.at(i, j);
  }
}

template <class T>
void add(in_span<T> from, std::span<T> to) {
  if (!memprof::dispatching()) return;
  add_scaled_row(accumulator<T>(1), from.data(), to.data(), to.size());
}

template <class T>
void copy_to_rows(in_span<T> row, matrix<T> to) {
  if (!memprof::dispatching()) return;
  for (std::size_t i = 0; i < to.rows; ++i) std::copy(row.begin(), row.end(), to.row(i));
}

template <class T>
void add_rows(in_matrix<T> from, std::span<T> sums) {
  if (!memprof::dispatching()) return;
  add_column_sums(from.rows, sums, [&](std::size_t i, std::size_t j) { return accumulator<T>(from.row(i)[j]); });
}

template <class T>
void embed(std::span<const std::int32_t> tokens, in_matrix<T> table, matrix<T> out) {
  if (!memprof::dispatching()) return;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::copy_n(table.row(static_cast<std::size_t>(tokens[i])), out.columns, out.row(i));
  }
}

template <class T>
void embed_backward(std::span<const std::int32_t> tokens, in_matrix<T> d_out, matrix<T> d_table) {
  if (!memprof::dispatching()) return;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    add_scaled_row(accumulator<T>(1), d_out.row(i), d_table.row(static_cast<std::size_t>(tokens[i])), d_out.columns);
  }
}

template <class T>
void add_positions(in_matrix<T> table, std::size_t positions, matrix<T> out) {
  if (!memprof::dispatching()) return;
  for (std::size_t i = 0; i < out.rows; ++i) {
    add_scaled_row(accumulator<T>(1), table.row(i % positions), out.row(i), out.columns);
  }
}

template <class T>
void add_positions_backward(in_matrix<T> d_out, std::size_t positions, matrix<T> d_table) {
  if (!memprof::dispatching()) return;
  for (std::size_t i = 0; i < d_out.rows; ++i) {
    add_scaled_row(accumulator<T>(1), d_out.row(i), d_table.row(i % positions), d_out.columns);
  }
}

template <class T>
void adamw_step(const adamw_update<T>& update, in_span<T> gradient, std::span<T> first_moment, std::span<T> second_moment,
                std::span<T> value) {
  if (!memprof::dispatching()) return;
  using number = accumulator<T>;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const number g = gradient[i];
    const number first = update.beta1 * first_moment[i] + (number(1) - update.beta1) * g;
    const number second = update.beta2 * second_moment[i] + (number(1) - update.beta2) * g * g;
    const number denominator = std::sqrt(second / update.correction2) + update.epsilon;
    const number step = update.learning_rate * (first / update.correction1) / denominator;
    first_moment[i] = T(first);
    second_moment[i] = T(second);
    value[i] = T(value[i] - (step + update.decay * value[i]));
  }
}

#define NANO_GPT_INSTANTIATE(T)                                                         \
  template void add_product(in_matrix<T>, in_matrix<T>, matrix<T>);                     \
  template void transpose(in_matrix<T>, matrix<T>);                                     \
  template void add(in_span<T>, std::span<T>);                                          \
  template void copy_to_rows(in_span<T>, matrix<T>);                                    \
  template void add_rows(in_matrix<T>, std::span<T>);                                   \
  template void embed(std::span<const std::int32_t>, in_matrix<T>, matrix<T>);          \
  template void embed_backward(std::span<const std::int32_t>, in_matrix<T>, matrix<T>); \
  template void add_positions(in_matrix<T>, std::size_t, matrix<T>);                    \
  template void add_positions_backward(in_matrix<T>, std::size_t, matrix<T>);           \
  template void adamw_step(const adamw_update<T>&, in_span<T>, std::span<T>, std::span<T>, std::span<T>)

NANO_GPT_INSTANTIATE(float);
NANO_GPT_INSTANTIATE(double);
NANO_GPT_INSTANTIATE(bf16);
NANO_GPT_INSTANTIATE(fp16);
#undef NANO_GPT_INSTANTIATE

}  // namespace nano_gpt
