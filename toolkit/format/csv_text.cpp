#include <memprof/config.hpp>
#include <memprof/toolkit/format/csv_text.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

bool is_formula(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 11> beginnings{
      "=", "+", "-", "@", "\t", "\r", "\n", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"};
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view each) { return text.substr(0, each.size()) == each; });
}

void append_csv_text(std::string& out, std::string_view text, csv_quotes quotes) {
  const bool is_quoted = quotes == csv_quotes::always || text.find_first_of(",\"\r\n") != std::string_view::npos;
  if (is_quoted) out += '"';
  if (is_formula(text)) out += '\'';
  for (const char character : text) {
    if (is_quoted && character == '"') out += '"';
    out += character;
  }
  if (is_quoted) out += '"';
}

}  // namespace memprof::inline MEMPROF_ABI::detail
