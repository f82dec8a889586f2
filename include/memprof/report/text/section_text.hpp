#pragma once

#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/table_text.hpp>
#include <memprof/report/text/text_line.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// The column where the lines of a section begin, after its heading.
inline constexpr std::size_t text_margin = 10;

/// Adds lines to those of a section: `margin` columns from the left, and behind the heading if they are the first.
[[gnu::cold]] inline void add_lines(std::string& text, std::string_view lines, std::string_view& heading, std::size_t margin,
                                    bool is_colored) {
  while (!lines.empty()) {
    const std::string_view line = take_until('\n', lines);
    text_line begin{is_colored};
    begin.add(heading, emphasis::strong);
    heading = {};
    if (!line.empty()) begin.pad_to(margin);
    text += begin.text;
    text += line;
    text += '\n';
  }
}

/// Appends the lines of a section, none wider than `columns`; each paragraph takes at most `max_lines_each`.
[[gnu::cold]] inline void append_section(std::string& text, const summary_section& section, std::size_t columns,
                                         std::size_t max_lines_each, bool is_colored) {
  std::string_view heading = section.heading;
  const std::size_t width = columns - text_margin;
  const auto add_paragraphs = [&](std::string_view paragraphs) {
    while (!paragraphs.empty()) {
      const std::string lines = wrap(take_until('\n', paragraphs), width, max_lines_each, is_colored);
      add_lines(text, lines, heading, text_margin, is_colored);
    }
  };
  add_paragraphs(section.lines.text());
  table_layout table{section.table};
  const std::string rows = table.text(section.is_wide ? columns : width, is_colored);
  add_lines(text, rows, heading, section.is_wide ? 0 : text_margin, is_colored);
  add_paragraphs(section.further_lines.text());
}

}  // namespace memprof::inline MEMPROF_ABI::detail
