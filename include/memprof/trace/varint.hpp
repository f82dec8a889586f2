#pragma once

#include <memprof/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memprof::inline MEMPROF_ABI::detail {

/// Size of the longest varint of a 64-bit value.
inline constexpr int max_varint_bytes = 10;

/// Values below this are written without a branch on their length.
inline constexpr std::uint64_t max_short_varint = std::uint64_t{1} << 28;

/// The top bits of a varint's bytes, indexed by the position of the value's highest bit.
inline constexpr auto continuation_bits = [] {
  std::array<std::uint32_t, 28> bits{};
  for (std::size_t top_bit = 7; top_bit < bits.size(); ++top_bit) bits[top_bit] = 0x80 | bits[top_bit - 7] << 8;
  return bits;
}();

/// Writes `value`, seven bits per byte, lowest first (LEB128, as in Protocol Buffers and DWARF), and returns the position after
/// it. May write up to `max_varint_bytes`, whatever the value.
[[nodiscard, gnu::always_inline]] inline unsigned char* put_varint(unsigned char* out, std::uint64_t value) noexcept {
  if (value < max_short_varint) [[likely]] {
    // No branch on the length, which is unpredictable for sizes: writes four groups at once and advances by the used ones.
    const auto low = static_cast<std::uint32_t>(value);
    const auto top_bit = static_cast<std::uint32_t>(31 ^ __builtin_clz(low | 1));
    std::uint32_t spread = (low & 0x3FFF) | (low & 0xFFFC000) << 2;
    spread = (spread & 0x7F007F) | (spread & 0x3F803F80) << 1;
    spread |= continuation_bits[top_bit];
    std::memcpy(out, &spread, sizeof spread);
    return out + (9 * top_bit + 73) / 64;
  }
  while (value >= 0x80) {
    *out++ = static_cast<unsigned char>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<unsigned char>(value);
  return out;
}

/// Reads a varint from `put_varint`; null if it does not end before `end` or exceeds 64 bits.
[[nodiscard]] inline const unsigned char* get_varint(const unsigned char* in, const unsigned char* end,
                                                     std::uint64_t& value) noexcept {
  if (in != end && *in < 0x80) [[likely]] {
    value = *in;
    return in + 1;
  }
  value = 0;
  for (unsigned shift = 0; in != end && shift < 64; shift += 7) {
    const std::uint64_t bits = *in++;
    if (shift == 63 && bits > 1) return nullptr;
    value |= (bits & 0x7F) << shift;
    if (bits < 0x80) return in;
  }
  return nullptr;
}

/// Maps small differences of either sign to small numbers.
[[nodiscard]] constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
[[nodiscard]] constexpr std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
