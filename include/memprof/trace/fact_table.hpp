#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

/// @file
/// What a source knows besides memory over time: rows of named tables, typed where they are made and where they are read, and
/// opaque in between.

namespace memprof::inline MEMPROF_ABI {

/// One value of a row.
using fact_value = std::variant<std::int64_t, double, std::string>;

/// A named table with its rows.
struct fact_table {
  std::string name;
  vector<std::string> columns;
  vector<vector<fact_value>> rows;  ///< each has a value for each column

  bool operator==(const fact_table&) const = default;
};

namespace detail {

/// Limits of a table, so that a row fits into a chunk of a trace.
inline constexpr std::size_t max_fact_columns = 32;
inline constexpr std::size_t max_fact_tables = 1024;                   ///< per trace; the rows of further ones are only counted
inline constexpr std::size_t max_fact_bytes = std::size_t{128} << 20;  ///< about, of all rows of a trace in memory; likewise
inline constexpr std::size_t max_fact_text = 4096;                     ///< bytes of a text value, and of the table's name
inline constexpr std::size_t max_fact_column_name = 256;               ///< bytes

/// Visits the fields of a row. Not a lambda: nvcc takes those in a concept for unsatisfied.
struct field_visitor {
  template <class Field>
  void operator()(std::string_view, Field&) const {}
};

}  // namespace detail

namespace extend {

/// A struct that is a row of a table: `table` is its name, and `columns(row, visit)` calls `visit(name, field)` for each field;
/// every field is an integer, `double` or `std::string`.
///
/// @code
/// struct loaded_library {
///   std::string path;
///   std::int64_t bytes = 0;
///
///   static constexpr std::string_view table = "loaded_libraries";
///   template <class Row, class Visitor>
///   static void columns(Row& row, Visitor&& visit) {
///     visit("path", row.path);
///     visit("bytes", row.bytes);
///   }
/// };
/// @endcode
template <class T>
concept fact = std::is_convertible_v<decltype(T::table), std::string_view> && requires(T& row) {
  T::columns(row, detail::field_visitor{});
};

}  // namespace extend

namespace detail {

/// The alternative of `fact_value` that holds a field of that type.
template <class Field>
using fact_alternative = std::conditional_t<std::is_same_v<Field, std::string>, std::string,
                                            std::conditional_t<std::is_floating_point_v<Field>, double, std::int64_t>>;

/// The rows from `first` to `last` as a table. `Table` is a parameter, here and below, so that units that call none of these do
/// not instantiate its vectors.
template <fact T, std::same_as<fact_table> Table = fact_table>
[[nodiscard]] Table table_of(const T* first, const T* last) {
  Table table;
  table.name = T::table;
  T model{};
  T::columns(model, [&](std::string_view name, const auto&) { table.columns.emplace_back(name); });
  table.rows = vector<vector<fact_value>>(static_cast<std::size_t>(last - first));
  for (vector<fact_value>& values : table.rows) {
    T::columns(*first++, [&]<class Field>(std::string_view, const Field& field) {
      values.emplace_back(static_cast<fact_alternative<Field>>(field));
    });
  }
  return table;
}

/// Fills the fields of a fact from the columns of their names in one row of a table.
struct fact_reader {
  const fact_table& table;
  const vector<fact_value>& row;

  [[gnu::cold]] void operator()(std::string_view name, std::string& field) const { read(name, field); }
  [[gnu::cold]] void operator()(std::string_view name, double& field) const { read(name, field); }
  [[gnu::cold]] void operator()(std::string_view name, std::int64_t& field) const { read(name, field); }
  template <class Field>
  void operator()(std::string_view name, Field& field) const {
    fact_alternative<Field> value = static_cast<fact_alternative<Field>>(field);
    (*this)(name, value);
    field = static_cast<Field>(value);
  }

 private:
  /// From the last column that has that name and holds such a value, if there is one.
  template <class Value>
  [[gnu::cold]] void read(std::string_view name, Value& field) const {
    for (std::size_t column = table.columns.size() < row.size() ? table.columns.size() : row.size(); column-- > 0;) {
      if (table.columns[column] != name) continue;
      if (const Value* const found = std::get_if<Value>(&row[column])) {
        field = *found;
        return;
      }
    }
  }
};

/// Calls `visit` with each row that `rows_of` would return. Unlike it, it makes no vector, whose functions each unit would have
/// to compile for each type of row.
template <fact T, std::same_as<fact_table> Table, class Visitor>
void for_each_fact(const vector<Table>& tables, Visitor&& visit) {
  for (const Table& table : tables) {
    if (table.name != T::table) continue;
    for (const vector<fact_value>& values : table.rows) {
      T row{};
      T::columns(row, fact_reader{table, values});
      visit(row);
    }
  }
}

/// The table with overlong texts cut, and each row filled up with 0 to the number of columns.
[[nodiscard]] inline fact_table fitted(fact_table table) {
  const auto cut = [](std::string& text, std::size_t size) {
    if (text.size() > size) text.resize(size);
  };
  cut(table.name, max_fact_text);
  if (table.columns.size() > max_fact_columns) table.columns.resize(max_fact_columns);
  for (std::string& column : table.columns) cut(column, max_fact_column_name);
  if (table.columns.empty()) table.rows.clear();
  for (vector<fact_value>& row : table.rows) {
    row.resize(table.columns.size());
    for (fact_value& value : row) {
      if (auto* const text = std::get_if<std::string>(&value)) cut(*text, max_fact_text);
    }
  }
  return table;
}

}  // namespace detail

namespace extend {

/// The rows as a table.
template <fact T, std::same_as<fact_table> Table = fact_table>
[[nodiscard]] Table to_table(const vector<T>& rows) {
  return detail::table_of<T, Table>(rows.begin(), rows.end());
}
/// The same for rows that lie one behind the other in a container, such as `vector`.
template <class Rows, std::same_as<fact_table> Table = fact_table>
requires fact<typename Rows::value_type>
[[nodiscard]] Table to_table(const Rows& rows) {
  return detail::table_of<typename Rows::value_type, Table>(rows.data(), rows.data() + rows.size());
}

}  // namespace extend

/// The rows of `T`'s table in `tables`; none if it is absent. Columns are found by name; for one that is missing or has another
/// type, the field keeps its default.
template <extend::fact T, std::same_as<fact_table> Table>
[[nodiscard]] vector<T> rows_of(const vector<Table>& tables) {
  vector<T> rows;
  detail::for_each_fact<T>(tables, [&](T& row) { rows.push_back(std::move(row)); });
  return rows;
}

}  // namespace memprof::inline MEMPROF_ABI
