#pragma once

#include <memprof/config.hpp>

#include <cstddef>

namespace memprof::inline MEMPROF_ABI::detail {

/// The first index in [0, count) for which `is_before` is false, or `count` if there is none; indices for which it is true come
/// first. Like `std::partition_point`, without iterators that every translation unit would have to compile.
template <class IsBefore>
[[nodiscard]] std::size_t partition_point(std::size_t count, IsBefore is_before) {
  std::size_t first = 0;
  while (count != 0) {
    const std::size_t half = count / 2;
    if (is_before(first + half)) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
