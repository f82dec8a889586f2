#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/compared_run.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The difference between two runs of a program, divided among its operations, categories, callers and sizes of blocks without a
/// rest.

namespace memprof::inline MEMPROF_ABI {

/// What became of an owner's bytes. `moved_in` and `moved_out`: the owner allocates in both runs, but had nothing live at the
/// moment in the first, or in the second.
enum class owner_change : std::uint8_t { equal, more, less, came, went, moved_in, moved_out };

[[nodiscard]] constexpr std::string_view to_string(owner_change change) noexcept {
  constexpr std::string_view names[] = {"equal", "more", "less", "came", "went", "moved_in", "moved_out"};
  return names[static_cast<std::size_t>(change)];
}

/// An owner in both runs.
struct comparison_row {
  std::string owner;
  std::int64_t before = 0;  ///< bytes
  std::int64_t after = 0;
  std::int64_t blocks_before = 0;
  std::int64_t blocks_after = 0;
  std::int64_t operations = 1;  ///< of the program in the row: layers, or calls of the same operator
  owner_change what = owner_change::equal;

  [[nodiscard]] std::int64_t change() const noexcept { return after - before; }
};

/// The same number of several runs.
struct number_range {
  std::int64_t runs = 0;
  std::int64_t least = 0;
  std::int64_t median = 0;  ///< the lower one of two
  std::int64_t greatest = 0;
};

/// How two runs differ. The rows of `operations`, of `categories` and, if both runs are traces, of `sizes` and, if these have
/// stacks, of `callers` each add up to `before.bytes` and `after.bytes`, so their changes add up to the difference. The greatest
/// change comes first.
struct comparison {
  compared_run before;
  compared_run after;
  std::vector<comparison_row> operations;
  std::vector<comparison_row> categories;
  std::vector<comparison_row> sizes;    ///< the owner is the least size of a class, in bytes
  std::vector<comparison_row> callers;  ///< the code that asked; empty: of blocks without a stack, or too small for one each
  /// Peaks of the memory spaces that are not compared and differ, the greatest change first. A space that a run lacks has 0.
  std::vector<comparison_row> other_spaces;
  number_range runs_before;  ///< `bytes` of all runs of that side
  number_range runs_after;

  [[nodiscard]] std::int64_t change() const noexcept { return after.bytes - before.bytes; }
  /// Whether an allocator reserved bytes in one of the runs.
  [[nodiscard]] bool has_reserved() const noexcept { return before.reserved != 0 || after.reserved != 0; }
  /// By how many bytes the most reserved ones differ: by the peaks of the blocks, and by what is reserved above them.
  [[nodiscard]] std::int64_t reserved_change() const noexcept { return after.reserved - before.reserved; }
  [[nodiscard]] std::int64_t reserved_change_of_peak() const noexcept { return after.peak - before.peak; }
  [[nodiscard]] std::int64_t reserved_change_above_peak() const noexcept { return reserved_change() - reserved_change_of_peak(); }
  /// Whether the moments are in one space, in segments of one name and in one operation.
  [[nodiscard]] bool is_same_moment() const {
    return before.space == after.space && before.segment == after.segment && before.operation == after.operation;
  }
  /// Whether the recordings name different devices.
  [[nodiscard]] bool are_devices_different() const {
    return before.device != after.device && !before.device.empty() && !after.device.empty();
  }
  /// Whether nothing differs: every operation held the same bytes in as many blocks, and all other spaces have the same peaks.
  [[nodiscard]] bool is_equal() const;
  /// Whether every run of one side has more than every run of the other. Only with several runs on a side is it more than chance.
  [[nodiscard]] bool are_ranges_apart() const noexcept {
    return runs_before.greatest < runs_after.least || runs_after.greatest < runs_before.least;
  }
};

/// Compares the runs of two sides, at least one each: the rows are those of the run with the median of each side. Takes time
/// linear in the operations. Throws `memprof::error` if a side has no run.
[[nodiscard]] comparison compare_runs(std::vector<compared_run> before, std::vector<compared_run> after);

}  // namespace memprof::inline MEMPROF_ABI
