#pragma once

#include <memprof/trace/fact_table.hpp>

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The table with overlong texts cut, and each row filled up with 0 to the number of columns.
[[nodiscard]] inline fact_table fitted(fact_table table) {
  const auto cut = [](std::string& text, std::size_t size) {
    if (text.size() > size) text.resize(size);
  };
  cut(table.name, max_fact_text);
  if (table.columns.size() > max_fact_columns) table.columns.resize(max_fact_columns);
  for (std::string& column : table.columns) cut(column, max_fact_column_name);
  if (table.columns.empty()) table.rows.clear();
  for (std::vector<fact_value>& row : table.rows) {
    row.resize(table.columns.size());
    for (fact_value& value : row) {
      if (auto* const text = std::get_if<std::string>(&value)) cut(*text, max_fact_text);
    }
  }
  return table;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
