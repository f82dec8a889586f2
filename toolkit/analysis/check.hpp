#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/baseline.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// A gate: whether a run keeps within limits and close to a baseline, and who brought it over.

namespace memprof::inline MEMPROF_ABI {

struct leak_report;

/// What a number belongs to: a memory space, the segments of a name, or an operation.
enum class check_subject : std::uint8_t { space, segment, operation };

[[nodiscard]] constexpr std::string_view to_string(check_subject subject) noexcept {
  constexpr std::string_view names[] = {"space", "segment", "operation"};
  return names[static_cast<std::size_t>(subject)];
}

/// A limit for peaks: the most live bytes of a space or of the segments of a name; or the most that one invocation of an
/// operation added, with the operations in it (`operation_usage::peak`).
struct check_limit {
  check_subject subject = check_subject::space;
  /// Which one; `*` stands for any characters within a part of the name, `**` for any parts. Empty: every memory space.
  std::string name = {};
  std::int64_t at_most = 0;
  std::string file = {};  ///< where the limit was written; empty: in no file
  std::int64_t line = 0;
};

/// By how much a number may exceed the baseline's: the greater of both.
struct check_tolerance {
  std::int64_t bytes = 0;
  double percent = 0;

  /// The greatest number that is tolerated.
  [[nodiscard]] std::int64_t greatest(std::int64_t before) const noexcept;
};

/// Parses "1%", "0.5 %", or a size such as "16MiB". Throws `memprof::error` that shows the notation.
[[nodiscard]] check_tolerance parse_tolerance(std::string_view text);

/// What to check. Without a limit, a growth limit and a baseline there is nothing to check, which is an error.
struct check_request {
  std::string space;  ///< the only one that counts; empty: all
  std::vector<check_limit> limits;
  std::optional<check_limit> growth;  ///< bytes per step, in every space; the name does not count
  const run_baseline* baseline = nullptr;
  std::string baseline_file;
  check_tolerance tolerance;
  std::vector<check_subject> each{check_subject::space};  ///< what is compared with the baseline
  bool any_program = false;                               ///< compare also what `seem_different_programs`
};

/// Who had a part in a number.
struct check_owner {
  std::string operation;        ///< as in `baseline_difference`
  std::int64_t operations = 1;  ///< in the row, such as layers
  std::int64_t bytes = 0;       ///< held; of a growth, per step, rounded up
  std::int64_t change = 0;      ///< since the baseline; of a growth, as `bytes`
  double per_step = 0;          ///< of a growth, in bytes
};

/// Why a number was limited.
enum class check_reason : std::uint8_t { limit, growth, baseline };

[[nodiscard]] constexpr std::string_view to_string(check_reason reason) noexcept {
  constexpr std::string_view names[] = {"limit", "growth", "baseline"};
  return names[static_cast<std::size_t>(reason)];
}

/// One number and its limit.
struct check_condition {
  check_reason reason = check_reason::limit;
  check_subject subject = check_subject::space;
  std::string space;
  std::string name;                 ///< of the segments or the operation; empty: the space itself
  std::int64_t bytes = 0;           ///< of a growth, per step, rounded up
  double per_step = 0;              ///< of a growth, in bytes
  std::int64_t at_most = 0;         ///< with the tolerance
  std::int64_t before = -1;         ///< the baseline's; -1: there is none
  std::int64_t since_step = 0;      ///< of a growth, from 0
  bool owners_are_changes = false;  ///< whether `owners` says what changed since the baseline, and not who held most
  std::vector<check_owner> owners;  ///< at most four, the greatest first; empty: unknown
  std::string file;                 ///< where the limit was written; empty: in no file
  std::int64_t line = 0;

  [[nodiscard]] bool has_passed() const noexcept { return bytes <= at_most; }
  /// By how many bytes it failed; negative: what is left.
  [[nodiscard]] std::int64_t over() const noexcept { return bytes - at_most; }
};

/// The answer.
struct check_report {
  std::string file;  ///< of the run; empty: none
  std::string baseline_file;
  run_mode mode = run_mode::normal;
  bool exact = false;
  std::vector<check_condition> conditions;  ///< at least one: limits as they were given, the baseline, growth
  std::vector<std::string> caveats;         ///< what makes the numbers, or the comparison, less than exact; a sentence each

  [[nodiscard]] std::size_t failures() const noexcept;
  [[nodiscard]] bool has_passed() const noexcept { return failures() == 0; }
};

/// Checks a run. `leaks` is what `find_leaks` found in its trace, and names who grows; without it, growth is judged by the
/// segments that the profile has in full. Linear in the profile. Throws `memprof::error` if there is nothing to check, if the run
/// does not have what a limit names (the nearest is said), if growth cannot be judged, or if run and baseline have no memory
/// space in common, seem to be of different programs without `any_program`, or name different devices and `space` is empty.
[[nodiscard]] check_report check_run(const profile& source, const check_request& request, const leak_report* leaks = nullptr);

}  // namespace memprof::inline MEMPROF_ABI
