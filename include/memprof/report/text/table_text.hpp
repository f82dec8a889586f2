#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/shortened_names.hpp>
#include <memprof/report/text/text_line.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// Lays tables out for a terminal: no line is wider than the page.

namespace memprof::inline MEMPROF_ABI::detail {

/// What a layout asks of a cell.
struct cell_measure {
  std::size_t width = 0;
  std::size_t least_width = 0;  ///< if its names are as short as they may become
  std::size_t names = 0;
  text_part last_name;
  bool has_words = false;  ///< anything to read besides names
};

/// With names of at most `longest_name` columns.
[[nodiscard, gnu::cold]] inline cell_measure measure(std::string_view cell, std::size_t longest_name = std::string_view::npos) {
  cell_measure of;
  for (text_part part; take_part(cell, part);) {
    const std::size_t whole = display_width(part.text);
    of.width += part.is_name ? std::min(whole, longest_name) : whole;
    of.least_width += part.is_name ? std::min(whole, least_name) : whole;
    if (!part.is_name) of.has_words = of.has_words || part.text.find_first_not_of(' ') != std::string_view::npos;
    if (!part.is_name) continue;
    ++of.names;
    of.last_name = part;
  }
  return of;
}

/// The columns for the longest names in a cell so that it takes at most `columns`, but not below `least`.
[[nodiscard, gnu::cold]] inline std::size_t longest_name_within(std::string_view cell, std::size_t columns, std::size_t least) {
  std::size_t longest = least;
  std::string_view rest = cell;
  for (text_part part; take_part(rest, part);) {
    if (part.is_name) longest = std::max(longest, display_width(part.text));
  }
  while (longest > least && measure(cell, longest).width > columns) --longest;
  return longest;
}

/// A cell in at most `columns`: its longest names are shortened first, then its end is cut. Names that are all it has give way.
[[nodiscard, gnu::cold]] inline text_line cell_text(std::string_view cell, std::size_t columns, bool is_colored) {
  const std::size_t longest = longest_name_within(cell, columns, measure(cell).has_words ? least_name : 1);
  text_line result{is_colored};
  bool has_begun = false;  // with words, so that a name may be left out
  for (text_part part; take_part(cell, part);) {
    const std::string text = part.is_name ? shortened_part(part, longest) : std::string{part.text};
    const std::size_t room = columns - std::min(columns, result.width);
    if (display_width(text) <= room) {
      result.add(text, part.how);
    } else if (part.is_name && !has_begun) {
      result.add(shortened_part(part, room), part.how);
      break;
    } else {
      const std::size_t begin = part.is_name || room == 0 ? 0 : bytes_within(text, room - 1);
      if (room > 0) result.add(text.substr(0, begin).append(ellipsis), part.how);
      break;
    }
    has_begun = has_begun || (!part.is_name && part.text.find_first_not_of(' ') != std::string_view::npos);
  }
  return result;
}

inline constexpr std::size_t column_gap = 2;

/// A table with its cells by row and column.
class table_layout {
 public:
  explicit table_layout(const summary_table& table)
      : alignment_(table.alignment), has_titles_(table.has_titles), columns_(table.alignment.size()) {
    add_row(table.titles);
    for (std::string_view rest = table.rows.text(); !rest.empty();) add_row(take_until('\n', rest));
  }

  /// Its width if no name is shortened.
  [[nodiscard, gnu::cold]] std::size_t full_width() const {
    const vector<std::size_t> widths = column_widths(std::string_view::npos);
    std::size_t full = widths.empty() ? 0 : column_gap * (widths.size() - 1);
    for (const std::size_t width : widths) full += width;
    return full;
  }

  /// Its lines, each with its line end; nothing if it has no rows.
  [[nodiscard, gnu::cold]] std::string text(std::size_t columns, bool is_colored) {
    std::string lines;
    if (rows() < 2) return lines;
    const vector<std::size_t> widths = column_widths(columns);
    for (std::size_t column = 0; column < columns_; ++column) shorten_names(column, widths[column]);
    // On a page too narrow for its numbers, a table loses its last columns.
    std::size_t fitting = 0;
    for (std::size_t end = 0; fitting < columns_ && end + widths[fitting] <= columns; ++fitting)
      end += widths[fitting] + column_gap;
    for (std::size_t row = has_titles_ ? 0 : 1; row < rows(); ++row) {
      text_line line{is_colored};
      std::size_t begin = 0;
      for (std::size_t column = 0; column < std::min(counts_[row], fitting); ++column) {
        const bool reaches_on = reaches_beyond(row, column);
        const std::size_t room = columns - std::min(columns, begin);
        const text_line cell = cell_text(cell_at(row, column), reaches_on ? room : std::min(room, widths[column]), is_colored);
        if (alignment_[column] == 'r' && !reaches_on) {
          line.pad_to(begin + widths[column] - std::min(widths[column], cell.width));
        } else if (cell.width != 0) {
          line.pad_to(begin);
        }
        line.text += cell.text;
        line.width += cell.width;
        begin += widths[column] + column_gap;
      }
      lines += line.text;
      lines += '\n';
    }
    return lines;
  }

 private:
  [[gnu::cold]] void add_row(std::string_view row) {
    counts_.push_back(static_cast<std::size_t>(std::count(row.begin(), row.end(), '\t')) + 1);
    for (std::size_t column = 0; column < columns_; ++column) {
      const std::string_view cell = take_until('\t', row);
      if (rows() == 1) {
        cells_.emplace_back(marked_text{}.add(cell, emphasis::faint).text());
      } else {
        cells_.emplace_back(cell);
      }
    }
  }

  /// The titles are the first row.
  [[nodiscard]] std::size_t rows() const noexcept { return counts_.size(); }
  [[nodiscard]] const std::string& cell_at(std::size_t row, std::size_t column) const { return cells_[row * columns_ + column]; }
  /// The last cell of a short row may extend past its column.
  [[nodiscard]] bool reaches_beyond(std::size_t row, std::size_t column) const {
    return column + 1 == counts_[row] && counts_[row] < columns_;
  }
  [[nodiscard]] bool is_in_column(std::size_t row, std::size_t column) const {
    return column < counts_[row] && !reaches_beyond(row, column);
  }

  /// The widths of the columns: those of their cells, but columns with names shrink until the table fits `columns`, the widest
  /// first: as long as that takes only names of more than `least_name` columns, then further.
  [[nodiscard, gnu::cold]] vector<std::size_t> column_widths(std::size_t columns) const {
    constexpr std::size_t narrowest = 8;
    constexpr std::size_t stays = std::string_view::npos;
    vector<std::size_t> widths(columns_);
    vector<std::size_t> least(columns_, stays);  // as long as other columns can give way
    for (std::size_t column = 0; column < columns_; ++column) {
      if (has_titles_) widths[column] = measure(cell_at(0, column)).width;
      std::size_t least_width = narrowest;
      for (std::size_t row = 1; row < rows(); ++row) {
        if (!is_in_column(row, column)) continue;
        const cell_measure of = measure(cell_at(row, column));
        widths[column] = std::max(widths[column], of.width);
        least_width = std::max(least_width, of.least_width);
        if (of.names != 0) least[column] = narrowest;
      }
      if (least[column] != stays) least[column] = least_width;
    }
    for (;;) {
      std::size_t whole = column_gap * (columns_ - 1);
      for (const std::size_t width : widths) whole += width;
      if (whole <= columns) return widths;
      std::size_t widest = columns_;
      for (std::size_t column = 0; column < columns_; ++column) {
        if (least[column] != stays && widths[column] > least[column] && (widest == columns_ || widths[column] > widths[widest]))
          widest = column;
      }
      if (widest != columns_) {
        --widths[widest];
        continue;
      }
      bool gives_way = false;
      for (std::size_t& bound : least) {
        gives_way = gives_way || (bound != stays && bound > narrowest);
        if (bound != stays) bound = narrowest;
      }
      if (!gives_way) return widths;
    }
  }

  /// Shortens the names in cells too wide for a column so that each still differs from the others with the same room.
  [[gnu::cold]] void shorten_names(std::size_t column, std::size_t width) {
    vector<std::size_t> rooms(rows());  // for the only name in each cell; 0: it has none
    std::size_t most = 0;
    for (std::size_t row = 1; row < rows(); ++row) {
      if (!is_in_column(row, column)) continue;
      const cell_measure of = measure(cell_at(row, column));
      if (of.names != 1) continue;
      const std::size_t room = width - std::min(width, of.width - display_width(of.last_name.text));
      rooms[row] = of.has_words ? std::max(room, least_name) : room;
      most = std::max(most, rooms[row]);
    }
    for (std::size_t room = 1; room <= most; ++room) {
      vector<std::string> names;
      for (std::size_t row = 1; row < rows(); ++row) {
        if (rooms[row] == room) names.emplace_back(measure(cell_at(row, column)).last_name.text);
      }
      if (names.empty()) continue;
      const vector<std::string> shown = shortened_apart(names, room);
      std::size_t next = 0;
      for (std::size_t row = 1; row < rows(); ++row) {
        if (rooms[row] == room) rename(cells_[row * columns_ + column], shown[next++]);
      }
    }
  }

  /// Replaces the only name in a cell.
  [[gnu::cold]] static void rename(std::string& cell, std::string_view name) {
    marked_text renamed;
    std::string_view rest = cell;
    for (text_part part; take_part(rest, part);) {
      if (part.is_name) {
        renamed.add_name(name, part.how);
      } else {
        renamed.add(part);
      }
    }
    cell = renamed.text();
  }

  std::string_view alignment_;
  bool has_titles_;
  std::size_t columns_;
  vector<std::string> cells_;   ///< `columns_` for each row
  vector<std::size_t> counts_;  ///< of the cells in each row
};

}  // namespace memprof::inline MEMPROF_ABI::detail
