#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/fact_table.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>

namespace memprof::inline MEMPROF_ABI::detail {

/// What is kept of the facts in a trace. Rows beyond it are only counted.
struct fact_limits {
  std::size_t tables = max_fact_tables;
  std::size_t bytes = max_fact_bytes;
};
/// For a process's own facts, on their way to a trace.
inline constexpr fact_limits no_fact_limits{std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max()};

/// The tables of a trace, put together from their parts. Rows that are missing, because a part is or because they are beyond the
/// limits, are counted.
class fact_tables {
 public:
  explicit fact_tables(fact_limits limits = {}) noexcept : limits_{limits} {}

  void add(fact_part&& part) {
    std::size_t index = 0;
    while (index < tables_.size() && tables_[index].name != part.table.name) ++index;
    if (index == limits_.tables) {
      add_missing(missing_of_further_tables_, part.first_row, part.left_out, part.table.rows.size());
      return;
    }
    if (index == tables_.size()) {
      tables_.emplace_back();
      states_.emplace_back();
    }
    fact_table& table = tables_[index];
    state& known = states_[index];
    // A part that begins earlier, or has other columns, is of a newer table whose beginning is missing.
    if (part.first_row == 0 || part.first_row < known.next_row || table.columns != part.table.columns) {
      bytes_ -= known.bytes;
      known = {};
      table.name = std::move(part.table.name);
      table.columns = std::move(part.table.columns);
      table.rows.clear();
    }
    add_missing(known.missing, part.first_row - known.next_row, part.left_out);
    known.next_row = part.first_row + part.table.rows.size() + part.left_out;
    append(table, known, std::move(part.table.rows));
  }

  /// In order of first arrival.
  [[nodiscard]] const vector<fact_table>& all() const noexcept { return tables_; }
  [[nodiscard]] vector<fact_table> take() noexcept { return std::move(tables_); }
  /// The allocations that hold them.
  [[nodiscard]] std::array<const void*, 2> memory() const noexcept { return {tables_.data(), states_.data()}; }

  [[nodiscard]] std::uint64_t missing_rows() const noexcept {
    std::uint64_t sum = missing_of_further_tables_;
    for (const state& known : states_) add_missing(sum, known.missing);
    return sum;
  }

 private:
  struct state {
    std::uint64_t next_row = 0;
    std::uint64_t missing = 0;
    std::size_t bytes = 0;
  };

  template <class... Counts>
  static void add_missing(std::uint64_t& sum, Counts... counts) noexcept {
    const auto add = [&](std::uint64_t count) {
      if (__builtin_add_overflow(sum, count, &sum)) sum = std::numeric_limits<std::uint64_t>::max();
    };
    (add(counts), ...);
  }

  void append(fact_table& table, state& known, vector<vector<fact_value>>&& rows) {
    std::size_t kept = 0;
    for (; kept < rows.size(); ++kept) {
      const std::size_t bytes = bytes_of_row(rows[kept]);
      if (bytes > limits_.bytes - std::min(bytes_, limits_.bytes)) break;
      bytes_ += bytes;
      known.bytes += bytes;
    }
    add_missing(known.missing, rows.size() - kept);
    rows.resize(kept);
    if (table.rows.empty()) {
      table.rows = std::move(rows);
    } else {
      for (auto& row : rows) table.rows.push_back(std::move(row));
    }
  }

  fact_limits limits_;
  vector<fact_table> tables_;
  vector<state> states_;   ///< of each table
  std::size_t bytes_ = 0;  ///< of all rows, about
  std::uint64_t missing_of_further_tables_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
