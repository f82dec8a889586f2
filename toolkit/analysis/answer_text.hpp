#pragma once

#include <memprof/config.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/section_text.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The lines that `write(lines)` writes, whole and without marks: what the JSON of an answer repeats of its text.
template <class Write>
[[nodiscard]] std::vector<std::string> plain_lines(Write&& write) {
  marked_text marked;
  write(marked);
  std::vector<std::string> lines;
  for (std::string_view rest = marked.text(); !rest.empty();) {
    std::string line{take_until('\n', rest)};
    std::erase_if(line, is_part_mark);
    lines.push_back(std::move(line));
  }
  return lines;
}

/// The same as one line.
template <class Write>
[[nodiscard]] std::string plain_line(Write&& write) {
  std::string text;
  for (const std::string& line : plain_lines(write)) text += (text.empty() ? "" : "; ") + line;
  return text;
}

/// Caveats about the recording, a line each.
inline void add_remarks(marked_text& lines, const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks) lines.add(on_one_line(remark)).end_line();
}

/// The text of an answer, in the columns of a terminal: paragraphs behind headings, then tables behind empty lines.
class answer_text {
 public:
  /// A line that is too long is broken into at most `max_lines_each`.
  explicit answer_text(const text_options& options, std::size_t max_lines_each = 6)
      : columns_{std::max<std::size_t>(options.columns, 60)}, max_lines_each_{max_lines_each}, is_colored_{options.is_colored} {}

  /// `write(lines)` writes the paragraph; if it writes nothing, there is none.
  template <class Write>
  void add_lines(std::string_view heading, Write&& write) {
    summary_section section;
    section.heading = heading;
    write(section.lines);
    add(section);
  }
  void add(const summary_section& section) { append_section(text_, section, columns_, max_lines_each_, is_colored_); }
  void add_table(const summary_section& section) {
    text_ += '\n';
    add(section);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::size_t columns_;
  std::size_t max_lines_each_;
  bool is_colored_;
  std::string text_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
