#pragma once

#include <memprof/config.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// Text in a CSV cell: quoted as in RFC 4180, and safe from being run by a spreadsheet.

namespace memprof::inline MEMPROF_ABI::detail {

enum class csv_quotes : std::uint8_t { where_needed, always };

/// Whether spreadsheets take the text for a formula: it begins with one of the characters listed in OWASP's "CSV Injection",
/// including the full-width ones.
[[nodiscard]] inline bool is_formula(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 11> beginnings{
      "=", "+", "-", "@", "\t", "\r", "\n", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"};
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view each) { return text.substr(0, each.size()) == each; });
}

/// Appends a text cell. A formula gets a leading apostrophe, which spreadsheets take to mark text, with or without quotes. Not
/// for numbers: a negative one is not a formula.
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
