#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// @file
/// What a line of a log has besides a program's text: colours, and the labels of launchers and loggers.

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] constexpr bool is_digit(char character) noexcept { return character >= '0' && character <= '9'; }
[[nodiscard]] constexpr bool is_letter(char character) noexcept {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z');
}

[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// The line without control sequences and control characters; tabs stay.
[[nodiscard]] std::string visible_text(std::string_view line);

/// The digits starting at `index`.
[[nodiscard]] constexpr std::string_view digits_at(std::string_view text, std::size_t index) noexcept {
  std::size_t end = index;
  while (end < text.size() && is_digit(text[end])) ++end;
  return text.substr(index, end - index);
}

/// The number in "rank0", "Rank 3", "rank=1", "RANK: 2" anywhere in the text; empty if there is none.
[[nodiscard]] std::string_view spelled_rank(std::string_view text) noexcept;

/// The number in "[1,0]<stdout>:" (Open MPI: job, rank), "[0] " (MPICH) or "[default0]:" (torchrun) at the start of the text.
[[nodiscard]] std::string_view bracketed_rank(std::string_view text) noexcept;

/// The number in "0: " (`srun --label`) at the start of the text; `grep -n` writes line numbers without the space.
[[nodiscard]] std::string_view labelled_rank(std::string_view text) noexcept;

/// The bytes in "2112.40 MB" at the start of the text (after a ':' and spaces), as tt-train's analyze_memory.py parses them: MB
/// is 2^20 bytes, and digits may be grouped with commas. Nothing if there is no such number or it is 2^60 bytes or more.
[[nodiscard]] std::optional<std::int64_t> megabytes_at(std::string_view text);

/// The whole number at the start of the text (after spaces), with or without commas between groups of digits; nothing if there is
/// none from 1 to 2^60.
[[nodiscard]] std::optional<std::int64_t> count_at(std::string_view text);

}  // namespace memprof::inline MEMPROF_ABI::detail
