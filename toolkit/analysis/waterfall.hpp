#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/compared_run.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// @file
/// Several accounts of one training step side by side (an estimate, a run without dispatch, a real one), with every byte by which
/// their peaks differ attributed to an operation.

namespace memprof::inline MEMPROF_ABI {

/// The difference between columns `column` - 1 and `column`, of the bytes in each.
[[nodiscard]] inline std::int64_t change_at(std::span<const std::int64_t> bytes, std::size_t column) {
  return bytes[column] - bytes[column - 1];
}
/// Whether any column has other bytes than the first.
[[nodiscard]] bool differ(std::span<const std::int64_t> bytes);
/// The greatest absolute change.
[[nodiscard]] std::int64_t greatest_change(std::span<const std::int64_t> bytes);

/// An operation. If `paths` is 0, the column has no such operation.
struct waterfall_row {
  std::vector<std::int64_t> bytes;  ///< in each column
  std::string operation;
  std::vector<std::int64_t> blocks;
  std::vector<std::int64_t> paths;  ///< operations of the program in the row: layers, or calls of the same operator
};

/// All operations of a part. Their rows add up to it.
struct waterfall_part {
  std::vector<std::int64_t> bytes;  ///< in each column
  std::string name;
  std::vector<waterfall_row> rows;
};

struct waterfall_category {
  std::vector<std::int64_t> bytes;  ///< in each column
  std::string name;
};

/// At least two accounts of one step. The parts of a column add up to its peak, so the changes of all parts add up to the change
/// of the peak: nothing is left over.
struct waterfall {
  std::vector<compared_run> columns;
  std::vector<waterfall_part> parts;  ///< the one with the greatest change first, then the one with the most bytes
  std::vector<waterfall_category> categories;

  /// The peaks.
  [[nodiscard]] std::vector<std::int64_t> total() const;
};

/// Puts accounts of one step side by side. Categories determine the part of an operation only if all columns have them. Takes
/// time linear in the operations times `rules`. Throws `memprof::error` for fewer than two columns.
[[nodiscard]] waterfall make_waterfall(std::vector<compared_run> columns, const std::vector<part_rule>& rules = {});

}  // namespace memprof::inline MEMPROF_ABI
