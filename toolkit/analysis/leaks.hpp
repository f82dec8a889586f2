#pragma once

#include <memprof/ledger/facet/reserved.hpp>
#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/owner_growth.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/toolkit/analysis/block_callers.hpp>
#include <memprof/toolkit/analysis/growth.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

/// @file
/// Who grows from step to step, and who has filled up and stopped.

namespace memprof::inline MEMPROF_ABI {

/// In place of an owner, where a space grows and none of them does by itself, as where each step has operations of its own.
inline constexpr std::string_view many_operations = "(many operations together)";

/// One owner whose bytes at the ends of the steps grew.
struct growing_owner {
  std::string space;
  /// Its path; empty: outside every operation; `reserved_beyond_blocks` or `many_operations`. Of layers, `*` for the number.
  std::string operation;
  std::int64_t operations = 1;  ///< in the row: layers that grew alike are one
  growth trend;
  std::int64_t blocks = 0;        ///< live at the end of the last step
  std::int64_t oldest_step = -1;  ///< in which the oldest of them was allocated, from 0; -1: no block
  std::int64_t newest_step = -1;  ///< the same for the newest
  std::int64_t oldest_bytes = 0;  ///< its size
  std::int64_t newest_bytes = 0;
  /// Of a trace with stacks, if it grows: the code that asked for most bytes of the blocks that are live at the end of the last
  /// step and were allocated since the growth began, and its share of those that have a stack. Empty: unknown.
  std::string caller;
  double caller_share = 0;
};

/// The growth of a run.
struct leak_report {
  std::string segment;  ///< the name of the segments whose ends are the steps' ends; empty: none repeats, see `is_by_count`
  /// Before the first of these, which a trace of limited size lacks. Steps are counted with them; their blocks are unseen.
  std::int64_t missing_steps = 0;
  std::int64_t steps = 0;               ///< the number of those that the trace has
  bool exact = false;                   ///< as in `profile`: without, lost frees may look like leaks
  bool is_by_count = false;             ///< no segment's name repeats: the steps are equal parts of the run's allocations
  std::vector<growing_owner> growing;   ///< `grows`, most bytes per step first
  std::vector<growing_owner> levelled;  ///< `levels_off`, most bytes at the last step first
  std::vector<growing_owner> unclear;   ///< `unclear`, in the same order
  struct space_row {
    std::string name;
    std::int64_t last = 0;      ///< bytes live at the end of the last step, and reserved beyond them
    std::int64_t capacity = 0;  ///< bytes; 0: no limit is known
    double per_step = 0;        ///< the sum of `growing`
    /// Of the growth, as much or more is made up for by other memory that is freed: the space does not grow.
    bool is_made_up_for = false;
  };
  std::vector<space_row> spaces;
  std::vector<std::string> remarks;  ///< caveats about the recording, as `remarks_on`

  /// How many steps before the last a block was allocated: 0 if in the last.
  [[nodiscard]] std::int64_t age_of(std::int64_t step) const noexcept { return missing_steps + steps - 1 - step; }
  /// Whether there were enough steps for a verdict.
  [[nodiscard]] bool is_long_enough() const noexcept { return steps >= growth_series::least_steps; }
};

namespace detail {

/// Counts the segments of each name, and allocations.
class step_count : public replay_handler {
 public:
  void on_segment_end(const replay_state& at, label name);
  void on_allocation(const replay_state&, const replayed_block&) { ++allocations_; }

  /// The name that ends most segments, the last of equals; empty if none repeats.
  [[nodiscard]] std::string segment() const;
  [[nodiscard]] std::int64_t count_of(const std::string& segment) const;
  [[nodiscard]] std::int64_t allocations() const noexcept { return allocations_; }

 private:
  struct counted {
    std::int64_t count = 0;
    std::int64_t order = 0;
  };
  std::map<std::string, counted, std::less<>> names_;
  std::int64_t allocations_ = 0;
};

/// Reads the bytes of every owner at the end of each step.
class leak_fold : public replay_handler {
 public:
  leak_fold(std::string segment, std::int64_t steps, std::int64_t allocations_per_step);

  void on_allocation(const replay_state& at, const replayed_block& block);
  void on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t);
  void on_segment_end(const replay_state& at, label name);
  void on_allocator_event(const replay_state& at, const event& happened, std::uint32_t);

  using block_visitor = std::function<void(const replayed_block&)>;
  /// Call before the first event: `visit(space, visitor)` visits the live blocks of a space.
  void set_live_blocks(std::function<void(std::uint8_t space, const block_visitor&)> visit) { for_each_live_ = std::move(visit); }
  /// Call before the first event, if the trace has stacks.
  void set_stacks(const std::optional<heap_stacks>& recorded) { stacks_ = recorded; }
  /// After the last event.
  [[nodiscard]] leak_report report(const replay_state& at, const profile& of);

 private:
  struct row_state {
    std::uint8_t space = 0;
    std::uint32_t operation = 0;
    std::int64_t live = 0;
    growth_series series;
    std::int64_t blocks = 0;   ///< live at the end of the last step
    std::uint64_t oldest = 0;  ///< the ordinals of the oldest and newest of them
    std::uint64_t newest = 0;
    std::int64_t oldest_bytes = 0;
    std::int64_t newest_bytes = 0;
    std::uint64_t grown_from = 0;           ///< the ordinal of the first block of its growth; 0: it does not grow
    std::map<label, double> asked_bytes{};  ///< by stack, of blocks from that one on; of a sample, estimated
  };
  struct space_state {
    bool is_used = false;
    std::uint64_t allocated = 0;  ///< the ordinal of the last block
    std::int64_t live = 0;
    std::unique_ptr<reserved_ledger> reserved;    ///< null: nothing was reserved
    std::vector<std::uint64_t> allocated_at_end;  ///< `allocated` at the end of each step
    std::vector<growth_series> totals;            ///< of live bytes and, if it reserves, of what is reserved beyond them
    linear_fit_sums line;                         ///< of both together
  };

  [[nodiscard]] row_state& row_of(std::uint8_t space, std::uint32_t operation);
  void change(std::uint8_t space, std::uint32_t operation, std::int64_t bytes);
  void end_step();
  void note_live(const replayed_block& block);
  [[nodiscard]] std::int64_t step_of(const space_state& space, std::uint64_t ordinal) const;
  void find_growth();
  [[nodiscard]] growing_owner found_in(const replay_state& at, const row_state& row) const;

  std::function<void(std::uint8_t, const block_visitor&)> for_each_live_;
  std::optional<heap_stacks> stacks_;
  std::string segment_;
  std::int64_t steps_;
  std::int64_t allocations_per_step_;  ///< 0: segments end the steps
  std::int64_t allocations_ = 0;
  std::int64_t step_ = 0;  ///< steps that have ended
  std::array<space_state, any_space + 1> spaces_{};
  std::vector<row_state> rows_;
  std::unordered_map<std::uint64_t, std::size_t> row_of_key_;
};

}  // namespace detail

/// Finds who grows in a trace, whose profile is `of`. Three passes, the first for the clock; memory for operations, live blocks
/// and 8 bytes a step and space.
template <trace_source Source>
[[nodiscard]] leak_report find_leaks(const Source& source, const profile& of) {
  constexpr std::int64_t parts_at_most = 256;
  clock_visitor times;
  source.visit(times);
  detail::step_count counted;
  trace_replay counting{counted, times.clock};
  source.visit(counting);
  const std::string segment = counted.segment();
  std::int64_t steps = counted.count_of(segment);
  std::int64_t per_step = 0;
  if (segment.empty()) {
    per_step = std::max<std::int64_t>(1, (counted.allocations() + parts_at_most - 1) / parts_at_most);
    steps = counted.allocations() / per_step;
  }
  detail::leak_fold fold{segment, steps, per_step};
  trace_replay replay{fold, times.clock};
  fold.set_stacks(recorded_stacks_of(of));
  fold.set_live_blocks([&](std::uint8_t space, const auto& visit) { replay.for_each_live(space, visit); });
  source.visit(replay);
  return fold.report(replay.state(), of);
}

}  // namespace memprof::inline MEMPROF_ABI
