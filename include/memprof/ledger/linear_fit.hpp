#pragma once

#include <memprof/detail/wide_integer.hpp>
#include <memprof/trace/field_names.hpp>

#include <algorithm>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

/// Least-squares line through a number over the steps.
struct linear_fit {
  double per_step = 0;  ///< slope in bytes per step; 0 if all segments were in one step
  /// Share of the variation that the line explains, 0 to 1; 1 if there is none. Means little for fewer than three segments.
  double r_squared = 0;

  bool operator==(const linear_fit&) const = default;
};

template <>
inline constexpr detail::name_list detail::field_names<linear_fit>{"per_step", "r_squared"};

namespace detail {

/// The steps of the segments of one name: the x values of a fitted line. Counted from the first, so that sums are small. Trivial;
/// all-zero bytes mean empty.
struct exact_fit_steps {
  std::uint64_t first;
  std::uint64_t count;
  int128 sum;
  int128 squares;

  void add(std::uint64_t step) noexcept {
    if (count++ == 0) first = step;
    const auto distance = static_cast<int128>(step - first);
    sum += distance;
    squares += distance * distance;
  }
};

/// A number in the segments of one name: the y values. Sums are exact for up to 2^40 segments and any 63-bit numbers, so the line
/// does not depend on the magnitude of the numbers, nor on how far the first is from the others.
struct exact_fit_sums {
  std::int64_t first;
  int128 sum;
  wide_integer squares;
  wide_integer products;  ///< of values and steps

  /// Adds the number, at least 0, for the segment whose step was last added to `steps`.
  void add(std::int64_t value, std::uint64_t step, const exact_fit_steps& steps) noexcept {
    const int128 rise = static_cast<int128>(value) - first;
    if (rise == 0) return;
    sum += rise;
    squares += wide_integer{rise * rise};
    products += wide_integer{rise * static_cast<int128>(step - steps.first)};
  }

  /// Adds the number for as many further segments, whose distances from the first step sum to `distances`.
  void repeat(std::int64_t value, std::uint64_t times, int128 distances) noexcept {
    const int128 rise = static_cast<int128>(value) - first;
    if (rise == 0) return;
    const auto count = static_cast<int128>(times);
    sum += rise * count;
    squares += wide_integer{rise * rise} * wide_integer{count};
    products += wide_integer{rise} * wide_integer{distances};
  }

  /// Least squares: slope = Sxy / Sxx and R^2 = Sxy^2 / (Sxx Syy), where each S is n times the sum of products of deviations from
  /// the means. Constant numbers lie exactly on a level line, so R^2 is then 1.
  [[nodiscard]] linear_fit fit(const exact_fit_steps& steps) const noexcept {
    const wide_integer count{static_cast<int128>(steps.count)};
    const wide_integer horizontal = count * wide_integer{steps.squares} - wide_integer{steps.sum} * wide_integer{steps.sum};
    const wide_integer vertical = count * squares - wide_integer{sum} * wide_integer{sum};
    const wide_integer both = count * products - wide_integer{steps.sum} * wide_integer{sum};
    if (horizontal == wide_integer{}) return {0, vertical == wide_integer{} ? 1.0 : 0.0};
    const double slope = both.to_double() / horizontal.to_double();
    if (vertical == wide_integer{}) return {0, 1};
    return {slope, std::clamp(slope * (both.to_double() / vertical.to_double()), 0.0, 1.0)};
  }
};

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
