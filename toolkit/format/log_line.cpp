#include <memprof/config.hpp>
#include <memprof/detail/parse_double.hpp>
#include <memprof/toolkit/format/log_line.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// The index after the terminal control sequence that starts with the escape character at `begin` (ECMA-48, and the "operating
/// system commands" of xterm).
std::size_t end_of_control_sequence(std::string_view line, std::size_t begin) noexcept {
  std::size_t index = begin + 1;
  if (index >= line.size()) return line.size();
  if (line[index] == '[') {
    for (++index; index < line.size(); ++index) {
      if (line[index] >= '@' && line[index] <= '~') return index + 1;
    }
    return line.size();
  }
  if (line[index] == ']') {
    for (++index; index < line.size(); ++index) {
      if (line[index] == '\a') return index + 1;
      if (line[index] == '\x1b') return index + 2 < line.size() ? index + 2 : line.size();
    }
    return line.size();
  }
  return index + 1;
}

}  // namespace

std::string visible_text(std::string_view line) {
  std::string text;
  text.reserve(line.size());
  for (std::size_t index = 0; index < line.size();) {
    const char character = line[index];
    if (character == '\x1b') {
      index = end_of_control_sequence(line, index);
      continue;
    }
    const auto code = static_cast<unsigned char>(character);
    if ((code >= 0x20 && code != 0x7f) || character == '\t') text += character;
    ++index;
  }
  return text;
}

std::string_view spelled_rank(std::string_view text) noexcept {
  for (std::size_t index = 0; index + 4 < text.size(); ++index) {
    const bool found = (text[index] | 0x20) == 'r' && (text[index + 1] | 0x20) == 'a' && (text[index + 2] | 0x20) == 'n' &&
                       (text[index + 3] | 0x20) == 'k';
    if (!found || (index > 0 && is_letter(text[index - 1]))) continue;
    std::size_t next = index + 4;
    while (next < text.size() && std::string_view{" =:_#-"}.find(text[next]) != std::string_view::npos) ++next;
    if (const std::string_view digits = digits_at(text, next); !digits.empty()) return digits;
  }
  return {};
}

std::string_view bracketed_rank(std::string_view text) noexcept {
  text = trimmed(text);
  if (!text.starts_with('[')) return {};
  std::size_t index = 1;
  while (index < text.size() && is_letter(text[index])) ++index;
  std::string_view digits = digits_at(text, index);
  index += digits.size();
  if (!digits.empty() && index < text.size() && text[index] == ',') {
    digits = digits_at(text, index + 1);
    index += 1 + digits.size();
  }
  return index < text.size() && text[index] == ']' ? digits : std::string_view{};
}

std::string_view labelled_rank(std::string_view text) noexcept {
  while (text.starts_with(' ')) text.remove_prefix(1);
  const std::string_view digits = digits_at(text, 0);
  return !digits.empty() && text.substr(digits.size()).starts_with(": ") ? digits : std::string_view{};
}

std::optional<std::int64_t> megabytes_at(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == ':' || text.front() == '\t')) text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::string digits;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    const bool grouping = text[end] == ',' && digits_at(text, end + 1).size() == 3;
    if (!is_digit(text[end]) && text[end] != '.' && !grouping) break;
    if (!grouping) digits += text[end];
  }
  if (digits.empty() || !is_digit(digits.front()) || !trimmed(text.substr(end)).starts_with("MB")) return std::nullopt;
  double megabytes = 0;
  const auto [rest, fault] = parse_double(digits, megabytes);
  if (fault != std::errc{} || rest != digits.data() + digits.size()) return std::nullopt;
  const double bytes = std::round(megabytes * 0x1p20);
  if (bytes >= 0x1p60) return std::nullopt;
  return static_cast<std::int64_t>(negative ? -bytes : bytes);
}

std::optional<std::int64_t> count_at(std::string_view text) {
  text = trimmed(text);
  std::string digits{digits_at(text, 0)};
  std::size_t end = digits.size();
  while (!digits.empty() && end < text.size() && text[end] == ',' && digits_at(text, end + 1).size() == 3) {
    digits += text.substr(end + 1, 3);
    end += 4;
  }
  std::int64_t count = 0;
  const auto [rest, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  constexpr std::int64_t greatest = std::int64_t{1} << 60;
  if (digits.empty() || fault != std::errc{} || count < 1 || count > greatest) return std::nullopt;
  return count;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
