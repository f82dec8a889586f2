#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/utf8.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// The number with that many decimals, and a '.' in every locale, since existing parsers read it.
[[nodiscard, gnu::cold]] inline std::string decimal(double value, int decimals) {
  std::array<char, 400> text{};  // the greatest double has 309 digits before the point
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  return {text.data(), written.ptr};
}

/// "12.34 MB", where MB is 2^20 bytes.
[[nodiscard, gnu::cold]] inline std::string megabytes(std::int64_t bytes) {
  constexpr double bytes_per_megabyte = 1 << 20;
  return decimal(static_cast<double>(bytes) / bytes_per_megabyte, 2) + " MB";
}

/// The same, always with a sign: "+0.00 MB".
[[nodiscard, gnu::cold]] inline std::string signed_megabytes(std::int64_t bytes) {
  return (bytes < 0 ? "" : "+") + megabytes(bytes);
}

/// "1 free", "2 frees".
[[nodiscard, gnu::cold]] inline std::string counted(std::int64_t count, std::string_view singular, std::string_view plural) {
  return std::to_string(count) + ' ' + std::string{count == 1 ? singular : plural};
}

/// Whether a terminal would interpret the character or misplace what follows it: control characters, line and paragraph
/// separators, and bidirectional marks.
[[nodiscard]] constexpr bool is_control(char32_t code) noexcept {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200e && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code == utf8_character::invalid;
}

/// The text on one line, as UTF-8: control characters, which could break the format or the terminal, and bytes that are not UTF-8
/// become "\n", "\t" or "\x1b".
[[nodiscard, gnu::cold]] inline std::string on_one_line(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  for (std::size_t index = 0; index < text.size();) {
    const utf8_character character = utf8_at(text, index);
    const std::string_view bytes = text.substr(index, character.size);
    index += character.size;
    if (!is_control(character.code)) {
      result += bytes;
    } else if (character.code == U'\n') {
      result += "\\n";
    } else if (character.code == U'\t') {
      result += "\\t";
    } else {
      for (const char byte : bytes) {
        const auto code = static_cast<unsigned char>(byte);
        result += {'\\', 'x', digits[code >> 4], digits[code & 15]};
      }
    }
  }
  return result;
}

/// `text` padded with spaces before it to `width`.
[[nodiscard, gnu::cold]] inline std::string right_aligned(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

/// A number with commas between groups of three digits before its decimal point.
[[nodiscard, gnu::cold]] inline std::string with_thousands(std::string digits) {
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  const std::size_t point = digits.find('.');
  for (std::size_t index = point == std::string::npos ? digits.size() : point; index > first + 3;) {
    index -= 3;
    digits.insert(index, 1, ',');
  }
  return digits;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
