#pragma once

#include <memprof/memprof.hpp>


#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// What a page needs to carry data: gzip (RFC 1952) without a compressor, and base64 (RFC 4648).

namespace memprof::detail {

[[nodiscard]] constexpr std::array<std::uint32_t, 256> make_crc32_table() noexcept {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? crc >> 1U ^ 0xEDB88320U : crc >> 1U;
    table[byte] = crc;
  }
  return table;
}

/// CRC-32 as gzip, PNG and Ethernet have it: another polynomial than the checksums of traces.
[[nodiscard]] inline std::uint32_t crc32_of(std::string_view bytes) noexcept {
  static constexpr std::array<std::uint32_t, 256> table = make_crc32_table();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xFFU] ^ crc >> 8U;
  return ~crc;
}

/// The bytes as a gzip member of stored blocks (RFC 1951, 3.2.4): what every reader of gzip takes, 5 bytes in 65,535 longer than
/// the data.
[[nodiscard]] inline std::string gzip_stored(std::string_view bytes) {
  constexpr std::size_t max_block = 65535;
  std::string out;
  out.reserve(bytes.size() + 5 * (bytes.size() / max_block + 1) + 18);
  const auto put = [&](std::uint32_t value, int count) {
    for (int byte = 0; byte < count; ++byte) out += static_cast<char>(value >> (8 * byte));
  };
  put(0x00088B1FU, 4);  // magic number, method 8, no flags
  put(0, 4);            // no time of modification
  put(0xFF00U, 2);      // no extra flags, no operating system in particular
  const std::uint32_t checksum = crc32_of(bytes);
  const auto size = static_cast<std::uint32_t>(bytes.size());  // modulo 2^32, as the format has it
  do {
    const std::string_view block = bytes.substr(0, max_block);
    bytes.remove_prefix(block.size());
    const auto length = static_cast<std::uint32_t>(block.size());
    put(bytes.empty() ? 1 : 0, 1);
    put(length | ~length << 16U, 4);
    out += block;
  } while (!bytes.empty());
  put(checksum, 4);
  put(size, 4);
  return out;
}

/// Base64 with padding, without line breaks.
[[nodiscard]] inline std::string base64(std::string_view bytes) {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out((bytes.size() + 2) / 3 * 4, '=');
  for (std::size_t in = 0, to = 0; in < bytes.size(); in += 3, to += 4) {
    const std::size_t count = std::min<std::size_t>(bytes.size() - in, 3);
    std::uint32_t group = 0;
    for (std::size_t byte = 0; byte < 3; ++byte) {
      group = group << 8U | (byte < count ? static_cast<unsigned char>(bytes[in + byte]) : 0U);
    }
    for (std::size_t digit = 0; digit <= count; ++digit) out[to + digit] = digits[group >> (18 - 6 * digit) & 63U];
  }
  return out;
}

}  // namespace memprof::detail
