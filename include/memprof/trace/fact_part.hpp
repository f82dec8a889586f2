#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/payload.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

/// @file
/// Encoding of facts as records of a trace: docs/trace_format.md.

namespace memprof::inline MEMPROF_ABI {

namespace extend {

/// Consecutive rows of a table of facts, as one record of a trace holds them.
struct fact_part {
  fact_table table;             ///< with these rows only
  std::uint64_t first_row = 0;  ///< index of the first one in the whole table; 0: replaces an earlier table of that name
  std::uint64_t left_out = 0;   ///< rows after these that the record has but that take too much memory
};

}  // namespace extend

namespace detail {

inline void put_row(payload_writer& out, const vector<fact_value>& row) {
  for (const fact_value& value : row) {
    out.number(value.index());
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      out.signed_number(*integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      out.real(*real);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      out.text(*text);
    }
  }
}

/// Reads a value written by `put_row`; false if its type is unknown.
[[nodiscard]] inline bool get_fact(payload_reader& in, fact_value& value) {
  switch (in.number()) {
    case 0: value = in.signed_number(); return true;
    case 1: value = in.real(); return true;
    case 2: value = std::string{in.text()}; return true;
    default: return false;
  }
}

/// Calls `visit(payload)` for the records of a `fitted` table, each with some of its rows. The first replaces the table, the
/// others add to it.
template <class Visitor>
void for_each_part(const fact_table& table, Visitor&& visit) {
  constexpr std::size_t enough = std::size_t{64} * 1024;
  std::size_t row = 0;
  do {
    payload_writer rows;
    const std::size_t first = row;
    while (row < table.rows.size() && rows.bytes().size() < enough) put_row(rows, table.rows[row++]);
    payload_writer out;
    out.text(table.name).number(first).number(table.columns.size());
    for (const std::string& column : table.columns) out.text(column);
    out.number(row - first);
    visit(out.bytes() + rows.bytes());
  } while (row < table.rows.size());
}

/// A `fitted` table as its records, one behind the other: how a table passes from one part of a process to another, which may
/// have other types.
[[nodiscard]] inline std::string encode_facts(const fact_table& table) {
  payload_writer out;
  for_each_part(table, [&](std::string_view record) { out.text(record); });
  return out.bytes();
}

/// About how much memory a row takes.
[[nodiscard]] inline std::size_t bytes_of_row(const vector<fact_value>& row) noexcept {
  constexpr std::size_t block = 16;  // what an allocation costs
  constexpr std::size_t short_text = 15;
  std::size_t bytes = sizeof(vector<fact_value>) + block + row.size() * sizeof(fact_value);
  for (const fact_value& value : row) {
    const auto* const text = std::get_if<std::string>(&value);
    if (text != nullptr && text->size() > short_text) bytes += block + text->size();
  }
  return bytes;
}

[[nodiscard]] inline bool decode_facts(std::string_view payload, fact_part& part) {
  fact_table& table = part.table;
  payload_reader in{payload};
  table.name = in.text();
  part.first_row = in.number();
  // The numbers of columns and rows are bounded by the bytes present, so that false ones cost no memory.
  const std::uint64_t columns = in.number();
  if (columns > max_fact_columns) return false;
  for (std::uint64_t column = 0; column < columns && !in.has_failed(); ++column) {
    table.columns.emplace_back(in.text());
  }
  const std::uint64_t rows = in.number();
  if (table.columns.empty() && rows != 0) return false;
  std::size_t bytes = 0;
  for (std::uint64_t row = 0; row < rows && !in.has_failed(); ++row) {
    if (bytes > max_fact_bytes) {
      part.left_out = rows - row;
      break;
    }
    vector<fact_value>& values = table.rows.emplace_back(table.columns.size());
    for (fact_value& value : values) {
      if (!get_fact(in, value)) return false;
    }
    bytes += bytes_of_row(values);
  }
  return !in.has_failed() && part.first_row + rows >= rows;
}

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
