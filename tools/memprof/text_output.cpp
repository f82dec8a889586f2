#include "text_output.hpp"

#include <memprof/detail/file_io.hpp>
#include <memprof/detail/utf8.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_line.hpp>

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>

namespace memprof_tool {
namespace {

/// The length of what stays as it is at the beginning of the text; 0 if it may have to be escaped.
std::size_t unescaped_size(std::string_view text, text_colors colors) {
  if (text.starts_with('\n') || text.starts_with('\t')) return 1;
  if (text.starts_with("\r\n")) return 2;  // of CSV
  if (colors == text_colors::none) return 0;
  for (const std::string_view code : memprof::detail::emphasis_codes) {
    if (text.starts_with(code)) return code.size();
  }
  return 0;
}

std::string for_terminal(std::string_view text, text_colors colors) {
  std::string result;
  while (!text.empty()) {
    std::size_t size = 0;
    while (size < text.size() && unescaped_size(text.substr(size), colors) == 0) ++size;
    result += memprof::detail::on_one_line(text.substr(0, size));
    text.remove_prefix(size);
    const std::size_t kept = unescaped_size(text, colors);
    result += text.substr(0, kept);
    text.remove_prefix(kept);
  }
  return result;
}

/// JSON whose strings have no character that commands a terminal. Its own line ends stay.
std::string json_for_terminal(std::string_view document) {
  std::string result;
  for (std::size_t index = 0; index < document.size();) {
    const memprof::detail::utf8_character character = memprof::detail::utf8_at(document, index);
    const std::string_view bytes = document.substr(index, character.size);
    index += character.size;
    if (bytes == "\n" || bytes == "\t" || !memprof::detail::is_control(character.code)) {
      result += bytes;
      continue;
    }
    std::array<char, 8> escape{};  // all these characters have at most 16 bits, or are no UTF-8
    const unsigned code = character.code == memprof::detail::utf8_character::invalid ? 0xfffdU : character.code;
    result.append(escape.data(), static_cast<std::size_t>(std::snprintf(escape.data(), escape.size(), "\\u%04x", code)));
  }
  return result;
}

}  // namespace

void print_json(std::string_view document) {
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  (void)memprof::detail::write_text(stdout, is_terminal ? json_for_terminal(document) : std::string{document});
}

void print(std::string_view text, std::FILE* to, text_colors colors) {
  // Callers check the stream when they have printed everything.
  if (::isatty(::fileno(to)) == 1) {
    (void)memprof::detail::write_text(to, for_terminal(text, colors));
  } else {
    (void)memprof::detail::write_text(to, text);
  }
}

}  // namespace memprof_tool
