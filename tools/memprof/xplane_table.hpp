#pragma once

#include <memprof/toolkit/analysis/hlo_answer_json.hpp>
#include <memprof/toolkit/analysis/hlo_attribution.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// @file
/// The tables that `memprof xplane` prints.

namespace memprof_tool {

/// A column: its name in the table, its name in the list of aggregates, its bytes, and how people read them.
struct xplane_column {
  std::string name;
  std::string aggregate;
  std::vector<std::int64_t> bytes;  ///< per worker
  std::string (*text)(double bytes);
};

/// "12.34", without a unit.
[[nodiscard]] std::string mebibytes(double bytes);
/// With a unit: memory of threads is often less than a hundredth of a mebibyte.
[[nodiscard]] std::string few_bytes(double bytes);

/// What each worker had at the peak. All columns, or those that the format of existing scripts has.
[[nodiscard]] std::vector<xplane_column> columns_of(const std::vector<memprof::hlo_worker>& workers,
                                                    const memprof::hlo_class_rules& rules, bool all_columns);

/// Prints the table in the format that existing scripts expect.
void print_tsv(const std::vector<memprof::hlo_worker>& workers, const std::vector<xplane_column>& columns);

/// Prints the table for people, and at most `max_rows` of the blocks live at the greatest peak.
void print_text(const std::vector<memprof::hlo_worker>& workers, const std::vector<xplane_column>& columns,
                const memprof::hlo_class_rules& rules, std::size_t max_rows);

/// Prints rows of cells, the first column left-aligned and the others right-aligned.
void print_aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace memprof_tool
