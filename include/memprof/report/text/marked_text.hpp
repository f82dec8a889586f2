#pragma once

#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// A report before layout: its content, independent of width, colours and format. All lines of an answer are one string, not
/// vectors of vectors: a program that prints a report compiles a fraction of the code.

namespace memprof::inline MEMPROF_ABI::detail {

enum class emphasis : std::uint8_t { none, strong, alarm, caution, faint };

/// A stretch of a line. Names come from the program and may be of any length: they are shortened if the line is too long.
struct text_part {
  std::string_view text;
  emphasis how = emphasis::none;
  bool is_name = false;
  bool is_path = false;  ///< a name that may be a path of operations, whose last component counts most
};

/// A part begins with a mark that says what it is: one of 15 control characters, five emphases each for words, names and paths.
/// Words without emphasis need none at the start of a cell. No text contains those characters: `on_one_line` escapes them.
inline constexpr char first_part_mark = 0x0e;
inline constexpr char part_mark_count = 15;

[[nodiscard, gnu::cold]] inline char mark_of(const text_part& part) noexcept {
  return static_cast<char>(first_part_mark + static_cast<char>(part.how) + (part.is_path ? 10 : part.is_name ? 5 : 0));
}

[[nodiscard]] constexpr bool is_part_mark(char letter) noexcept {
  return letter >= first_part_mark && letter < first_part_mark + part_mark_count;
}

/// Lines and, between tabs, cells of a table; the parts of each are added one after the other.
class marked_text {
 public:
  [[gnu::cold]] marked_text& add(const text_part& part) {
    const char mark = mark_of(part);
    if (part.is_name || mark != open_) text_ += mark;
    open_ = mark;
    text_ += part.text;
    return *this;
  }

  /// Words of memprof's own. Those of others are names, or went through `on_one_line`.
  [[gnu::cold]] marked_text& add(std::string_view words, emphasis how = emphasis::none) {
    return words.empty() ? *this : add(text_part{words, how});
  }
  [[gnu::cold]] marked_text& add(const char* words, emphasis how = emphasis::none) { return add(std::string_view{words}, how); }

  [[gnu::cold]] marked_text& add_name(std::string_view name, emphasis how = emphasis::none) {
    return add(text_part{on_one_line(name), how, true, true});
  }
  /// A command line is shortened like a name, but its slashes are those of files.
  [[gnu::cold]] marked_text& add_command(std::string_view command) {
    return add(text_part{on_one_line(command), emphasis::none, true, false});
  }

  [[gnu::cold]] marked_text& add_bytes(std::int64_t bytes, emphasis how = emphasis::none) { return add(short_bytes(bytes), how); }
  /// With all digits in parentheses.
  [[gnu::cold]] marked_text& add_total(std::int64_t bytes, emphasis how = emphasis::none) {
    return add(short_and_exact_bytes(bytes), how);
  }
  [[gnu::cold]] marked_text& add_change(std::int64_t bytes) { return add(signed_short_bytes(bytes)); }
  [[gnu::cold]] marked_text& add_share(std::int64_t part, std::int64_t whole) { return add(short_percent(part, whole)); }
  [[gnu::cold]] marked_text& add_time(std::int64_t time_ns) { return add(short_time(time_ns)); }
  [[gnu::cold]] marked_text& add_count(std::int64_t count) { return add(grouped(count)); }
  [[gnu::cold]] marked_text& add_count(std::int64_t count, const char* one, const char* many) {
    return add_count(count).add(" ").add(count == 1 ? one : many);
  }

  [[gnu::cold]] marked_text& next_cell() { return end('\t'); }
  [[gnu::cold]] marked_text& end_line() { return end('\n'); }

  /// Lines of another text, behind the last one that has ended.
  [[gnu::cold]] marked_text& add_lines(std::string_view lines) {
    text_ += lines;
    return *this;
  }

  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
  [[nodiscard]] std::string_view text() const noexcept { return text_; }

 private:
  marked_text& end(char separator) {
    text_ += separator;
    open_ = first_part_mark;
    return *this;
  }

  std::string text_;
  char open_ = first_part_mark;  ///< the mark of the last part
};

/// Takes the text before the next `separator`, or all of it, from the begin of `rest`, with the separator.
[[nodiscard, gnu::cold]] inline std::string_view take_until(char separator, std::string_view& rest) noexcept {
  const std::size_t size = std::min(rest.find(separator), rest.size());
  const std::string_view taken = rest.substr(0, size);
  rest.remove_prefix(std::min(size + 1, rest.size()));
  return taken;
}

/// The text up to the end of its line `most`.
[[nodiscard, gnu::cold]] inline std::string_view first_lines(std::string_view text, std::size_t most) noexcept {
  std::size_t end = 0;
  for (std::size_t line = 0; line < most && end < text.size(); ++line) end = std::min(text.find('\n', end), text.size() - 1) + 1;
  return text.substr(0, end);
}

/// Takes the first part from the begin of the rest of a line or cell; false if there is none.
[[nodiscard, gnu::cold]] inline bool take_part(std::string_view& rest, text_part& part) noexcept {
  if (rest.empty()) return false;
  part = {};
  if (is_part_mark(rest.front())) {
    const int kind = rest.front() - first_part_mark;
    part = {{}, static_cast<emphasis>(kind % 5), kind >= 5, kind >= 10};
    rest.remove_prefix(1);
  }
  std::size_t size = 0;
  while (size < rest.size() && !is_part_mark(rest[size])) ++size;
  part.text = rest.substr(0, size);
  rest.remove_prefix(size);
  return true;
}

struct summary_table {
  std::string titles;       ///< of the columns, a cell each
  std::string alignment;    ///< of the columns, a letter each: 'l' or 'r'
  bool has_titles = false;  ///< whether the text shows the titles; other formats always do
  marked_text rows;         ///< the last cell of a short row may extend past its column

  [[gnu::cold]] void set_columns(const char* all_titles, const char* all_alignments) {
    titles = all_titles;
    alignment = all_alignments;
  }
};

/// One answer.
struct summary_section {
  std::string_view heading;
  marked_text lines;
  summary_table table;
  marked_text further_lines;  ///< below the table
  bool is_wide = false;       ///< the table starts at the left margin
  bool is_verdict = false;    ///< its text is cut last
};

}  // namespace memprof::inline MEMPROF_ABI::detail
