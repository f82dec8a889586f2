#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// @file
/// What a source knows that is not memory over time: rows of named tables. They are typed where they are made and where they are
/// read, and opaque in between.

namespace memprof {

/// What the values of a column are.
enum class fact_type : std::uint8_t { integer, real, text };

/// The names of `fact_type`, in the order of its values.
inline constexpr std::array<std::string_view, 3> fact_type_names{"integer", "real", "text"};

/// The name of a type as files spell it.
[[nodiscard]] constexpr std::string_view to_string(fact_type value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < fact_type_names.size() ? fact_type_names[index] : fact_type_names[0];
}

/// One value of a row. The member that its column's type names holds it.
struct fact_value {
  std::int64_t integer = 0;
  double real = 0;
  std::string text{};

  bool operator==(const fact_value&) const = default;
};

struct fact_column {
  std::string name;
  fact_type type = fact_type::text;

  bool operator==(const fact_column&) const = default;
};

struct fact_table {
  std::string name;
  std::vector<fact_column> columns;
  std::vector<std::vector<fact_value>> rows;  ///< each has a value for each column

  bool operator==(const fact_table&) const = default;
};

/// A struct that is a row of a table: `table` is its name, and `columns(row, visit)` calls `visit(name, field)` for each field, all
/// of which are integers, `double` or `std::string`.
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
  T::columns(row, [](std::string_view, auto&) {});
};

namespace detail {

template <class Field>
inline constexpr fact_type fact_type_of = std::is_same_v<Field, std::string>    ? fact_type::text
                                          : std::is_floating_point_v<Field> ? fact_type::real
                                                                            : fact_type::integer;

template <class Field>
void put_fact(fact_value& value, const Field& field) {
  if constexpr (fact_type_of<Field> == fact_type::text) {
    value.text = field;
  } else if constexpr (fact_type_of<Field> == fact_type::real) {
    value.real = field;
  } else {
    value.integer = static_cast<std::int64_t>(field);
  }
}

template <class Field>
void get_fact(const fact_value& value, Field& field) {
  if constexpr (fact_type_of<Field> == fact_type::text) {
    field = value.text;
  } else if constexpr (fact_type_of<Field> == fact_type::real) {
    field = value.real;
  } else {
    field = static_cast<Field>(value.integer);
  }
}

}  // namespace detail

/// The rows as a table.
template <fact T>
[[nodiscard]] fact_table to_table(const std::vector<T>& rows) {
  fact_table table;
  table.name = T::table;
  T model{};
  T::columns(model, [&]<class Field>(std::string_view name, const Field&) {
    table.columns.push_back({std::string{name}, detail::fact_type_of<Field>});
  });
  for (const T& row : rows) {
    std::vector<fact_value>& values = table.rows.emplace_back(table.columns.size());
    std::size_t column = 0;
    T::columns(row, [&](std::string_view, const auto& field) { detail::put_fact(values[column++], field); });
  }
  return table;
}

/// The rows of `T`'s table among `tables`; none if it is not there. Columns are found by name, and one that is missing or of
/// another type leaves its field as it is by default.
template <fact T>
[[nodiscard]] std::vector<T> rows_of(const std::vector<fact_table>& tables) {
  std::vector<T> rows;
  for (const fact_table& table : tables) {
    if (table.name != T::table) continue;
    for (const std::vector<fact_value>& values : table.rows) {
      T::columns(rows.emplace_back(), [&]<class Field>(std::string_view name, Field& field) {
        for (std::size_t column = 0; column < table.columns.size() && column < values.size(); ++column) {
          const fact_column& found = table.columns[column];
          if (found.name == name && found.type == detail::fact_type_of<Field>) detail::get_fact(values[column], field);
        }
      });
    }
  }
  return rows;
}

}  // namespace memprof
