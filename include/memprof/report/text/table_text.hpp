#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/laid_out.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/shortened_names.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// Lays tables out for a terminal: no line is wider than the page. Templates, as the tables are built by templates.

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard, gnu::cold]] std::size_t width_of(const auto& cell) {
  std::size_t width = 0;
  for (const page_part& part : cell.parts()) width += display_width(part.text);
  return width;
}

[[nodiscard, gnu::cold]] bool has_name(const auto& cell) {
  for (const page_part& part : cell.parts()) {
    if (part.is_name) return true;
  }
  return false;
}

/// Whether there is anything to read in a cell besides names.
[[nodiscard, gnu::cold]] bool has_words(const auto& cell) {
  for (const page_part& part : cell.parts()) {
    if (!part.is_name && part.text.find_first_not_of(' ') != std::string::npos) return true;
  }
  return false;
}

/// The width of a cell whose names are as short as they may become.
[[nodiscard, gnu::cold]] std::size_t least_width_of(const auto& cell) {
  std::size_t width = 0;
  for (const page_part& part : cell.parts()) {
    const std::size_t whole = display_width(part.text);
    width += part.is_name ? std::min(whole, least_name) : whole;
  }
  return width;
}

/// The columns for the longest names in a cell so that it takes at most `columns`, but not below `least`.
[[nodiscard, gnu::cold]] std::size_t longest_name_within(const auto& cell, std::size_t columns, std::size_t least) {
  std::size_t longest = least;
  for (const page_part& part : cell.parts()) {
    if (part.is_name) longest = std::max(longest, display_width(part.text));
  }
  const auto width_with = [&](std::size_t longest_name) {
    std::size_t width = 0;
    for (const page_part& part : cell.parts()) {
      const std::size_t whole = display_width(part.text);
      width += part.is_name ? std::min(whole, longest_name) : whole;
    }
    return width;
  };
  while (longest > least && width_with(longest) > columns) --longest;
  return longest;
}

/// A cell in at most `columns`: its longest names are shortened first, then its end is cut. Names that are all it has give way.
[[nodiscard, gnu::cold]] laid_out cell_text(const auto& cell, std::size_t columns, bool is_colored) {
  const std::size_t longest = longest_name_within(cell, columns, has_words(cell) ? least_name : 1);
  laid_out result;
  bool has_begun = false;  // with words, so that a name may be left out
  for (const page_part& part : cell.parts()) {
    const std::string text = part.is_name ? shortened_part(part, longest) : part.text;
    const std::size_t room = columns - std::min(columns, result.width);
    if (display_width(text) <= room) {
      result.add(text, part.how, is_colored);
    } else if (part.is_name && !has_begun) {
      result.add(shortened_part(part, room), part.how, is_colored);
      break;
    } else {
      const std::size_t begin = part.is_name || room == 0 ? 0 : bytes_within(text, room - 1);
      if (room > 0) result.add(text.substr(0, begin) + std::string{ellipsis}, part.how, is_colored);
      break;
    }
    has_begun = has_begun || (!part.is_name && part.text.find_first_not_of(' ') != std::string::npos);
  }
  return result;
}

/// The title of a column in the text.
[[nodiscard, gnu::cold]] std::string_view title_of(const auto& table, std::size_t column) {
  return column == 0 && !table.first_title.empty() ? std::string_view{table.first_title} : table.columns[column].title;
}

/// The widths of the columns: those of their cells, but columns with names shrink until the table fits `columns`, the widest
/// first: as long as that takes only names of more than `least_name` columns, then further.
[[nodiscard, gnu::cold]] std::vector<std::size_t> column_widths(const auto& table, std::size_t columns, std::size_t gap) {
  std::vector<std::size_t> widths(table.columns.size());
  std::vector<std::size_t> least(table.columns.size());
  std::vector<bool> gives_way(table.columns.size());
  for (std::size_t column = 0; column < widths.size(); ++column) {
    if (table.has_titles) widths[column] = display_width(title_of(table, column));
    for (const std::vector<page_line>& row : table.rows) {
      // The last cell of a short row may extend past its column.
      if (column >= row.size() || (column + 1 == row.size() && row.size() < widths.size())) continue;
      widths[column] = std::max(widths[column], width_of(row[column]));
      least[column] = std::max(least[column], least_width_of(row[column]));
      gives_way[column] = gives_way[column] || has_name(row[column]);
    }
  }
  constexpr std::size_t narrowest = 8;
  for (;;) {
    std::size_t whole = gap * (widths.size() - 1);
    for (const std::size_t width : widths) whole += width;
    if (whole <= columns) return widths;
    const auto widest_above = [&](const auto& bound_of) {
      std::size_t widest = widths.size();
      for (std::size_t column = 0; column < widths.size(); ++column) {
        if (gives_way[column] && widths[column] > bound_of(column) &&
            (widest == widths.size() || widths[column] > widths[widest]))
          widest = column;
      }
      return widest;
    };
    std::size_t widest = widest_above([&](std::size_t column) { return std::max(narrowest, least[column]); });
    if (widest == widths.size()) widest = widest_above([&](std::size_t) { return narrowest; });
    if (widest == widths.size()) return widths;
    --widths[widest];
  }
}

inline constexpr std::size_t column_gap = 2;

/// The width of a table whose names are not shortened.
[[nodiscard, gnu::cold]] std::size_t full_width(const auto& table) {
  const std::vector<std::size_t> widths = column_widths(table, std::numeric_limits<std::size_t>::max(), column_gap);
  std::size_t full = widths.empty() ? 0 : column_gap * (widths.size() - 1);
  for (const std::size_t width : widths) full += width;
  return full;
}

/// The only name in a cell; null if there is none or more than one.
[[nodiscard, gnu::cold]] const page_part* only_name(const auto& cell) {
  const page_part* only = nullptr;
  for (const page_part& part : cell.parts()) {
    if (!part.is_name) continue;
    if (only != nullptr) return nullptr;
    only = &part;
  }
  return only;
}

/// A cell with a name, and the columns that there are for the name.
struct named_cell {
  page_line* cell;
  std::size_t room;
  std::size_t row;
};

/// Shortens names in cells too wide for their columns so that each still differs from the others with the same room.
[[gnu::cold]] void shorten_names(auto& table, const std::vector<std::size_t>& widths) {
  for (std::size_t column = 0; column < widths.size(); ++column) {
    std::vector<named_cell> cells;
    for (std::size_t index = 0; index < table.rows.size(); ++index) {
      std::vector<page_line>& row = table.rows[index];
      const bool reaches_beyond = column + 1 == row.size() && row.size() < widths.size();
      if (column >= row.size() || reaches_beyond) continue;
      const page_part* const name = only_name(row[column]);
      if (name == nullptr) continue;
      const std::size_t beside = width_of(row[column]) - display_width(name->text);
      const std::size_t room = widths[column] - std::min(widths[column], beside);
      cells.push_back({&row[column], has_words(row[column]) ? std::max(room, least_name) : room, index});
    }
    sort_rows(cells.data(), cells.size(), [](const named_cell& left, const named_cell& right) {
      return left.room != right.room ? left.room < right.room : left.row < right.row;
    });
    for (std::size_t begin = 0, end = 0; begin < cells.size(); begin = end) {
      std::vector<std::string> names;
      for (; end < cells.size() && cells[end].room == cells[begin].room; ++end) {
        names.push_back(only_name(*cells[end].cell)->text);
      }
      const std::vector<std::string> shown = shortened_apart(names, cells[begin].room);
      for (std::size_t index = begin; index < end; ++index) {
        page_line shortened_cell;
        for (const page_part& part : cells[index].cell->parts()) {
          if (part.is_name) {
            shortened_cell.add_name(shown[index - begin], part.how);
          } else {
            shortened_cell.add(part.text, part.how);
          }
        }
        *cells[index].cell = std::move(shortened_cell);
      }
    }
  }
}

[[nodiscard, gnu::cold]] std::vector<laid_out> table_text(auto table, std::size_t columns, bool is_colored) {
  std::vector<laid_out> lines;
  if (table.rows.empty()) return lines;
  constexpr std::size_t gap = column_gap;
  const std::vector<std::size_t> widths = column_widths(table, columns, gap);
  shorten_names(table, widths);
  // On a page too narrow for its numbers, a table loses its last columns.
  std::size_t fitting = 0;
  for (std::size_t end = 0; fitting < widths.size() && end + widths[fitting] <= columns; ++fitting) end += widths[fitting] + gap;
  const auto add_row = [&](const auto& cell_at, std::size_t cells) {
    laid_out& line = lines.emplace_back();
    std::size_t begin = 0;
    for (std::size_t column = 0; column < std::min(cells, fitting); ++column) {
      const bool is_last = column + 1 == cells;
      const std::size_t room = columns - std::min(columns, begin);
      const laid_out cell =
          cell_text(cell_at(column), is_last && cells < widths.size() ? room : std::min(room, widths[column]), is_colored);
      if (table.columns[column].is_right_aligned && !(is_last && cells < widths.size())) {
        line.pad_to(begin + widths[column] - std::min(widths[column], cell.width));
      } else if (cell.width != 0) {
        line.pad_to(begin);
      }
      line.text += cell.text;
      line.width += cell.width;
      begin += widths[column] + gap;
    }
  };
  if (table.has_titles) {
    add_row([&](std::size_t column) { return page_line{}.add(std::string{title_of(table, column)}, emphasis::faint); },
            widths.size());
  }
  for (const std::vector<page_line>& row : table.rows)
    add_row([&](std::size_t column) -> const page_line& { return row[column]; }, row.size());
  return lines;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
