#include <memprof/config.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/table_text.hpp>
#include <memprof/report/text/text_line.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/format/tables/fact_text.hpp>
#include <memprof/trace/fact_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// A value formatted for people, by the name of its column.
[[nodiscard]] std::string fact_text(std::string_view column, const fact_value& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
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

/// A table of facts with the cells as they are shown, none of which is shortened yet.
struct fact_cells {
  std::vector<std::string> titles;
  std::string alignment;
  std::vector<std::vector<std::string>> rows;  ///< each with a cell for each title
};

[[nodiscard]] fact_cells cells_of(const fact_table& table, std::size_t max_rows, std::size_t longest_title) {
  fact_cells made;
  const std::size_t shown = std::min(max_rows, table.rows.size());
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    made.titles.push_back(shortened(on_one_line(table.columns[column]), longest_title));
    const bool is_text =
        shown != 0 && column < table.rows.front().size() && std::holds_alternative<std::string>(table.rows.front()[column]);
    made.alignment += is_text ? 'l' : 'r';
  }
  for (std::size_t index = 0; index < shown; ++index) {
    std::vector<std::string>& row = made.rows.emplace_back(made.titles.size());
    for (std::size_t column = 0; column < row.size() && column < table.rows[index].size(); ++column) {
      const fact_value& value = table.rows[index][column];
      const std::string text = fact_text(table.columns[column], value);
      marked_text cell;
      // Long numbers are names too, so that they give way on a narrow page.
      const bool is_name = std::holds_alternative<std::string>(value) || display_width(text) > least_name;
      is_name ? cell.add_name(text) : cell.add(text);
      row[column] = cell.text();
    }
  }
  return made;
}

/// The columns of a table of facts beside the first, in blocks that fit `columns` beside it: one block if the page is wide
/// enough. Texts may be shortened, but not below `least_name`.
[[nodiscard]] std::vector<std::vector<std::size_t>> fact_blocks(const fact_cells& whole, std::size_t columns) {
  std::vector<std::size_t> widths(whole.titles.size());
  for (std::size_t column = 0; column < widths.size(); ++column) {
    widths[column] = display_width(whole.titles[column]);
    for (const std::vector<std::string>& row : whole.rows) {
      const cell_measure of = measure(row[column]);
      widths[column] = std::max(widths[column], column == 0 ? std::min(of.width, columns / 3) : of.least_width);
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

/// The first column and those of a block, as a table.
[[nodiscard]] summary_table table_of_block(const fact_cells& whole, const std::vector<std::size_t>& block) {
  summary_table part;
  part.has_titles = true;
  const auto row_of = [&](const std::vector<std::string>& cells) {
    std::string row = cells.front();
    for (const std::size_t column : block) row += '\t' + cells[column];
    return row;
  };
  part.titles = row_of(whole.titles);
  part.alignment = whole.alignment.front();
  for (const std::size_t column : block) part.alignment += whole.alignment[column];
  for (const std::vector<std::string>& row : whole.rows) part.rows.add_lines(row_of(row) + '\n');
  return part;
}

}  // namespace
}  // namespace detail

std::string to_text(const fact_table& table, std::size_t max_rows, const text_options& options) {
  using namespace detail;
  const std::size_t columns = std::max<std::size_t>(options.columns, 60);
  const auto count = static_cast<std::int64_t>(table.rows.size());
  std::string text = with_emphasis(shortened(on_one_line(table.name), columns - 30), emphasis::strong, options.is_colored);
  text += " (" + grouped(count, "row", "rows") + ")\n";
  const fact_cells whole = cells_of(table, max_rows, columns / 2 - column_gap);
  if (!whole.rows.empty() && !whole.titles.empty()) {
    const char* separator = "";
    for (const std::vector<std::size_t>& block : fact_blocks(whole, columns)) {
      const summary_table part = table_of_block(whole, block);
      text += separator + table_layout{part}.text(columns, options.is_colored);
      separator = "\n";
    }
  }
  if (max_rows < table.rows.size())
    text += grouped(count - static_cast<std::int64_t>(max_rows), "further row", "further rows") + '\n';
  return text;
}

}  // namespace memprof::inline MEMPROF_ABI
