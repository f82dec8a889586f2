#pragma once

#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/laid_out.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/shortened_names.hpp>
#include <memprof/report/text/table_text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// Lays a report out for a terminal: no line is wider than the page. Templates, like the sections, so that only translation units
/// that print a report compile them.

namespace memprof::inline MEMPROF_ABI::detail {

/// The column where the lines of a section begin, after its heading.
inline constexpr std::size_t page_margin = 10;

/// Whether the space between the two separates a number from its unit: no line breaks there.
[[nodiscard, gnu::cold]] inline bool precedes_unit(std::string_view before, std::string_view after) {
  if (before.empty() || before.back() < '0' || before.back() > '9') return false;
  const std::string_view word = after.substr(0, after.find_first_of(" ,;:)"));
  constexpr std::array<std::string_view, 16> units{"B",  "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "%",
                                                   "ns", "us",  "ms",  "s",   "min", "h",   "d",   "of"};
  return std::find(units.begin(), units.end(), word) != units.end();
}

/// Breaks a line of prose at its spaces. Names stay whole but are shortened to `longest_name`.
template <class Part = page_part>
class line_breaker {
 public:
  line_breaker(std::size_t columns, bool is_colored, std::size_t longest_name)
      : columns_(columns), longest_name_(longest_name), is_colored_(is_colored) {}

  [[nodiscard]] std::vector<laid_out> operator()(const auto& line) {
    for (const Part& part : line.parts()) {
      if (part.is_name) {
        word_.push_back({shortened_part(part, longest_name_), part.how, true, part.is_path});
        continue;
      }
      std::string_view rest = part.text;
      std::size_t space = rest.find(' ');
      while (space != std::string_view::npos) {
        if (precedes_unit(rest.substr(0, space), rest.substr(space + 1))) {
          space = rest.find(' ', space + 1);
          continue;
        }
        add_to_word(rest.substr(0, space), part.how);
        end_word();
        rest.remove_prefix(space + 1);
        space = rest.find(' ');
      }
      add_to_word(rest, part.how);
    }
    end_word();
    return std::move(lines_);
  }

 private:
  [[gnu::cold]] void add_to_word(std::string_view text, emphasis how) {
    if (!text.empty()) word_.push_back({std::string{text}, how});
  }

  [[gnu::cold]] void end_word() {
    if (word_.empty()) return;
    std::size_t width = 0;
    for (const Part& part : word_) width += display_width(part.text);
    for (Part& part : word_) {  // what is attached to a name, such as a colon, stays
      if (width <= columns_ || !part.is_name) continue;
      const std::size_t whole = display_width(part.text);
      part.text = shortened_part(part, whole - std::min(whole - std::min<std::size_t>(whole, 1), width - columns_));
      width -= whole - display_width(part.text);
    }
    if (lines_.empty() || lines_.back().width + 1 + width > columns_) {
      lines_.emplace_back();
    } else {
      const bool goes_on = lines_.back().last == word_.front().how;
      lines_.back().add(" ", goes_on ? word_.front().how : emphasis::none, is_colored_);
    }
    for (const Part& part : word_) {
      const std::size_t room = columns_ - std::min(columns_, lines_.back().width);
      lines_.back().add(shortened_part(part, room), part.how, is_colored_);
    }
    word_.clear();
  }

  std::size_t columns_;
  std::size_t longest_name_;
  bool is_colored_;
  std::vector<Part> word_;
  std::vector<laid_out> lines_;
};

/// A line of prose broken into at most `most` lines of `columns` columns: names are shortened as far as needed, to no less than
/// `least_name`; then the end is cut.
[[nodiscard, gnu::cold]] std::vector<laid_out> broken(const auto& line, std::size_t columns, std::size_t most, bool is_colored) {
  std::size_t longest_name = columns;
  for (;;) {
    std::vector<laid_out> lines = line_breaker<page_part>{columns, is_colored, longest_name}(line);
    if (lines.size() <= most) return lines;
    if (longest_name <= least_name) {
      constexpr std::size_t room_for_ellipsis = 2;
      lines = line_breaker<page_part>{columns - room_for_ellipsis, is_colored, longest_name}(line);
      lines.resize(most);
      lines.back().add(" \xe2\x80\xa6", emphasis::none, false);
      return lines;
    }
    longest_name = std::max(least_name, longest_name * 4 / 5);
  }
}

/// The lines of a section; each paragraph takes at most `max_lines_each`.
[[nodiscard, gnu::cold]] std::vector<std::string> section_text(const auto& section, std::size_t columns,
                                                               std::size_t max_lines_each, bool is_colored) {
  std::vector<std::string> lines;
  const std::size_t width = columns - page_margin;
  const auto add = [&](const std::vector<laid_out>& added, std::size_t margin) {
    for (const laid_out& line : added) {
      laid_out whole;
      if (lines.empty()) whole.add(section.heading, emphasis::strong, is_colored);
      whole.pad_to(line.width == 0 ? 0 : margin);
      lines.push_back(whole.text + line.text);
    }
  };
  for (const page_line& line : section.lines) add(broken(line, width, max_lines_each, is_colored), page_margin);
  if (section.is_wide) {
    add(table_text(section.table, columns, is_colored), 0);
  } else {
    add(table_text(section.table, width, is_colored), page_margin);
  }
  for (const page_line& line : section.further_lines) add(broken(line, width, max_lines_each, is_colored), page_margin);
  return lines;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
