#pragma once

#include <memprof/ledger/operation_stats.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/label.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// The names of the calls of a stack (`replayed_block::call_stack`), outermost first; `names` are those of the trace.
using frames_of_stack = std::function<std::vector<std::string>(const detail::label_table& names, extend::label stack)>;

/// Who asked for the blocks of a stack, in words.
struct callers_of_blocks {
  std::function<std::string(const detail::label_table& names, extend::label stack)> caller;  ///< empty: not wanted
  std::uint64_t from_bytes = 0;  ///< of smaller blocks it is not known: only some have a stack
};

/// Folds a trace into a complete `stack_table`, which a profile does not keep by operation. One pass, and memory for the
/// operations, whatever the number of events: what was live at a peak is what a row held at its next change.
class stack_fold : public replay_handler {
 public:
  /// With `by_category`, each operation has a row per category; with `by_size`, per size class; with `frames`, per stack that
  /// asked for the blocks, whose calls are then like operations within it; with `callers`, per stack.
  explicit stack_fold(bool by_category, bool by_size = false, frames_of_stack frames = {}, callers_of_blocks callers = {})
      : by_category_(by_category), by_size_(by_size), frames_(std::move(frames)), callers_(std::move(callers)) {}

  void on_allocation(const replay_state& at, const replayed_block& block);
  void on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t);
  /// A category applies to a block since its allocation, so rows at the peak change too unless the peak's segment has ended: as
  /// in a profile.
  void on_annotation(const replay_state& at, const replayed_block& block, category before);
  void on_segment_end(const replay_state& at, extend::label) { end_ns_ = at.now_ns; }

  /// The table of everything folded so far.
  [[nodiscard]] stack_table table(const replay_state& at) const;

 private:
  __extension__ using wide = __int128;  // nanoseconds of a billion blocks that live for a minute exceed 64 bits

  struct space_state {
    std::int64_t live = 0;
    std::int64_t peak = 0;
    bool is_used = false;
    std::int64_t peak_time_ns = 0;
    std::uint64_t peak_ordinal = 0;
    std::uint64_t peak_segment = 0;
    std::uint64_t epoch = 0;  ///< incremented at each new peak
  };
  struct row_state {
    std::uint8_t space = 0;
    std::uint32_t operation = 0;
    extend::label call_stack = 0;
    category of = category::other;
    std::int64_t least_size = -1;
    detail::owner_stats owned{};
    std::int64_t total_bytes = 0;
    std::int64_t total_blocks = 0;
    std::int64_t max_bytes = 0;
    std::int64_t max_blocks = 0;
    wide lifetime_ns = 0;    ///< of freed blocks
    wide live_since_ns = 0;  ///< sum of the allocation times of live blocks
  };

  [[nodiscard]] row_state& row_of(const replayed_block& block, category of);
  [[nodiscard]] std::int64_t lifetime_us(const row_state& row) const noexcept;
  static void note_max(row_state& row) noexcept;

  bool by_category_;
  bool by_size_;
  frames_of_stack frames_;
  callers_of_blocks callers_;
  std::int64_t end_ns_ = 0;
  std::array<space_state, extend::any_space + 1> spaces_{};
  std::vector<row_state> rows_;
  std::unordered_map<std::uint64_t, std::size_t> row_of_key_;                    // of blocks without a stack
  std::map<std::pair<std::uint64_t, extend::label>, std::size_t> row_of_stack_;  // of the others
};

/// The table of a trace, with categories if `by_category`, size classes if `by_size`, the calls of its stacks if `frames` names
/// them, and who asked if `callers` does. Two passes, the first for the clock.
template <trace_source Source>
[[nodiscard]] stack_table stack_table_of(const Source& source, bool by_category, bool by_size = false,
                                         frames_of_stack frames = {}, callers_of_blocks callers = {}) {
  clock_visitor times;
  source.visit(times);
  stack_fold fold{by_category, by_size, std::move(frames), std::move(callers)};
  trace_replay replay{fold, times.clock};
  source.visit(replay);
  return fold.table(replay.state());
}

}  // namespace memprof::inline MEMPROF_ABI
