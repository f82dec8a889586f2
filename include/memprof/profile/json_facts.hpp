#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/profile/json_types.hpp>
#include <memprof/profile/profile.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

/// @file
/// Tables of facts in JSON: an object with a key per table, whose value is an array of rows; a row is an object with a key per
/// column. Version 1 of the format had three tables, under keys of the profile itself.

namespace memprof::inline MEMPROF_ABI::detail {

/// Stands for a value in the last row of a table; assigned through a pointer to the table.
struct last_fact {};

template <>
[[nodiscard]] inline bool assign_to<last_fact>(void* target, const json_value& value) {
  fact_value& fact = static_cast<fact_table*>(target)->rows.back().back();
  if (value.kind == json_kind::string) {
    fact = std::string{value.text};
    return true;
  }
  std::int64_t integer = 0;
  if (assign_value(integer, value)) {
    fact = integer;
    return true;
  }
  double real = 0;
  const bool is_number = assign_value(real, value);
  fact = real;
  return is_number;
}

template <>
[[nodiscard]] inline std::string json_noun<last_fact>() {
  return "a string, a number or null";
}

[[nodiscard]] inline std::string object_noun() { return "an object"; }
[[nodiscard]] inline std::string array_noun() { return "an array"; }

/// All rows have the columns of the first, in its order.
[[nodiscard]] inline json_target append_value(void* table, std::string_view key) {
  fact_table& rows = *static_cast<fact_table*>(table);
  vector<fact_value>& row = rows.rows.back();
  const std::size_t column = row.size();
  if (rows.rows.size() == 1) {
    if (column == max_fact_columns) return {};
    for (const std::string& earlier : rows.columns) {
      if (earlier == key) return {};
    }
    rows.columns.emplace_back(key);
  } else if (column == rows.columns.size() || rows.columns[column] != key) {
    return {};
  }
  row.emplace_back();
  return {&json_type_of<last_fact>, table};
}

inline constexpr json_type fact_row_type{.expected = &object_noun, .member = &append_value};

[[nodiscard]] inline json_target append_row(void* table) {
  static_cast<fact_table*>(table)->rows.emplace_back();
  return {&fact_row_type, table};
}

inline constexpr json_type fact_rows_type{.expected = &array_noun, .append = &append_row};

/// Adds a table with that name; null if it already exists or there are too many.
[[nodiscard]] inline fact_table* add_table(void* tables, std::string_view name) {
  auto& known = *static_cast<vector<fact_table>*>(tables);
  constexpr std::size_t max_tables = 1024;
  if (known.size() == max_tables) return nullptr;
  for (const fact_table& table : known) {
    if (table.name == name) return nullptr;
  }
  known.push_back({std::string{name}, {}, {}});
  return &known.back();
}

[[nodiscard]] inline json_target append_table(void* tables, std::string_view name) {
  fact_table* const table = add_table(tables, name);
  if (table == nullptr) return {};
  return {&fact_rows_type, table};
}

template <>
inline constexpr json_type json_type_of<vector<fact_table>>{.expected = &object_noun, .member = &append_table};

// --- version 1 --------------------------------------------------------------------------------------------------------

/// The rows of a table, stored under a key of the profile.
template <fact T>
[[nodiscard]] json_target append_former_row(void* tables) {
  auto& known = *static_cast<vector<fact_table>*>(tables);
  if (known.empty() || known.back().name != T::table) (void)add_table(tables, T::table);
  return append_row(&known.back());
}

template <fact T>
inline constexpr json_type former_rows_type{.expected = &array_noun, .append = &append_former_row<T>};

/// A sentence such as "CUDA: there is no CUDA device".
struct former_missing_source {};

template <>
[[nodiscard]] inline bool assign_to<former_missing_source>(void* target, const json_value& value) {
  if (value.kind != json_kind::string) return false;
  const std::size_t colon = value.text.find(": ");
  const bool names_source = colon != std::string_view::npos;
  auto& row = static_cast<fact_table*>(target)->rows.back();
  row.emplace_back(std::string{names_source ? value.text.substr(0, colon) : std::string_view{}});
  row.emplace_back(std::string{names_source ? value.text.substr(colon + 2) : value.text});
  return true;
}

template <>
[[nodiscard]] inline std::string json_noun<former_missing_source>() {
  return "a string";
}

[[nodiscard]] inline json_target append_former_missing_source(void* tables) {
  auto& known = *static_cast<vector<fact_table>*>(tables);
  if (known.empty() || known.back().name != missing_source::table) known.push_back(to_table<missing_source>({}));
  known.back().rows.emplace_back();
  return {&json_type_of<former_missing_source>, &known.back()};
}

inline constexpr json_type former_missing_sources_type{.expected = &array_noun, .append = &append_former_missing_source};

[[nodiscard]] inline void* facts_of(void* source) { return &static_cast<profile*>(source)->facts; }

/// A profile's own fields, and those that only version 1 had.
template <>
inline constexpr auto json_fields_of<profile> = [] {
  constexpr auto own = make_json_fields<profile>(std::make_index_sequence<field_count<profile>>{});
  const std::array former{
      json_field{pytorch_operation::table, false, &former_rows_type<pytorch_operation>, &facts_of},
      json_field{approximated_operation::table, false, &former_rows_type<approximated_operation>, &facts_of},
      json_field{missing_source::table, false, &former_missing_sources_type, &facts_of},
  };
  std::array<json_field, own.size() + former.size()> all{};
  for (std::size_t index = 0; index < all.size(); ++index) {
    all[index] = index < own.size() ? own[index] : former[index - own.size()];
  }
  return all;
}();

/// What else version 1 wrote differently: blocks allocated outside every operation had an owner with this name, and every segment
/// was kept.
inline void update_from_version_1(profile& source) {
  source.segment_count = static_cast<std::int64_t>(source.segments.size());
  for (std::size_t index = 0; index < source.segments.size(); ++index) {
    source.segments[index].number = static_cast<std::int64_t>(index);
  }
  constexpr std::string_view outside = "(no operation)";
  const auto update = [&](live_set& set) {
    for (owned_bytes& row : set.by_operation) {
      if (row.owner == outside) row.owner.clear();
    }
    for (live_block& block : set.largest_blocks) {
      if (block.operation == outside) block.operation.clear();
    }
  };
  for (space_profile& space : source.spaces) {
    update(space.live_at_peak);
    update(space.first_shortfall.held);
    for (out_of_memory_failure& failure : space.out_of_memory) failure.segment_number = failure.segment;
    for (owned_bytes& row : space.first_shortfall.remedy) {
      if (row.owner == outside) row.owner.clear();
    }
    for (segment_usage& row : space.segments) update(row.live_at_peak);
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
