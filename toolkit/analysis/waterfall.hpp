#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/compared_run.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// @file
/// Several accounts of one training step side by side (an estimate, a run without dispatch, a real one), with every byte by which
/// their peaks differ attributed to an operation.

namespace memprof::inline MEMPROF_ABI {

/// Bytes in each column of a waterfall. `change(n)` is the difference between columns n - 1 and n.
struct waterfall_bytes {
  std::vector<std::int64_t> bytes;

  [[nodiscard]] std::int64_t change(std::size_t column) const { return bytes[column] - bytes[column - 1]; }
  [[nodiscard]] bool differs() const;
  /// The greatest absolute change.
  [[nodiscard]] std::int64_t greatest_change() const;
};

/// An operation. If `paths` is 0, the column has no such operation.
struct waterfall_row : waterfall_bytes {
  std::string operation;
  std::vector<std::int64_t> blocks;
  std::vector<std::int64_t> paths;  ///< operations of the program in the row: layers, or calls of the same operator
};

/// All operations of a part. Their rows add up to it.
struct waterfall_part : waterfall_bytes {
  std::string name;
  std::vector<waterfall_row> rows;
};

struct waterfall_category : waterfall_bytes {
  std::string name;
};

/// At least two accounts of one step. The parts of a column add up to its peak, so the changes of all parts add up to the change
/// of the peak: nothing is left over.
struct waterfall {
  std::vector<compared_run> columns;
  std::vector<waterfall_part> parts;  ///< the one with the greatest change first, then the one with the most bytes
  std::vector<waterfall_category> categories;

  /// The peaks.
  [[nodiscard]] waterfall_bytes total() const;
};

/// Puts accounts of one step side by side. Categories determine the part of an operation only if all columns have them. Takes
/// time linear in the operations times `rules`. Throws `memprof::error` for fewer than two columns.
[[nodiscard]] waterfall make_waterfall(std::vector<compared_run> columns, const std::vector<part_rule>& rules = {});

}  // namespace memprof::inline MEMPROF_ABI
