#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/reflect.hpp>
#include <memprof/trace/field_names.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The few numbers of a run that later runs are checked against, small enough to be committed beside the program.

namespace memprof::inline MEMPROF_ABI {

/// One operation at the peak of a segment; or several layers that held as much, as in `baseline_operation`.
struct baseline_owner {
  std::string operation;        ///< its path; empty: outside every operation
  std::int64_t operations = 1;  ///< how many the row stands for
  std::int64_t held_bytes = 0;  ///< what each of them itself had live
};

/// The most bytes that were live in any segment of a name. `held_bytes` of `owners`, each times its number, and `other_bytes` sum
/// to `peak_bytes`; without owners it is unknown who held it.
struct baseline_segment {
  std::string segment;
  std::int64_t peak_bytes = 0;
  vector<baseline_owner> owners{};
  std::int64_t other_bytes = 0;
};

/// One operation; or several that differ only in a number, such as the layers of a model, and have the same numbers: then
/// `operation` has `*` for it.
struct baseline_operation {
  std::string operation;        ///< its path; empty: outside every operation
  std::int64_t operations = 1;  ///< how many the row stands for
  std::int64_t held_bytes = 0;  ///< what each of them itself had live at the space's peak
  std::int64_t peak_bytes = 0;  ///< `operation_usage::peak` of each

  /// What all of them held; at most 2^63-1.
  [[nodiscard]] std::int64_t all_held() const noexcept {
    std::int64_t bytes = 0;
    return __builtin_mul_overflow(held_bytes, operations, &bytes) ? INT64_MAX : bytes;
  }
};

/// One memory space. `held_bytes` of `operations`, each times its number, and `other_bytes` sum to `peak_bytes`.
struct baseline_space {
  std::string space;
  std::int64_t peak_bytes = 0;
  std::int64_t end_bytes = 0;         ///< live at the end
  std::string segment;                ///< in which the peak was; empty: unknown
  std::string operation;              ///< that reached it; empty: none was open
  vector<baseline_segment> segments;  ///< greatest peak first
  std::int64_t other_segments = 0;    ///< number of those left out
  vector<baseline_operation> operations;
  std::int64_t other_operations = 0;  ///< number of those left out
  std::int64_t other_bytes = 0;       ///< what these held at the peak
};

/// A run in numbers.
struct run_baseline {
  run_mode mode = run_mode::normal;
  bool exact = false;  ///< as in `profile`
  std::string device;  ///< as in `profile`
  vector<baseline_space> spaces;
  std::string program{};  ///< the name of its file, or of the script that Python ran; empty: unknown

  /// The space with that name, or a null pointer.
  [[nodiscard]] const baseline_space* find_space(std::string_view name) const noexcept;
};

template <>
inline constexpr detail::name_list detail::field_names<baseline_owner>{"operation", "operations", "held_bytes"};
template <>
inline constexpr detail::name_list detail::nullable_fields<baseline_owner>{"operation"};
template <>
inline constexpr detail::name_list detail::field_names<baseline_segment>{"segment", "peak_bytes", "owners", "other_bytes"};
template <>
inline constexpr detail::name_list detail::later_fields<baseline_segment>{"owners", "other_bytes"};
template <>
inline constexpr detail::name_list detail::field_names<baseline_operation>{"operation", "operations", "held_bytes", "peak_bytes"};
template <>
inline constexpr detail::name_list detail::nullable_fields<baseline_operation>{"operation"};
template <>
inline constexpr detail::name_list detail::field_names<baseline_space>{
    "space",    "peak_bytes",     "end_bytes",  "segment",          "operation",
    "segments", "other_segments", "operations", "other_operations", "other_bytes"};
template <>
inline constexpr detail::name_list detail::nullable_fields<baseline_space>{"segment", "operation"};
template <>
inline constexpr detail::name_list detail::field_names<run_baseline>{"mode", "exact", "device", "spaces", "program"};
template <>
inline constexpr detail::name_list detail::nullable_fields<run_baseline>{"device", "program"};
template <>
inline constexpr detail::name_list detail::later_fields<run_baseline>{"program"};

/// Rows of a kind that a committed baseline has for a memory space. Equal layers are one row, so models of any depth fit.
inline constexpr std::size_t most_baseline_rows = 64;

/// Rows that it has for the owners of a segment.
inline constexpr std::size_t most_baseline_owners = 16;

/// All numbers of a run: every segment's name and every operation has a row. Linear in the profile.
[[nodiscard]] run_baseline baseline_of(const profile& source);

/// What to commit: equal layers in one row, and of each kind at most `most_rows` rows, those with the most bytes.
[[nodiscard]] run_baseline reduced(const run_baseline& all, std::size_t most_rows = most_baseline_rows);

/// Whether two runs seem to be of different programs: no segment's name is in both, and neither is any operation, or only one
/// though each has others; layers count by their family. If a run has no names, whether their programs' files have different
/// names.
[[nodiscard]] bool seem_different_programs(const run_baseline& left, const run_baseline& right);

/// Why they do, as the end of a sentence about both: "have no segment and hardly an operation in common".
[[nodiscard]] std::string why_different(const run_baseline& left, const run_baseline& right);

/// What one operation held at the peaks of two runs.
struct baseline_difference {
  std::string operation;  ///< its path; empty: outside every operation; or `folded_operations`, those that a baseline left out
  std::int64_t operations = 1;
  std::int64_t before = 0;
  std::int64_t after = 0;

  [[nodiscard]] std::int64_t change() const noexcept { return after - before; }  // both at least 0
};

/// Whose bytes make up the difference between the peaks: the changes sum to it. The greatest growth first; layers that changed
/// alike are one row, and operations without a change have none. `before` may be reduced; `after` may not. An operation that is
/// in neither kind of row of a reduced `before` counts as new, if it holds more than all that were left out.
[[nodiscard]] std::vector<baseline_difference> growth_since(const baseline_space& before, const baseline_space& after);

/// The same for the peaks of segments of a name.
[[nodiscard]] std::vector<baseline_difference> growth_since(const baseline_segment& before, const baseline_segment& after);

}  // namespace memprof::inline MEMPROF_ABI
