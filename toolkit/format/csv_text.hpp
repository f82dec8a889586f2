#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// Text in a CSV cell: quoted as in RFC 4180, and safe from being run by a spreadsheet.

namespace memprof::inline MEMPROF_ABI::detail {

enum class csv_quotes : std::uint8_t { where_needed, always };

/// Whether spreadsheets take the text for a formula: it begins with one of the characters listed in OWASP's "CSV Injection",
/// including the full-width ones.
[[nodiscard]] bool is_formula(std::string_view text) noexcept;

/// Appends a text cell. A formula gets a leading apostrophe, which spreadsheets take to mark text, with or without quotes. Not
/// for numbers: a negative one is not a formula.
void append_csv_text(std::string& out, std::string_view text, csv_quotes quotes = csv_quotes::where_needed);

}  // namespace memprof::inline MEMPROF_ABI::detail
