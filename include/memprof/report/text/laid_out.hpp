#pragma once

#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/page.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

/// @file
/// Finished lines of a report, and how short their names may become.

namespace memprof::inline MEMPROF_ABI::detail {

/// The control sequences that `with_emphasis` uses.
inline constexpr std::array<std::string_view, 5> emphasis_codes{"\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[33m", "\x1b[2m"};

[[nodiscard, gnu::cold]] inline std::string with_emphasis(const std::string& text, emphasis how, bool is_colored) {
  if (!is_colored || text.empty()) return text;
  switch (how) {
    case emphasis::none: return text;
    case emphasis::strong: return "\x1b[1m" + text + "\x1b[0m";
    case emphasis::alarm: return "\x1b[1;31m" + text + "\x1b[0m";
    case emphasis::caution: return "\x1b[33m" + text + "\x1b[0m";
    case emphasis::faint: return "\x1b[2m" + text + "\x1b[0m";
  }
  return text;
}

/// A finished line, or part of one: its text with terminal control sequences, and its width in columns.
struct laid_out {
  std::string text;
  std::size_t width = 0;
  emphasis last = emphasis::none;  ///< emphasis of the last addition

  [[gnu::cold]] void add(const std::string& plain, emphasis how, bool is_colored) {
    constexpr std::string_view end = "\x1b[0m";
    if (is_colored && how != emphasis::none && how == last && text.ends_with(end)) {
      text.insert(text.size() - end.size(), plain);
    } else {
      text += with_emphasis(plain, how, is_colored);
    }
    width += display_width(plain);
    last = how;
  }
  [[gnu::cold]] void pad_to(std::size_t columns) {
    if (width >= columns) return;
    text.append(columns - width, ' ');
    width = columns;
  }
};

/// Names are shortened to no less than this, the longest first, while anything else can give way.
inline constexpr std::size_t least_name = 12;

}  // namespace memprof::inline MEMPROF_ABI::detail
