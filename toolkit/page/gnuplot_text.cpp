#include <memprof/config.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/page/gnuplot_text.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

std::string picture_unit::text(std::int64_t amount) const {
  return with_thousands(decimal(of(amount), bytes == 1 ? 0 : 2)) + ' ' + std::string{name};
}

std::string amount_text(std::int64_t amount, unit_style style) {
  return unit_for(amount < 0 ? -(amount + 1) + 1 : amount, style).text(amount);
}

std::string gnuplot_string(std::string_view text) {
  std::string quoted = "'";
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const auto code = static_cast<unsigned char>(text.front());
    if (size == 0 || code < 0x20 || code == 0x7f) {
      quoted += '?';
    } else {
      quoted += text.substr(0, size);
      if (code == '\'') quoted += '\'';
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return quoted + '\'';
}

std::string gnuplot_lines(std::string_view text, std::size_t letters) {
  std::string expression;
  for (int line = 1; !text.empty(); ++line) {
    std::size_t end = text.size();
    if (end > letters) {
      end = text.rfind(' ', letters);
      if (end == std::string_view::npos || end == 0) end = letters;
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;  // not inside a character
    }
    const bool cut = line == gnuplot_most_lines && end < text.size();
    if (!expression.empty()) expression += ".\"\\n\".";
    expression += gnuplot_string(std::string{text.substr(0, end)} + (cut ? "..." : ""));
    if (cut) break;
    text.remove_prefix(end);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  return expression.empty() ? "''" : expression;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
