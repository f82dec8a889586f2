#pragma once

#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/shortened_names.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
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

[[nodiscard]] inline std::string with_emphasis(const std::string& text, emphasis how, bool is_colored) {
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

  void add(const std::string& plain, emphasis how, bool is_colored) {
    constexpr std::string_view end = "\x1b[0m";
    if (is_colored && how != emphasis::none && how == last && text.ends_with(end)) {
      text.insert(text.size() - end.size(), plain);
    } else {
      text += with_emphasis(plain, how, is_colored);
    }
    width += display_width(plain);
    last = how;
  }
  void pad_to(std::size_t columns) {
    if (width >= columns) return;
    text.append(columns - width, ' ');
    width = columns;
  }
};

/// Whether the space between the two separates a number from its unit: no line breaks there.
[[nodiscard]] inline bool precedes_unit(std::string_view before, std::string_view after) {
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
        word_.push_back({shortened(part.text, longest_name_), part.how, true});
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
  void add_to_word(std::string_view text, emphasis how) {
    if (!text.empty()) word_.push_back({std::string{text}, how, false});
  }

  void end_word() {
    if (word_.empty()) return;
    std::size_t width = 0;
    for (const Part& part : word_) width += display_width(part.text);
    for (Part& part : word_) {  // what is attached to a name, such as a colon, stays
      if (width <= columns_ || !part.is_name) continue;
      const std::size_t whole = display_width(part.text);
      part.text = shortened(part.text, whole - std::min(whole - std::min<std::size_t>(whole, 1), width - columns_));
      width -= whole - display_width(part.text);
    }
    if (lines_.empty() || lines_.back().width + 1 + width > columns_) {
      lines_.emplace_back();
    } else {
      const bool goes_on = lines_.back().last == word_.front().how;
      lines_.back().add(" ", goes_on ? word_.front().how : emphasis::none, is_colored_);
    }
    for (const Part& part : word_) {
      lines_.back().add(shortened(part.text, columns_ - std::min(columns_, lines_.back().width)), part.how, is_colored_);
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
/// ten columns.
[[nodiscard]] std::vector<laid_out> broken(const auto& line, std::size_t columns, std::size_t most, bool is_colored) {
  constexpr std::size_t shortest_name = 10;
  std::size_t longest_name = columns;
  for (;;) {
    std::vector<laid_out> lines = line_breaker<page_part>{columns, is_colored, longest_name}(line);
    if (lines.size() <= most) return lines;
    if (longest_name <= shortest_name) {
      constexpr std::size_t room_for_ellipsis = 2;
      lines = line_breaker<page_part>{columns - room_for_ellipsis, is_colored, longest_name}(line);
      lines.resize(most);
      lines.back().add(" \xe2\x80\xa6", emphasis::none, false);
      return lines;
    }
    longest_name = std::max(shortest_name, longest_name * 4 / 5);
  }
}

[[nodiscard]] std::size_t width_of(const auto& cell) {
  std::size_t width = 0;
  for (const page_part& part : cell.parts()) width += display_width(part.text);
  return width;
}

[[nodiscard]] bool has_name(const auto& cell) {
  return std::any_of(cell.parts().begin(), cell.parts().end(), [](const page_part& part) { return part.is_name; });
}

/// A cell in at most `columns`: its names are shortened first, then its end is cut.
[[nodiscard]] laid_out cell_text(const auto& cell, std::size_t columns, bool is_colored) {
  std::size_t excess = width_of(cell);
  excess -= std::min(excess, columns);
  laid_out result;
  for (const page_part& part : cell.parts()) {
    const std::size_t width = display_width(part.text);
    const std::size_t less = part.is_name ? std::min(excess, width - std::min<std::size_t>(width, 1)) : 0;
    excess -= less;
    const std::size_t room = columns - std::min(columns, result.width);
    result.add(shortened(part.text, std::min(width - less, room)), part.how, is_colored);
  }
  return result;
}

/// The title of a column in the text.
[[nodiscard]] std::string_view title_of(const auto& table, std::size_t column) {
  return column == 0 && !table.first_title.empty() ? std::string_view{table.first_title} : table.columns[column].title;
}

/// The widths of the columns: those of their cells, but columns with names shrink until the table fits `columns`.
[[nodiscard]] std::vector<std::size_t> column_widths(const auto& table, std::size_t columns, std::size_t gap) {
  std::vector<std::size_t> widths(table.columns.size());
  std::vector<bool> gives_way(table.columns.size());
  for (std::size_t column = 0; column < widths.size(); ++column) {
    if (table.has_titles) widths[column] = display_width(title_of(table, column));
    for (const std::vector<page_line>& row : table.rows) {
      // The last cell of a short row may extend past its column.
      if (column >= row.size() || (column + 1 == row.size() && row.size() < widths.size())) continue;
      widths[column] = std::max(widths[column], width_of(row[column]));
      gives_way[column] = gives_way[column] || has_name(row[column]);
    }
  }
  constexpr std::size_t narrowest = 8;
  for (;;) {
    std::size_t whole = gap * (widths.size() - 1);
    for (const std::size_t width : widths) whole += width;
    if (whole <= columns) return widths;
    std::size_t widest = widths.size();
    for (std::size_t column = 0; column < widths.size(); ++column) {
      if (gives_way[column] && widths[column] > narrowest && (widest == widths.size() || widths[column] > widths[widest]))
        widest = column;
    }
    if (widest == widths.size()) return widths;
    --widths[widest];
  }
}

inline constexpr std::size_t column_gap = 2;

/// The width of a table whose names are not shortened.
[[nodiscard]] std::size_t full_width(const auto& table) {
  const std::vector<std::size_t> widths = column_widths(table, std::numeric_limits<std::size_t>::max(), column_gap);
  return std::accumulate(widths.begin(), widths.end(), widths.empty() ? 0 : column_gap * (widths.size() - 1));
}

/// The only name in a cell; null if there is none or more than one.
[[nodiscard]] const page_part* only_name(const auto& cell) {
  const auto is_name = [](const page_part& part) { return part.is_name; };
  const std::vector<page_part>& parts = cell.parts();
  return std::count_if(parts.begin(), parts.end(), is_name) == 1 ? &*std::find_if(parts.begin(), parts.end(), is_name) : nullptr;
}

/// Shortens names in cells too wide for their columns so that each still differs from the others with the same room.
void shorten_names(auto& table, const std::vector<std::size_t>& widths) {
  for (std::size_t column = 0; column < widths.size(); ++column) {
    std::map<std::size_t, std::vector<page_line*>> cells_with_room;
    for (std::vector<page_line>& row : table.rows) {
      const bool reaches_beyond = column + 1 == row.size() && row.size() < widths.size();
      if (column >= row.size() || reaches_beyond) continue;
      const page_part* const name = only_name(row[column]);
      if (name == nullptr) continue;
      const std::size_t beside = width_of(row[column]) - display_width(name->text);
      cells_with_room[widths[column] - std::min(widths[column], beside)].push_back(&row[column]);
    }
    for (const auto& [room, cells] : cells_with_room) {
      std::vector<std::string> names;
      for (const page_line* cell : cells) {
        for (const page_part& part : cell->parts()) {
          if (part.is_name) names.push_back(part.text);
        }
      }
      const std::vector<std::string> shown = shortened_apart(names, room);
      for (std::size_t index = 0; index < cells.size(); ++index) {
        page_line shortened_cell;
        for (const page_part& part : cells[index]->parts()) {
          if (part.is_name) {
            shortened_cell.add_name(shown[index], part.how);
          } else {
            shortened_cell.add(part.text, part.how);
          }
        }
        *cells[index] = std::move(shortened_cell);
      }
    }
  }
}

[[nodiscard]] std::vector<laid_out> table_text(auto table, std::size_t columns, bool is_colored) {
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

/// The lines of a section; each paragraph takes at most `max_lines_each`.
[[nodiscard]] std::vector<std::string> section_text(const auto& section, std::size_t columns, std::size_t max_lines_each,
                                                    bool is_colored) {
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
