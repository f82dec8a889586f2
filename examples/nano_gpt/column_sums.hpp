#pragma once

#include <nano_gpt/element.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace nano_gpt {

/// `sums[j] += term(i, j)` over all rows i. Sums a few columns at a time in accumulators, which storage-only types need: their
/// sums would stop growing once a term is smaller than the last place.
template <class T, class Term>
void add_column_sums(std::size_t rows, std::span<T> sums, Term term) {
  constexpr std::size_t strip = 64;
  for (std::size_t first = 0; first < sums.size(); first += strip) {
    const std::size_t columns = std::min(strip, sums.size() - first);
    std::array<accumulator<T>, strip> strip_sums;
    std::copy_n(sums.begin() + static_cast<std::ptrdiff_t>(first), columns, strip_sums.begin());
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) strip_sums[j] += term(i, first + j);
    }
    for (std::size_t j = 0; j < columns; ++j) sums[first + j] = T(strip_sums[j]);
  }
}

}  // namespace nano_gpt
