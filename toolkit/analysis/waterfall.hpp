#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// @file
/// Several accounts of one training step side by side (an estimate, a run without dispatch, a real one), with every byte by which
/// their peaks differ attributed to an operation.

namespace memprof::inline MEMPROF_ABI {

struct stack_table;

/// What one operation held in one category at a peak.
struct held_bytes {
  std::vector<std::string> path;  ///< names of the operations, outermost first; empty: outside every operation
  memprof::category category = category::other;
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::int64_t least_size = -1;  ///< as in `stack_row`
};

/// One account of a step: what was live at the peak of a memory space. `held` adds up to `peak`.
struct waterfall_column {
  std::string title;  ///< "estimate", "no dispatch", "measured"
  std::string file;   ///< its file; empty if it was not read from one
  std::string space;
  run_mode mode = run_mode::normal;
  std::int64_t peak = 0;
  std::string segment;          ///< in which the peak was; empty: unknown
  std::string operation;        ///< path of the one that reached the peak; empty: none was open
  bool has_categories = false;  ///< whether `held` has them, as from a trace; a profile has only sums by category
  vector<owned_bytes> by_category;
  std::vector<held_bytes> held;
  /// What the process held, if the blocks of the space were really in it and the capture looked.
  std::optional<process_account> process;
};

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
  std::vector<waterfall_column> columns;
  std::vector<waterfall_part> parts;  ///< the one with the greatest change first, then the one with the most bytes
  std::vector<waterfall_category> categories;

  /// The peaks.
  [[nodiscard]] waterfall_bytes total() const;
};

/// The account that a profile has of a space. `stacks` is the table of the same run: `stack_table_of(profile)`, or that of its
/// trace, which has categories. Throws `memprof::error` if the operations do not add up to the peak, for example because they are
/// unknown.
[[nodiscard]] waterfall_column column_of(std::string title, const profile& source, const space_profile& space,
                                         const stack_table& stacks);

/// Puts accounts of one step side by side. Categories determine the part of an operation only if all columns have them. Takes
/// time linear in the operations times `rules`. Throws `memprof::error` for fewer than two columns.
[[nodiscard]] waterfall make_waterfall(std::vector<waterfall_column> columns, const std::vector<part_rule>& rules = {});

}  // namespace memprof::inline MEMPROF_ABI
