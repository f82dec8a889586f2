#pragma once

#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/shortened_names.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// Finished lines of a report: coloured, and of prose wrapped to the columns there are.

namespace memprof::inline MEMPROF_ABI::detail {

/// The control sequences of `emphasis`; the first ends the others.
inline constexpr std::array<std::string_view, 5> emphasis_codes{"\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[33m", "\x1b[2m"};

[[nodiscard, gnu::cold]] inline std::string with_emphasis(std::string_view text, emphasis how, bool is_colored) {
  const bool is_plain = !is_colored || text.empty() || how == emphasis::none;
  std::string result{is_plain ? std::string_view{} : emphasis_codes[static_cast<std::size_t>(how)]};
  result += text;
  if (!is_plain) result += emphasis_codes.front();
  return result;
}

/// A finished line, or part of one: its text with terminal control sequences, and its width in columns.
struct text_line {
  bool is_colored = false;
  std::string text = {};
  std::size_t width = 0;
  emphasis last = emphasis::none;  ///< emphasis of the last addition

  [[gnu::cold]] void add(std::string_view plain, emphasis how) {
    const std::string_view end = emphasis_codes.front();
    if (is_colored && how != emphasis::none && how == last && std::string_view{text}.ends_with(end)) {
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

[[nodiscard, gnu::cold]] inline std::string shortened_part(const text_part& part, std::size_t columns) {
  return part.is_path ? shortened_name(part.text, columns) : shortened(part.text, columns);
}

/// Whether the space between the two separates a number from its unit: no line breaks there.
[[nodiscard, gnu::cold]] inline bool precedes_unit(std::string_view before, std::string_view after) {
  if (before.empty() || before.back() < '0' || before.back() > '9') return false;
  constexpr std::string_view units = " B KiB MiB GiB TiB PiB EiB % ns us ms s min h d of ";
  std::string word{" "};
  word += after.substr(0, after.find_first_of(" ,;:)"));
  word += ' ';
  return units.find(word) != std::string_view::npos;
}

/// Breaks a line of prose at its spaces. Names stay whole but are shortened to `longest_name`.
class line_wrapper {
 public:
  line_wrapper(std::size_t columns, bool is_colored, std::size_t longest_name)
      : columns_(columns), longest_name_(longest_name), line_{is_colored} {}

  /// The lines, each with its line end.
  [[nodiscard, gnu::cold]] std::string operator()(std::string_view line) {
    for (text_part part; take_part(line, part);) {
      if (part.is_name) {
        name_ = shortened_part(part, longest_name_);
        part.text = name_;
        word_.add(part);
      } else {
        add_words(part);
      }
    }
    end_word();
    if (has_line_) end_line();
    return std::move(lines_);
  }

 private:
  [[gnu::cold]] void add_words(const text_part& part) {
    std::string_view rest = part.text;
    std::size_t space = rest.find(' ');
    while (space != std::string_view::npos) {
      if (precedes_unit(rest.substr(0, space), rest.substr(space + 1))) {
        space = rest.find(' ', space + 1);
        continue;
      }
      word_.add(rest.substr(0, space), part.how);
      end_word();
      rest.remove_prefix(space + 1);
      space = rest.find(' ');
    }
    word_.add(rest, part.how);
  }

  [[gnu::cold]] void end_line() {
    lines_ += line_.text;
    lines_ += '\n';
    line_ = {line_.is_colored};
  }

  [[gnu::cold]] void end_word() {
    if (word_.empty()) return;
    std::size_t width = 0;
    std::string_view rest = word_.text();
    for (text_part part; take_part(rest, part);) width += display_width(part.text);
    if (width > columns_) {
      marked_text shorter;  // what is attached to a name, such as a colon, stays
      rest = word_.text();
      for (text_part part; take_part(rest, part); shorter.add(part)) {
        if (width <= columns_ || !part.is_name) continue;
        const std::size_t whole = display_width(part.text);
        name_ = shortened_part(part, whole - std::min(whole - std::min<std::size_t>(whole, 1), width - columns_));
        part.text = name_;
        width -= whole - display_width(name_);
      }
      word_ = std::move(shorter);
    }
    rest = word_.text();
    text_part part;
    bool has_part = take_part(rest, part);
    if (has_line_ && line_.width + 1 + width > columns_) {
      end_line();
    } else if (has_line_) {
      line_.add(" ", line_.last == part.how ? part.how : emphasis::none);
    }
    has_line_ = true;
    for (; has_part; has_part = take_part(rest, part)) {
      line_.add(shortened_part(part, columns_ - std::min(columns_, line_.width)), part.how);
    }
    word_ = {};
  }

  std::size_t columns_;
  std::size_t longest_name_;
  text_line line_;
  bool has_line_ = false;
  marked_text word_;
  std::string name_;  ///< the last one shortened
  std::string lines_;
};

/// A line of prose as at most `most` lines of `columns` columns: names are shortened as far as needed, to no less than
/// `least_name`; then the end is cut.
[[nodiscard, gnu::cold]] inline std::string wrap(std::string_view line, std::size_t columns, std::size_t most, bool is_colored) {
  std::size_t longest_name = columns;
  for (;;) {
    std::string lines = line_wrapper{columns, is_colored, longest_name}(line);
    if (first_lines(lines, most).size() == lines.size()) return lines;
    if (longest_name <= least_name) break;
    longest_name = std::max(least_name, longest_name * 4 / 5);
  }
  constexpr std::string_view cut = " \xe2\x80\xa6";
  constexpr std::size_t width_of_cut = 2;
  const std::string lines = line_wrapper{columns - width_of_cut, is_colored, longest_name}(line);
  std::string result{first_lines(lines, most)};
  result.insert(result.size() - 1, cut);
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
