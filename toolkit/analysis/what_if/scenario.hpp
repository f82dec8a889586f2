#pragma once

#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/toolkit/analysis/what_if.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// A run with a change: every block's size, and when it is live.

namespace memprof::inline MEMPROF_ABI::detail {

/// A point of a run's time: an event in the upper half; in the lower half, its place among what happens just before that event,
/// at it, and just after it.
using run_point = std::uint64_t;

inline constexpr run_point never = ~run_point{0};

/// The most that sizes may add up to: some room is left below what 63 bits hold.
inline constexpr double most_bytes = 9e18;

[[nodiscard]] constexpr run_point at_event(event_number event) noexcept {
  return run_point{event} << 32U | std::uint32_t{1} << 31U;
}
/// `nth`, below 2^31, orders what happens there.
[[nodiscard]] constexpr run_point before_event(event_number event, std::uint32_t nth) noexcept {
  return run_point{event} << 32U | nth;
}
[[nodiscard]] constexpr run_point after_event(event_number event) noexcept { return at_event(event) + 1; }
[[nodiscard]] constexpr event_number event_of(run_point at) noexcept { return static_cast<event_number>(at >> 32U); }
[[nodiscard]] constexpr bool is_before_event(run_point at) noexcept { return (at >> 31U & 1U) == 0; }

/// From when to when a block is live.
struct lifetime {
  run_point begin = 0;
  run_point end = never;
  std::uint32_t block = 0;
};

struct scenario {
  std::vector<std::int64_t> bytes;  ///< of each block of the run
  std::vector<run_point> ends;      ///< of each block's first life; 0: it was never allocated
  std::vector<lifetime> further;    ///< when blocks, or copies of them, are live again
  std::vector<lifetime> away;       ///< when blocks are elsewhere, out of this space
  std::vector<bool> is_changed;     ///< of each block
  std::vector<bool> has_moved;      ///< of each block: its life has changed
  what_if_price price;

  /// The run as it was.
  explicit scenario(const block_history& run);
  /// All lives, by their begin.
  [[nodiscard]] std::vector<lifetime> lifetimes(const block_history& run) const;
};

struct found_peak {
  std::int64_t bytes = 0;
  run_point at = 0;         ///< 0: nothing was ever live
  std::uint32_t block = 0;  ///< which reached it
};

/// The highest live bytes, where they are first reached. `lifetimes` are by their begin.
[[nodiscard]] found_peak peak_of(const scenario& of, const std::vector<lifetime>& lifetimes);

/// For each operation, whether an owner's name matches it or one around it. Throws `memprof::error` if it matches none.
[[nodiscard]] std::vector<bool> operations_of(const block_history& run, std::string_view owner);

/// The names by which the operations are shown: layers that differ in a number have one, unless there is only one of them.
[[nodiscard]] std::vector<std::string> owner_labels(const block_history& run);

/// Whether blocks of a category are kept by a training step for itself, and can so be made again: not its state or its inputs.
[[nodiscard]] constexpr bool is_intermediate(category kind) noexcept {
  return kind == category::activation || kind == category::temporary || kind == category::other;
}

// What applies parts of a change to a scenario; they throw as `what_if` does.

void retype(scenario& to, const block_history& run, const std::vector<what_if_change::retyping>& types,
            const std::vector<bool>& at_peak);
void scale_batch(scenario& to, const block_history& run, const what_if_change::batching& batch, const std::vector<bool>& at_peak);
void recompute(scenario& to, const block_history& run, std::string_view owner);
void offload(scenario& to, const block_history& run, std::string_view owner);
void free_at_last_use(scenario& to, const block_history& run, const std::vector<bool>& at_peak);

/// The most bytes that the model of PyTorch's caching allocator reserves.
[[nodiscard]] std::int64_t reserved_by(const scenario& of, const std::vector<lifetime>& lifetimes);

}  // namespace memprof::inline MEMPROF_ABI::detail
