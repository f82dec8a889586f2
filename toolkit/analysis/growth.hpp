#pragma once

#include <memprof/config.hpp>
#include <memprof/ledger/step_ends.hpp>
#include <memprof/profile/growth_rule.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

/// @file
/// Whether bytes that are read at the same point of every step grow without end.

namespace memprof::inline MEMPROF_ABI {

/// What `growth_series` found. Steps count from 0.
struct growth {
  growth_kind kind = growth_kind::level;
  double per_step = 0;          ///< bytes, on average since `since_step`; 0 unless it grows
  std::int64_t since_step = 0;  ///< when the growth began, to within one part of the run
  std::int64_t until_step = 0;  ///< of the last growth, to within one part of the run, whose last step it is
  std::int64_t first = 0;       ///< bytes at the first step
  std::int64_t last = 0;        ///< bytes at the last step
  bool is_after_first = false;  ///< all of it is from the first part of the run to the second
};

/// The bytes of one owner at the end of each step, in bounded memory: the run is divided into at most 64 parts with as many steps
/// each, and a part keeps the least and the most bytes at the ends of its steps. Judged by the least, memory that is freed again
/// does not count. `detail::judge_parts` has the rule, which the profile shares: it does not know the number of steps beforehand,
/// so its parts are up to twice as long.
class growth_series {
 public:
  /// The fewest steps for a verdict.
  static constexpr std::int64_t least_steps = 8;

  /// `steps` is the number of steps in the run.
  explicit growth_series(std::int64_t steps);

  /// The bytes were `bytes` at the ends of all steps before `step` since the last call. Takes constant time on average.
  void add(std::int64_t bytes, std::int64_t step);
  /// After `add` up to the number of steps. With fewer than `least_steps`, `level`.
  [[nodiscard]] growth judge() const;

 private:
  [[nodiscard]] std::size_t part_of(std::int64_t step) const noexcept;
  [[nodiscard]] std::int64_t begin_of(std::size_t part) const noexcept;

  std::int64_t steps_;
  std::int64_t seen_ = 0;  ///< steps added
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  std::vector<detail::part_bytes> parts_;
};

}  // namespace memprof::inline MEMPROF_ABI
