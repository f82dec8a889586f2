#pragma once

#include <memprof/config.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// Text in a cell of CSV: RFC 4180's quotes, and nothing that a spreadsheet would run.

namespace memprof::inline MEMPROF_ABI::detail {

enum class csv_quotes : std::uint8_t { where_needed, always };

/// Whether spreadsheets take the text for a formula: it begins with one of the characters that OWASP's "CSV Injection" lists, the
/// full-width ones included.
[[nodiscard]] inline bool is_formula(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 11> beginnings{
      "=", "+", "-", "@", "\t", "\r", "\n", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"};
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view each) { return text.substr(0, each.size()) == each; });
}

/// Appends a cell. A formula gets an apostrophe in front, which spreadsheets take as the mark of a text, whether or not there are
/// quotes around it. Numbers are not for this: a negative one is no formula.
inline void append_csv_text(std::string& out, std::string_view text, csv_quotes quotes = csv_quotes::where_needed) {
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
