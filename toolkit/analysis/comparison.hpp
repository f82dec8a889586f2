#pragma once

#include <memprof/profile/process_account.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/waterfall.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The difference between two runs of a program, divided among its operations, categories and sizes of blocks without a rest.

namespace memprof::inline MEMPROF_ABI {

struct stack_table;

/// What of two runs is compared: the bytes live at the peak of a memory space, at the end, or at the greatest peak of the
/// segments of one name.
enum class compared_moment : std::uint8_t { peak, end, segment };

[[nodiscard]] constexpr std::string_view to_string(compared_moment moment) noexcept {
  constexpr std::string_view names[] = {"peak", "end", "segment"};
  return names[static_cast<std::size_t>(moment)];
}

/// The most bytes that were live in any segment of a name.
struct phase_peak {
  std::string segment;
  std::int64_t bytes = 0;
};

/// What one operation held at the moment.
struct compared_bytes : held_bytes {
  std::int64_t allocated = 0;  ///< over the whole run; -1: unknown
};

/// One run at the moment of the comparison. `held` adds up to `bytes`.
struct compared_run {
  std::string title;
  std::string file;  ///< empty: not read from one
  std::string space;
  run_mode mode = run_mode::normal;
  bool exact = false;
  compared_moment moment = compared_moment::peak;
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::string segment;     ///< in which the moment is; empty: unknown
  std::int64_t step = -1;  ///< of that segment; -1: unknown
  std::string operation;   ///< path of the one that reached the peak; empty: none was open
  std::vector<compared_bytes> held;
  std::vector<owned_bytes> by_category;
  bool has_sizes = false;                  ///< whether `held` has size classes, as from a trace
  std::vector<owned_bytes> spaces;         ///< the peaks of all memory spaces
  std::vector<phase_peak> phases;          ///< of all names, greatest first
  std::int64_t peak = 0;                   ///< of the space over the whole run
  std::int64_t reserved = 0;               ///< the most bytes reserved by its allocator; 0: it reserves none
  std::optional<process_account> process;  ///< as in `waterfall_column`
};

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

/// How two runs differ. The rows of `operations`, of `categories` and, if both runs are traces, of `sizes` each add up to
/// `before.bytes` and `after.bytes`, so their changes add up to the difference. The greatest change comes first.
struct comparison {
  compared_run before;
  compared_run after;
  std::vector<comparison_row> operations;
  std::vector<comparison_row> categories;
  std::vector<comparison_row> sizes;  ///< the owner is the least size of a class, in bytes
  /// Peaks of the memory spaces that are not compared and differ, the greatest change first. A space that a run lacks has 0.
  std::vector<comparison_row> other_spaces;
  number_range runs_before;  ///< `bytes` of all runs of that side
  number_range runs_after;

  [[nodiscard]] std::int64_t change() const noexcept { return after.bytes - before.bytes; }
  /// Whether the moments are in one space, in segments of one name and in one operation.
  [[nodiscard]] bool is_same_moment() const {
    return before.space == after.space && before.segment == after.segment && before.operation == after.operation;
  }
  /// Whether nothing differs: every operation held the same bytes in as many blocks, and all other spaces have the same peaks.
  [[nodiscard]] bool is_equal() const;
  /// Whether every run of one side has more than every run of the other. Only with several runs on a side is it more than chance.
  [[nodiscard]] bool are_ranges_apart() const noexcept {
    return runs_before.greatest < runs_after.least || runs_after.greatest < runs_before.least;
  }
};

/// A run at its peak or end. `stacks` is the table of the same run: `stack_table_of(profile)`, or that of its trace. Throws
/// `memprof::error` if the operations do not add up, for example because they are unknown.
[[nodiscard]] compared_run compared_run_of(std::string title, const profile& source, const space_profile& space,
                                           const stack_table& stacks, compared_moment moment);

/// A run at the peak of the segment called `name` with the most live bytes, of those that the profile keeps. Throws
/// `memprof::error`, naming the segments that there are, if none is called so.
[[nodiscard]] compared_run compared_run_of(std::string title, const profile& source, const space_profile& space,
                                           const stack_table& stacks, std::string_view name);

/// Compares the runs of two sides, at least one each: the rows are those of the run with the median of each side. Takes time
/// linear in the operations. Throws `memprof::error` if a side has no run.
[[nodiscard]] comparison compare_runs(std::vector<compared_run> before, std::vector<compared_run> after);

}  // namespace memprof::inline MEMPROF_ABI
