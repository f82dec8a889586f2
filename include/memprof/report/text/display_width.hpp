#pragma once

#include <memprof/detail/utf8.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

/// @file
/// The terminal columns that a text takes, and texts shortened or padded to a number of columns.

namespace memprof::inline MEMPROF_ABI::detail {

struct code_point_range {
  char32_t first;
  char32_t last;
};

/// Characters of no width: combining marks, joiners and variation selectors. Marks of scripts not listed here count as one
/// column, so a line comes out too short rather than too long.
inline constexpr std::array<code_point_range, 16> zero_width_ranges{{{0x300, 0x36f},
                                                                     {0x483, 0x489},
                                                                     {0x591, 0x5bd},
                                                                     {0x610, 0x61a},
                                                                     {0x64b, 0x65f},
                                                                     {0xe31, 0xe31},
                                                                     {0xe34, 0xe3a},
                                                                     {0xe47, 0xe4e},
                                                                     {0x1ab0, 0x1ace},
                                                                     {0x1dc0, 0x1dff},
                                                                     {0x200b, 0x200d},
                                                                     {0x20d0, 0x20f0},
                                                                     {0xfe00, 0xfe0f},
                                                                     {0xfe20, 0xfe2f},
                                                                     {0xfeff, 0xfeff},
                                                                     {0xe0100, 0xe01ef}}};

/// Characters two columns wide: East Asian width W and F (UAX #11); blocks of ideographs and pictographs are taken whole.
inline constexpr std::array<code_point_range, 51> wide_ranges{
    {{0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},  {0x23e9, 0x23ec}, {0x23f0, 0x23f0},   {0x23f3, 0x23f3},
     {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},  {0x267f, 0x267f}, {0x2693, 0x2693},   {0x26a1, 0x26a1},
     {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},  {0x26ce, 0x26ce}, {0x26d4, 0x26d4},   {0x26ea, 0x26ea},
     {0x26f2, 0x26f3},   {0x26f5, 0x26f5},   {0x26fa, 0x26fa},  {0x26fd, 0x26fd}, {0x2705, 0x2705},   {0x270a, 0x270b},
     {0x2728, 0x2728},   {0x274c, 0x274c},   {0x274e, 0x274e},  {0x2753, 0x2755}, {0x2757, 0x2757},   {0x2795, 0x2797},
     {0x27b0, 0x27b0},   {0x27bf, 0x27bf},   {0x2b1b, 0x2b1c},  {0x2b50, 0x2b50}, {0x2b55, 0x2b55},   {0x2e80, 0x303e},
     {0x3041, 0x3247},   {0x3250, 0x4dbf},   {0x4e00, 0xa4cf},  {0xa960, 0xa97c}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},
     {0xfe10, 0xfe19},   {0xfe30, 0xfe6b},   {0xff01, 0xff60},  {0xffe0, 0xffe6}, {0x16fe0, 0x18d08}, {0x1aff0, 0x1b2fb},
     {0x1f18e, 0x1f265}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}}};

[[nodiscard]] constexpr bool is_within(const auto& ranges, char32_t code) noexcept {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code,
                                      [](char32_t value, const code_point_range& range) { return value < range.first; });
  return after != ranges.begin() && code <= (after - 1)->last;
}

[[nodiscard]] constexpr std::size_t columns_of(char32_t code) noexcept {
  if (code < 0x300) return 1;
  if (is_within(zero_width_ranges, code)) return 0;
  return is_within(wide_ranges, code) ? 2 : 1;
}

/// What is kept or left out as a whole where a text is cut: a character, or the escape of one that `on_one_line` wrote.
struct text_unit {
  std::size_t bytes;
  std::size_t columns;
};

[[nodiscard]] constexpr bool is_hex_digit(char letter) noexcept {
  return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
}

[[nodiscard]] constexpr text_unit unit_at(std::string_view text, std::size_t index) noexcept {
  if (text[index] == '\\') {
    constexpr std::size_t escape = std::string_view{"\\x1b"}.size();
    const std::string_view rest = text.substr(index, escape);
    if (rest.size() == escape && rest[1] == 'x' && is_hex_digit(rest[2]) && is_hex_digit(rest[3])) return {escape, escape};
    if (rest.size() > 1 && (rest[1] == 'n' || rest[1] == 't')) return {2, 2};
  }
  const utf8_character character = utf8_at(text, index);
  return {character.size, columns_of(character.code)};
}

/// The columns that a line of UTF-8 without control characters takes. A sequence that a terminal draws as one glyph counts with
/// all its parts, so this errs on the wide side.
[[nodiscard]] constexpr std::size_t display_width(std::string_view text) noexcept {
  std::size_t width = 0;
  for (std::size_t index = 0; index < text.size();) {
    const text_unit unit = unit_at(text, index);
    width += unit.columns;
    index += unit.bytes;
  }
  return width;
}

/// The size in bytes of the longest prefix of `text` that takes at most `columns`, including trailing marks.
[[nodiscard]] constexpr std::size_t bytes_within(std::string_view text, std::size_t columns) noexcept {
  std::size_t index = 0;
  for (std::size_t width = 0; index < text.size();) {
    const text_unit unit = unit_at(text, index);
    width += unit.columns;
    if (width > columns) break;
    index += unit.bytes;
  }
  return index;
}

/// A text wider than `columns` loses its middle to an ellipsis: what distinguishes paths and names is at their ends.
[[nodiscard, gnu::cold]] inline std::string shortened(std::string_view text, std::size_t columns) {
  const std::size_t width = display_width(text);
  if (width <= columns) return std::string{text};
  if (columns == 0) return {};
  const std::size_t begin = bytes_within(text, columns / 2);
  const std::size_t left_out = width - (columns - 1 - display_width(text.substr(0, begin)));
  std::size_t end = bytes_within(text, left_out);
  // Drops a wide character or an escape that would be cut, and any marks of the last character dropped.
  for (std::size_t more = left_out; display_width(text.substr(0, end)) < left_out;) end = bytes_within(text, ++more);
  return std::string{text.substr(0, begin)} + "\xe2\x80\xa6" + std::string{text.substr(end)};
}

/// `text` padded with spaces after or before it to `columns`; if it is wider, its middle is cut.
[[nodiscard, gnu::cold]] inline std::string left_in(std::string_view text, std::size_t columns) {
  std::string result = shortened(text, columns);
  result.append(columns - std::min(columns, display_width(result)), ' ');
  return result;
}
[[nodiscard, gnu::cold]] inline std::string right_in(std::string_view text, std::size_t columns) {
  const std::string result = shortened(text, columns);
  return std::string(columns - std::min(columns, display_width(result)), ' ') + result;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
