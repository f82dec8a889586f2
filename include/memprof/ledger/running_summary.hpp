#pragma once

#include <memprof/detail/wide_integer.hpp>

#include <cstdint>
#include <limits>

namespace memprof::inline MEMPROF_ABI::detail {

/// One number over the segments of one name. Trivial; meaningful after `begin`.
struct running_summary {
  std::int64_t first;
  std::int64_t last;
  std::int64_t least;
  std::int64_t greatest;
  int128 total;
  std::uint64_t least_segment;  ///< number of the first segment with `least`
  std::uint64_t greatest_segment;

  /// Starts with the single `value`, in segment `number`.
  void begin(std::int64_t value, std::uint64_t number) noexcept { *this = {value, value, value, value, value, number, number}; }
  void add(std::int64_t value, std::uint64_t number) noexcept {
    last = value;
    total += value;
    if (value < least) {
      least = value;
      least_segment = number;
    }
    if (value > greatest) {
      greatest = value;
      greatest_segment = number;
    }
  }

  /// The sum, or the nearest 64-bit number.
  [[nodiscard]] std::int64_t sum() const noexcept {
    constexpr int128 most = std::numeric_limits<std::int64_t>::max();
    constexpr int128 fewest = std::numeric_limits<std::int64_t>::min();
    return static_cast<std::int64_t>(total > most ? most : total < fewest ? fewest : total);
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
