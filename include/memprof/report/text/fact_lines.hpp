#pragma once

#include <memprof/report/text/page.hpp>
#include <memprof/report/text/page_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_options.hpp>
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

[[nodiscard]] inline page_section fact_table_section(const fact_table& table, std::size_t max_rows) {
  page_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  const std::size_t shown = std::min(max_rows, table.rows.size());
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    const bool is_text =
        shown != 0 && column < table.rows.front().size() && std::holds_alternative<std::string>(table.rows.front()[column]);
    section.table.columns.push_back({table.columns[column], !is_text});
  }
  for (std::size_t index = 0; index < shown; ++index) {
    std::vector<page_line>& row = section.table.rows.emplace_back();
    for (std::size_t column = 0; column < table.columns.size() && column < table.rows[index].size(); ++column) {
      row.push_back(fact_text(table.columns[column], table.rows[index][column]));
    }
  }
  return section;
}

}  // namespace detail

/// A table of facts with at most `max_rows` rows, in at most `text_options::columns` columns. The names of its columns give the
/// units of their numbers: "..._ns" are times; "bytes", "..._bytes", "..._memory" and "..._size" are bytes.
[[nodiscard]] inline std::string to_text(const fact_table& table, std::size_t max_rows, const text_options& options = {}) {
  const std::size_t columns = std::max<std::size_t>(options.columns, 60);
  const auto count = static_cast<std::int64_t>(table.rows.size());
  std::string text = detail::with_emphasis(detail::shortened(detail::on_one_line(table.name), columns - 30),
                                           detail::emphasis::strong, options.is_colored);
  text += " (" + detail::grouped(count, "row", "rows") + ")\n";
  for (const std::string& line :
       detail::section_text(detail::fact_table_section(table, max_rows), columns, 1, options.is_colored)) {
    text += line + '\n';
  }
  if (max_rows < table.rows.size()) {
    text += detail::grouped(count - static_cast<std::int64_t>(max_rows), "further row", "further rows") + '\n';
  }
  return text;
}

}  // namespace memprof::inline MEMPROF_ABI
