#pragma once

#include <memprof/config.hpp>

#include <cstddef>

namespace memprof::inline MEMPROF_ABI::detail {

/// The first index in [0, count) for which `is_before` is false, `count` if there is none; true ones come first. What
/// `std::partition_point` is, without the iterators that every unit would have to compile.
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
