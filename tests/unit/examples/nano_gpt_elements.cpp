#include <nano_gpt/element.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace memprof_tests::examples_nano_gpt_elements {

namespace {

using nano_gpt::bf16;
using nano_gpt::fp16;

template <class T>
T from_bits(unsigned bits) {
  return std::bit_cast<T>(static_cast<std::uint16_t>(bits));
}

template <class T>
unsigned bits_of(float value) {
  return std::bit_cast<std::uint16_t>(T(value));
}

/// The bits of positive infinity; all below are the finite numbers, in order.
template <class T>
constexpr unsigned infinity = std::is_same_v<T, bf16> ? 0x7f80U : 0x7c00U;

}  // namespace

TEST_CASE("nano_gpt: bf16 and fp16 have the values of their definitions") {
  // Sign, exponent and mantissa: 2^-2 * 1.5 and the ends of both ranges.
  CHECK(float{from_bits<bf16>(0x3ec0)} == 0.375F);
  CHECK(float{from_bits<bf16>(0x0001)} == 0x1p-133F);
  CHECK(float{from_bits<bf16>(0x7f7f)} == 0x1.fep127F);
  CHECK(float{from_bits<fp16>(0x3600)} == 0.375F);
  CHECK(float{from_bits<fp16>(0xc000)} == -2.0F);
  CHECK(float{from_bits<fp16>(0x0001)} == 0x1p-24F);
  CHECK(float{from_bits<fp16>(0x0400)} == 0x1p-14F);
  CHECK(float{from_bits<fp16>(0x7bff)} == 65504.0F);
}

TEMPLATE_TEST_CASE("nano_gpt: every 16-bit number survives being a float", "", bf16, fp16) {
  for (unsigned bits = 0; bits < 0x10000U; ++bits) {
    const float value = from_bits<TestType>(bits);
    const bool is_nan = (bits & 0x7fffU) > infinity<TestType>;
    if (std::isnan(value) != is_nan || (!is_nan && bits_of<TestType>(value) != bits)) FAIL("bits " << bits);
  }
  CHECK(bits_of<TestType>(std::numeric_limits<float>::quiet_NaN()) % 0x8000U > infinity<TestType>);
  CHECK(bits_of<TestType>(std::bit_cast<float>(0x7fffffffU)) % 0x8000U > infinity<TestType>);  // rounding must not make it 0
  CHECK(bits_of<TestType>(-std::numeric_limits<float>::infinity()) == (0x8000U | infinity<TestType>));
}

TEMPLATE_TEST_CASE("nano_gpt: floats between two 16-bit numbers become the nearest, and from the middle the even one", "", bf16,
                   fp16) {
  // The number after the largest is infinity, as if the exponents went on.
  const float beyond = std::is_same_v<TestType, bf16> ? 0 : 65536.0F;
  const unsigned pairs = std::is_same_v<TestType, bf16> ? infinity<TestType> - 1 : infinity<TestType>;
  for (unsigned bits = 0; bits < pairs; ++bits) {
    const float below = from_bits<TestType>(bits);
    const float above = bits + 1 == infinity<TestType> ? beyond : float{from_bits<TestType>(bits + 1)};
    const float middle = below + (above - below) / 2;
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    const bool right = bits_of<TestType>(middle) == even && bits_of<TestType>(-middle) == (even | 0x8000U) &&
                       bits_of<TestType>(std::nextafter(middle, below)) == bits &&
                       bits_of<TestType>(std::nextafter(middle, above)) == bits + 1;
    if (!right) FAIL("after bits " << bits);
  }
}

}  // namespace memprof_tests::examples_nano_gpt_elements
