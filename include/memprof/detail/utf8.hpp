#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// One character of a text: its code point and its length in bytes. Bytes that are not UTF-8 come one at a time, as `invalid`.
struct utf8_character {
  static constexpr char32_t invalid = 0xffffffff;

  char32_t code = invalid;
  std::size_t size = 1;
};

/// The character at `index`, by the Unicode standard's table of well-formed sequences (3.9, table 3-7): no surrogates, nothing
/// overlong, nothing beyond U+10FFFF.
[[nodiscard]] constexpr utf8_character utf8_at(std::string_view text, std::size_t index) noexcept {
  const auto byte = [&](std::size_t offset) { return static_cast<unsigned char>(text[index + offset]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - index < size) return {};
  char32_t code = first & (0x7fu >> size);
  for (std::size_t offset = 1; offset < size; ++offset) {
    if ((byte(offset) & 0xc0u) != 0x80) return {};
    code = code << 6 | (byte(offset) & 0x3fu);
  }
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  if (overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, size};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
