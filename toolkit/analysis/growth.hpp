#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

/// @file
/// Whether bytes that are read at the same point of every step grow without end.

namespace memprof::inline MEMPROF_ABI {

/// What bytes do over the steps of a run.
enum class growth_kind : std::uint8_t {
  level,       ///< they return to what they were
  levels_off,  ///< they grew, but stopped: a cache that is full, a pool that is warm, state made in the first steps
  unclear,     ///< they grew until the end, but too few times, or not for long enough
  grows,       ///< they still grow at the end of the run
};

[[nodiscard]] constexpr std::string_view to_string(growth_kind kind) noexcept {
  constexpr std::string_view names[] = {"level", "levels_off", "unclear", "grows"};
  return names[static_cast<std::size_t>(kind)];
}

/// What `growth_series` found. Steps count from 0.
struct growth {
  growth_kind kind = growth_kind::level;
  double per_step = 0;          ///< bytes, on average since `since_step`; 0 unless it grows
  std::int64_t since_step = 0;  ///< when the growth began, to within one part of the run
  std::int64_t until_step = 0;  ///< of the last growth, to within one part of the run
  std::int64_t first = 0;       ///< bytes at the first step
  std::int64_t last = 0;        ///< bytes at the last step
};

/// The bytes of one owner at the end of each step, in bounded memory: the run is divided into at most 64 parts with as many steps
/// each, and a part keeps the least and the most bytes at the ends of its steps. Judged by the least, memory that is freed again
/// does not count.
///
/// `judge` looks at what never goes away again: the least of a part and of all later ones. That grows without end if it grew in
/// at least four parts over at least an eighth of the run, the last time in the last two parts or, where growth is rarer, at most
/// two of its intervals before the end, in the second half of that time by at least half as much as in the first, and to more
/// than there ever was before. So a table that doubles when it is full grows; one that fills up, or is emptied from time to time,
/// does not. Where the least bytes of the parts also fall, they must rise over three quarters of the run and by eight times as
/// much as they fall, in parts or in fours of them: noise has no trend.
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
  std::vector<std::int64_t> least_;  ///< one for each part
  std::vector<std::int64_t> most_;
};

}  // namespace memprof::inline MEMPROF_ABI
