#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::detail {

/// The number with so many decimals, and a '.' whatever the locale: existing parsers read it.
[[nodiscard]] inline std::string decimal(double value, int decimals) {
  std::array<char, 400> text{};  // the greatest double has 309 digits before the point
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  return {text.data(), written.ptr};
}

/// "12.34 MB", where MB is 2^20 bytes.
[[nodiscard]] inline std::string megabytes(std::int64_t bytes) {
  constexpr double bytes_per_megabyte = 1 << 20;
  return decimal(static_cast<double>(bytes) / bytes_per_megabyte, 2) + " MB";
}

/// The same with a sign in any case: "+0.00 MB".
[[nodiscard]] inline std::string signed_megabytes(std::int64_t bytes) { return (bytes < 0 ? "" : "+") + megabytes(bytes); }

/// "1 free", "2 frees".
[[nodiscard]] inline std::string counted(std::int64_t count, std::string_view singular, std::string_view plural) {
  return std::to_string(count) + ' ' + std::string{count == 1 ? singular : plural};
}

/// The text on one line: control characters, which could break the format or the terminal, are written as "\n" or "\x1b".
[[nodiscard]] inline std::string on_one_line(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    if (code >= 0x20 && code != 0x7f) {
      result += character;
    } else if (character == '\n') {
      result += "\\n";
    } else if (character == '\t') {
      result += "\\t";
    } else {
      result += {'\\', 'x', digits[code >> 4], digits[code & 15]};
    }
  }
  return result;
}

/// `text` with spaces before it, up to that width.
[[nodiscard]] inline std::string right_aligned(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

}  // namespace memprof::detail
