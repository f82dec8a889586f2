#include <memprof/config.hpp>
#include <memprof/toolkit/format/json_text.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte(index) & 0xC0) != 0x80) return 0;
  }
  const bool is_overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool is_out_of_range = (first == 0xED && byte(1) > 0x9F) || (first == 0xF4 && byte(1) > 0x8F);
  return is_overlong || is_out_of_range ? 0 : length;
}

void append_utf8(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string sound;
  append_utf8(sound, text);
  out += '"';
  for (const char character : sound) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      out += '\\';
      out += character;
    } else if (code < 0x20 || code == 0x7F) {
      out += "\\u00";
      out += digits[code >> 4];
      out += digits[code & 15];
    } else {
      out += character;
    }
  }
  out += '"';
}

void append_json_key(std::string& out, std::string_view key) {
  append_json_string(out, key);
  out += ':';
}

}  // namespace memprof::inline MEMPROF_ABI::detail
