#pragma once

#include <memprof/report/text/text_format.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// A report before layout: its content, independent of width, colours and format.

namespace memprof::inline MEMPROF_ABI::detail {

enum class emphasis : std::uint8_t { none, strong, alarm, caution, faint };

/// A stretch of a line. Names come from the program and may be of any length: they are shortened if the line is too long.
struct page_part {
  std::string text;
  emphasis how = emphasis::none;
  bool is_name = false;
  bool is_path = false;  ///< a name that may be a path of operations, whose last component counts most
};

/// A line of prose, or a cell of a table.
class page_line {
 public:
  page_line() = default;
  page_line(std::string text) { add(std::move(text)); }
  page_line(const char* text) { add(std::string{text}); }

  [[gnu::cold]] page_line& add(std::string text, emphasis how = emphasis::none) {
    if (!text.empty()) parts_.push_back({std::move(text), how});
    return *this;
  }
  [[gnu::cold]] page_line& add_name(std::string_view name, emphasis how = emphasis::none) {
    parts_.push_back({on_one_line(name), how, true, true});
    return *this;
  }
  /// A command line is shortened like a name, but its slashes are those of files.
  [[gnu::cold]] page_line& add_command(std::string_view command) {
    parts_.push_back({on_one_line(command), emphasis::none, true, false});
    return *this;
  }
  [[gnu::cold]] page_line& append(const page_line& other) {
    parts_.insert(parts_.end(), other.parts_.begin(), other.parts_.end());
    return *this;
  }

  [[nodiscard]] const std::vector<page_part>& parts() const noexcept { return parts_; }
  [[nodiscard]] bool empty() const noexcept { return parts_.empty(); }

 private:
  std::vector<page_part> parts_;
};

struct page_column {
  std::string_view title;
  bool is_right_aligned = false;
};

struct page_table {
  std::vector<page_column> columns;
  std::vector<std::vector<page_line>> rows;  ///< the last cell of a short row may extend past its column
  bool has_titles = false;                   ///< whether the text shows column titles; other formats always do
  std::string first_title;                   ///< of the first column in the text, if it is not the one in `columns`
};

/// One answer.
struct page_section {
  std::string heading;
  std::vector<page_line> lines;
  page_table table;
  std::vector<page_line> further_lines;  ///< below the table
  bool is_wide = false;                  ///< the table starts at the left margin
};

}  // namespace memprof::inline MEMPROF_ABI::detail
