#pragma once

#include <memprof/trace/dtype.hpp>

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

/// @file
/// The element types of tensors. The 16-bit types are for storage only; arithmetic is done in float.

namespace nano_gpt {

/// The upper half of a float: its exponent, and 7 bits of its mantissa.
class bf16 {
 public:
  bf16() = default;
  /// To the nearest, of two that are equally near to the even one.
  explicit bf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;  // rounding could turn it into infinity
    bits_ = static_cast<std::uint16_t>((is_nan ? bits | 0x400000U : bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
  }
  // NOLINTNEXTLINE(google-explicit-constructor): every value is a float, as with the built-in types
  operator float() const { return std::bit_cast<float>(std::uint32_t{bits_} << 16U); }

 private:
  std::uint16_t bits_;
};

/// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa.
class fp16 {
 public:
  fp16() = default;
  /// To the nearest, of two that are equally near to the even one; beyond 65504 that may be infinity.
  explicit fp16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    bits_ = static_cast<std::uint16_t>((bits >> 16U & 0x8000U) | rounded(bits & 0x7fffffffU));
  }
  // NOLINTNEXTLINE(google-explicit-constructor): every value is a float, as with the built-in types
  operator float() const {
    const std::uint32_t magnitude = (bits_ & 0x7fffU) << 13U;
    // The exponent biases differ by 112. Multiplication is correct for subnormal numbers, too.
    const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
    const std::uint32_t beyond = magnitude >= 0x0f800000U ? 0x7f800000U : 0;  // infinite or not a number
    return std::bit_cast<float>(finite | beyond | (bits_ & 0x8000U) << 16U);
  }

 private:
  /// Converts the bits of a float's magnitude.
  static std::uint32_t rounded(std::uint32_t magnitude) {
    if (magnitude > 0x7f800000U) return 0x7e00U;   // not a number
    if (magnitude >= 0x47800000U) return 0x7c00U;  // 2^16 and more
    if (magnitude < 0x38800000U) {                 // below 2^-14, subnormal: the float 0.5 has the same unit in the last place
      return std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
    }
    return (magnitude - (112U << 23U) + 0xfffU + (magnitude >> 13U & 1U)) >> 13U;
  }

  std::uint16_t bits_;
};

/// Whether elements of this type must be converted for computation.
template <class T>
inline constexpr bool is_stored_type = std::is_same_v<T, bf16> || std::is_same_v<T, fp16>;

/// The type for sums of such elements.
template <class T>
using accumulator = std::conditional_t<is_stored_type<T>, float, T>;

/// The factor by which gradients are scaled, so that small ones do not vanish in a type with a small exponent range (Micikevicius
/// et al., arXiv:1710.03740). The optimizer's step does not depend on it.
template <class T>
inline constexpr accumulator<T> loss_scale = std::is_same_v<T, fp16> ? accumulator<T>(1024) : accumulator<T>(1);

/// The usual name of an element type.
template <class T>
inline constexpr std::string_view dtype_name = "unknown";
template <>
inline constexpr std::string_view dtype_name<float> = "float32";
template <>
inline constexpr std::string_view dtype_name<double> = "float64";
template <>
inline constexpr std::string_view dtype_name<bf16> = "bfloat16";
template <>
inline constexpr std::string_view dtype_name<fp16> = "float16";
template <>
inline constexpr std::string_view dtype_name<std::int32_t> = "int32";

/// Whether the program can compute with elements of that type; the others can only be counted.
[[nodiscard]] constexpr bool is_dispatched_type(memprof::dtype type) {
  return type == memprof::dtype::float32 || type == memprof::dtype::bfloat16 || type == memprof::dtype::float16;
}

}  // namespace nano_gpt
