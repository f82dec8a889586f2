#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;

struct saved_values;

/// A signed 256-bit integer, for sums of squares that must stay exact because only their small differences matter. Arithmetic is
/// modulo 2^256. All-zero bytes represent zero.
class wide_integer {
 public:
  constexpr wide_integer() noexcept = default;
  constexpr explicit wide_integer(int128 value) noexcept
      : limbs_{static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(value >> 64), sign_limb(value), sign_limb(value)} {}

  constexpr wide_integer& operator+=(const wide_integer& other) noexcept {
    uint128 carry = 0;
    for (std::size_t index = 0; index < limb_count; ++index) {
      carry += limbs_[index];
      carry += other.limbs_[index];
      limbs_[index] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    return *this;
  }
  constexpr wide_integer& operator-=(const wide_integer& other) noexcept { return *this += -other; }

  [[nodiscard]] constexpr wide_integer operator-() const noexcept {
    wide_integer result;
    for (std::size_t index = 0; index < limb_count; ++index) result.limbs_[index] = ~limbs_[index];
    return result += wide_integer{1};
  }
  [[nodiscard]] friend constexpr wide_integer operator-(wide_integer left, const wide_integer& right) noexcept {
    return left -= right;
  }
  [[nodiscard]] friend constexpr wide_integer operator*(const wide_integer& left, const wide_integer& right) noexcept {
    wide_integer result;
    for (std::size_t low = 0; low < limb_count; ++low) {
      uint128 carry = 0;
      for (std::size_t high = 0; low + high < limb_count; ++high) {
        carry += static_cast<uint128>(left.limbs_[low]) * right.limbs_[high] + result.limbs_[low + high];
        result.limbs_[low + high] = static_cast<std::uint64_t>(carry);
        carry >>= 64;
      }
    }
    return result;
  }
  constexpr bool operator==(const wide_integer&) const noexcept = default;

  [[nodiscard]] constexpr bool is_negative() const noexcept { return limbs_[limb_count - 1] >> 63 != 0; }
  /// The value to about 50 bits, identical on every machine: scaling uses only powers of two.
  [[nodiscard]] constexpr double to_double() const noexcept {
    if (is_negative()) return -(-*this).to_double();
    constexpr double limb_range = 18446744073709551616.0;
    double result = 0;
    for (std::size_t index = limb_count; index-- > 0;) result = result * limb_range + static_cast<double>(limbs_[index]);
    return result;
  }

 private:
  friend struct saved_values;

  [[nodiscard]] static constexpr std::uint64_t sign_limb(int128 value) noexcept { return value < 0 ? ~std::uint64_t{0} : 0; }

  static constexpr std::size_t limb_count = 4;

  std::uint64_t limbs_[limb_count] = {};  ///< least significant first
};

}  // namespace memprof::inline MEMPROF_ABI::detail
