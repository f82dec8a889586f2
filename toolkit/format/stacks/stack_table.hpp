#pragma once

#include <memprof/profile/operation_path.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/category.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// What one operation itself allocated in one memory space; with categories, in one category; with sizes, in one size class.
/// Unknown values are -1.
struct stack_row {
  std::uint32_t space = 0;      ///< index into `stack_table::spaces`
  std::uint32_t operation = 0;  ///< index into `stack_table::operations`; 0: allocated outside every operation
  memprof::category category = category::other;
  std::int64_t total_bytes = 0;
  std::int64_t total_blocks = 0;
  std::int64_t peak_bytes = 0;  ///< live at the space's peak
  std::int64_t peak_blocks = 0;
  std::int64_t end_bytes = 0;  ///< live at the end
  std::int64_t end_blocks = -1;
  std::int64_t max_bytes = -1;  ///< the most bytes that this row ever had live
  std::int64_t max_blocks = -1;
  std::int64_t lifetime_us = -1;  ///< of all its blocks together, in microseconds; live ones count until the end
  /// A power of two; the blocks have less than twice as many bytes. 0: blocks of 0 bytes.
  std::int64_t least_size = -1;
  std::string caller = {};  ///< who asked for the blocks, from their stacks; empty: unknown
};

/// The columns of a `stack_row` of which most formats show one.
enum class stack_value : std::uint8_t { peak, end, all };

[[nodiscard]] constexpr std::string_view to_string(stack_value value) noexcept {
  constexpr std::string_view names[] = {"peak", "end", "all"};
  return names[static_cast<std::size_t>(value)];
}

/// The bytes of a row in that column.
[[nodiscard]] constexpr std::int64_t bytes_of(const stack_row& row, stack_value value) noexcept {
  return value == stack_value::peak ? row.peak_bytes : value == stack_value::end ? row.end_bytes : row.total_bytes;
}

/// Bytes by memory space and path of operations, for flame graphs. The columns of a space add up to the profile's
/// `cumulative_peak`, `cumulative_current` and `allocations`.
struct stack_table {
  struct space_row {
    std::string name;
    std::int64_t peak_time_ns = 0;
    std::string peak_segment = {};  ///< in which the peak is; empty: unknown
    std::int64_t peak_step = -1;    ///< of that segment, from 0; -1: unknown
  };
  struct operation_row {
    std::uint32_t parent = 0;
    std::string name;
  };

  process_info process;
  std::int64_t begin_unix_ns = 0;
  std::int64_t duration_ns = 0;
  bool has_categories = false;
  bool has_sizes = false;      ///< whether rows have a size class
  bool has_callers = false;    ///< whether rows have a caller
  bool has_lifetimes = false;  ///< whether `end_blocks`, `max_bytes`, `max_blocks` and `lifetime_us` are known
  std::vector<space_row> spaces;
  std::vector<operation_row> operations{operation_row{}};  ///< parents before children; the first is "no operation"
  std::vector<stack_row> rows;

  /// The operations from the outermost to `operation`.
  [[nodiscard]] std::vector<std::uint32_t> path(std::uint32_t operation) const;
};

/// The frame name of operations that a profile has folded together.
inline constexpr std::string_view folded_operations = "(other operations)";

/// The table of a profile, without categories and lifetimes, which need the trace (`stack_fold`). If a peak's segment had not
/// ended, operations beyond `capture_options::owners_per_segment` are one row, `folded_operations`.
[[nodiscard]] stack_table stack_table_of(const profile& source);

/// Fills in the segments and steps of the peaks in the table of a trace, from the trace's profile.
void set_peak_segments(stack_table& table, const profile& of);

}  // namespace memprof::inline MEMPROF_ABI
