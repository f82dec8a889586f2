#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <limits>

namespace memprof::inline MEMPROF_ABI::detail {

/// left + right, or the nearest representable value: numbers from files may be anything.
[[nodiscard]] constexpr std::int64_t add_saturating(std::int64_t left, std::int64_t right) noexcept {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(left, right, &sum)) return sum;
  return right > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

/// left - right, or the nearest representable value.
[[nodiscard]] constexpr std::int64_t subtract_saturating(std::int64_t left, std::int64_t right) noexcept {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(left, right, &difference)) return difference;
  return right < 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
