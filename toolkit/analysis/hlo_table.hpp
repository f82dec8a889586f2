#pragma once

#include <memprof/toolkit/analysis/hlo_answer_json.hpp>
#include <memprof/toolkit/analysis/hlo_attribution.hpp>
#include <memprof/toolkit/analysis/hlo_program_list.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What XLA's programs need, as tables for people and for scripts. Needs protozero.

namespace memprof::inline MEMPROF_ABI {

/// A column: its name in the table, its name in the list of aggregates, its bytes, and how people read them.
struct hlo_column {
  std::string name;
  std::string aggregate;
  std::vector<std::int64_t> bytes;  ///< per worker
  std::string (*text)(double bytes);
};

/// What each worker had at the peak. All columns, or those that the format of existing scripts has.
[[nodiscard]] std::vector<hlo_column> hlo_columns(const std::vector<hlo_worker>& workers, const hlo_class_rules& rules,
                                                  bool all_columns);

/// The table in the format that existing scripts expect: GiB between tabulators, then the least, the mean and the greatest of
/// each column. `workers` must not be empty, here and below.
[[nodiscard]] std::string hlo_table_tsv(const std::vector<hlo_worker>& workers, const std::vector<hlo_column>& columns);

/// The table for people, and at most `max_rows` of the blocks live at the greatest peak; `remedy` says how to see more.
[[nodiscard]] std::string hlo_table_text(const std::vector<hlo_worker>& workers, const std::vector<hlo_column>& columns,
                                         const hlo_class_rules& rules, std::size_t max_rows, std::string_view remedy = {});

/// A row for each program, in MB for people or in bytes between tabulators.
[[nodiscard]] std::string hlo_programs_text(const std::vector<hlo_listed_program>& programs, bool as_tsv);

}  // namespace memprof::inline MEMPROF_ABI
