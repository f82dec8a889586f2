#pragma once

#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/laid_out.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/shortened_names.hpp>
#include <memprof/report/text/table_text.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/trace/fact_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// A value formatted for people. The name of its column gives the unit: "..._ns" are times; "bytes", "..._bytes", "..._memory"
/// and "..._size" are bytes; "address" is an address.
[[nodiscard]] inline page_line fact_text(std::string_view column, const fact_value& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) return page_line{}.add_name(*text);
  if (const auto* const number = std::get_if<double>(&value)) {
    const double size = *number < 0 ? -*number : *number;
    return decimal(*number, size < 1000 ? 3 : 0);
  }
  const std::int64_t number = std::get<std::int64_t>(value);
  if (column.ends_with("_ns")) return short_time(number);
  if (column == "bytes" || column.ends_with("_bytes") || column.ends_with("_memory") || column.ends_with("_size"))
    return short_bytes(number);
  if (column == "address") return address_text(static_cast<std::uint64_t>(number));
  return grouped(number);
}

/// The columns of a table of facts beside the first, in blocks that fit `columns` beside it: one block if the page is wide
/// enough. Texts may be shortened, but not below `least_name`.
[[nodiscard]] inline std::vector<std::vector<std::size_t>> fact_blocks(const page_table& whole, std::size_t columns) {
  std::vector<std::size_t> widths(whole.columns.size());
  for (std::size_t column = 0; column < widths.size(); ++column) {
    widths[column] = display_width(whole.columns[column].title);
    for (const std::vector<page_line>& row : whole.rows) {
      const std::size_t least = column == 0 ? std::min(width_of(row[column]), columns / 3) : least_width_of(row[column]);
      widths[column] = std::max(widths[column], least);
    }
  }
  std::vector<std::vector<std::size_t>> blocks(1);
  std::size_t end = widths.empty() ? 0 : widths.front();
  for (std::size_t column = 1; column < widths.size(); ++column) {
    if (end + column_gap + widths[column] > columns && !blocks.back().empty()) {
      blocks.emplace_back();
      end = widths.front();
    }
    blocks.back().push_back(column);
    end += column_gap + widths[column];
  }
  return blocks;
}

[[nodiscard]] inline page_table fact_page_table(const fact_table& table, const std::vector<std::string>& titles,
                                                std::size_t max_rows) {
  page_table made;
  made.has_titles = true;
  const std::size_t shown = std::min(max_rows, table.rows.size());
  for (std::size_t column = 0; column < titles.size(); ++column) {
    const bool is_text =
        shown != 0 && column < table.rows.front().size() && std::holds_alternative<std::string>(table.rows.front()[column]);
    made.columns.push_back({titles[column], !is_text});
  }
  for (std::size_t index = 0; index < shown; ++index) {
    std::vector<page_line>& row = made.rows.emplace_back();
    for (std::size_t column = 0; column < titles.size() && column < table.rows[index].size(); ++column) {
      row.push_back(fact_text(table.columns[column], table.rows[index][column]));
      // As a name, which gives way on a narrow page.
      if (width_of(row.back()) > least_name && !has_name(row.back()))
        row.back() = page_line{}.add_name(row.back().parts().front().text);
    }
    row.resize(titles.size());
  }
  return made;
}

/// The lines of a table of facts: below each other in blocks of columns, each with the first, if they do not fit side by side.
[[nodiscard]] inline std::vector<std::string> fact_table_text(const fact_table& table, std::size_t max_rows, std::size_t columns,
                                                              bool is_colored) {
  std::vector<std::string> titles;
  for (const std::string& title : table.columns) titles.push_back(shortened(on_one_line(title), columns / 2 - column_gap));
  const page_table whole = fact_page_table(table, titles, max_rows);
  std::vector<std::string> lines;
  if (whole.rows.empty() || whole.columns.empty()) return lines;
  for (std::vector<std::size_t>& block : fact_blocks(whole, columns)) {
    block.insert(block.begin(), 0);
    page_table part;
    part.has_titles = true;
    for (const std::size_t column : block) part.columns.push_back(whole.columns[column]);
    for (const std::vector<page_line>& row : whole.rows) {
      std::vector<page_line>& cells = part.rows.emplace_back();
      for (const std::size_t column : block) cells.push_back(row[column]);
    }
    if (!lines.empty()) lines.emplace_back();
    for (laid_out& line : table_text(std::move(part), columns, is_colored)) lines.push_back(std::move(line.text));
  }
  return lines;
}

}  // namespace detail

/// A table of facts with at most `max_rows` rows, in at most `text_options::columns` columns; one with more columns of its own is
/// divided into several, one below the other. The names of its columns give the units of their numbers: "..._ns" are times;
/// "bytes", "..._bytes", "..._memory" and "..._size" are bytes.
[[nodiscard]] inline std::string to_text(const fact_table& table, std::size_t max_rows, const text_options& options = {}) {
  const std::size_t columns = std::max<std::size_t>(options.columns, 60);
  const auto count = static_cast<std::int64_t>(table.rows.size());
  std::string text = detail::with_emphasis(detail::shortened(detail::on_one_line(table.name), columns - 30),
                                           detail::emphasis::strong, options.is_colored);
  text += " (" + detail::grouped(count, "row", "rows") + ")\n";
  for (const std::string& line : detail::fact_table_text(table, max_rows, columns, options.is_colored)) text += line + '\n';
  if (max_rows < table.rows.size()) {
    text += detail::grouped(count - static_cast<std::int64_t>(max_rows), "further row", "further rows") + '\n';
  }
  return text;
}

}  // namespace memprof::inline MEMPROF_ABI
