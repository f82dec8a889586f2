#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string_view>

/// @file
/// Arithmetic on sizes that must not overflow, and checks of sizes.

namespace memprof::inline MEMPROF_ABI::detail {

/// A product or sum of sizes. Raises an error that names the dimensions if it does not fit in 63 bits.
class exact_count {
 public:
  constexpr exact_count(std::int64_t value) : value_{value} {}  // implicit, so that formulas read as formulas

  friend exact_count operator*(exact_count left, exact_count right) {
    if (__builtin_mul_overflow(left.value_, right.value_, &left.value_)) refuse();
    return left;
  }
  friend exact_count operator+(exact_count left, exact_count right) {
    if (__builtin_add_overflow(left.value_, right.value_, &left.value_)) refuse();
    return left;
  }
  [[nodiscard]] constexpr std::int64_t value() const noexcept { return value_; }

 private:
  [[noreturn, gnu::cold]] static void refuse();

  std::int64_t value_;
};

void require_positive(std::int64_t value, std::string_view name);

/// Requires that `whole` can be divided into `parts` equal parts.
void require_divides(std::int64_t parts, std::string_view name_of_parts, std::int64_t whole, std::string_view name_of_whole);

}  // namespace memprof::inline MEMPROF_ABI::detail
