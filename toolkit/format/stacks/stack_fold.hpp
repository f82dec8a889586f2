#pragma once

#include <memprof/ledger/operation_stats.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/clock_readings.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// Folds a trace into a complete `stack_table`, which a profile does not keep by operation. One pass, and memory for the
/// operations, whatever the number of events: what was live at a peak is what a row held at its next change.
class stack_fold : public replay_handler {
 public:
  /// With `by_category`, each operation has a row per category.
  explicit stack_fold(bool by_category) noexcept : by_category_(by_category) {}

  void on_allocation(const replay_state& at, const replayed_block& block) {
    space_state& space = spaces_[block.space];
    row_state& row = row_of(block, block.category);
    const auto bytes = static_cast<std::int64_t>(block.bytes);
    row.owned.change(space.epoch, bytes, 1);
    row.total_bytes += bytes;
    ++row.total_blocks;
    row.live_since_ns += at.now_ns;
    note_max(row);
    space.live += bytes;
    space.is_used = true;
    if (space.live > space.peak) {
      space.peak = space.live;
      space.peak_time_ns = at.now_ns;
      space.peak_ordinal = block.ordinal;
      space.peak_segment = at.segment;
      ++space.epoch;
    }
    end_ns_ = at.now_ns;
  }
  void on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t) {
    space_state& space = spaces_[block.space];
    row_state& row = row_of(block, block.category);
    const auto bytes = static_cast<std::int64_t>(block.bytes);
    row.owned.change(space.epoch, -bytes, -1);
    row.lifetime_ns += at.now_ns - block.time_ns;
    row.live_since_ns -= block.time_ns;
    space.live -= bytes;
    end_ns_ = at.now_ns;
  }
  /// A category applies to a block since its allocation, so rows at the peak change too unless the peak's segment has ended: as
  /// in a profile.
  void on_annotation(const replay_state& at, const replayed_block& block, category before) {
    if (!by_category_ || before == block.category) return;
    space_state& space = spaces_[block.space];
    const bool is_in_peak = block.ordinal <= space.peak_ordinal && space.peak_segment == at.segment;
    const auto move = is_in_peak ? &detail::owner_stats::correct : &detail::owner_stats::change;
    const auto bytes = static_cast<std::int64_t>(block.bytes);
    const auto add = [&](category which, std::int64_t sign) {
      row_state& row = row_of(block, which);
      (row.owned.*move)(space.epoch, sign * bytes, sign);
      row.total_bytes += sign * bytes;
      row.total_blocks += sign;
      row.live_since_ns += sign * wide{block.time_ns};
      note_max(row);
      row.max_bytes = std::max(row.max_bytes, row.owned.live_at_peak(space.epoch));  // which has just been corrected
    };
    add(before, -1);
    add(block.category, 1);
  }
  void on_segment_end(const replay_state& at, label) { end_ns_ = at.now_ns; }

  /// The table of everything folded so far.
  [[nodiscard]] stack_table table(const replay_state& at) const {
    stack_table result;
    result.process = at.info.process;
    result.begin_unix_ns = at.info.begin_unix_ns;
    result.duration_ns = end_ns_;
    result.has_categories = by_category_;
    result.has_lifetimes = true;
    for (std::size_t node = 1; node < at.operations().size(); ++node) {
      const detail::operation_tree::node& operation = at.operations()[node];
      result.operations.push_back({operation.parent, std::string{at.names.text(operation.name)}});
    }
    std::array<std::uint32_t, any_space + 1> index{};
    for (std::size_t space = 0; space < any_space; ++space) {
      if (!spaces_[space].is_used) continue;
      index[space] = static_cast<std::uint32_t>(result.spaces.size());
      result.spaces.push_back({std::string{at.space_name(static_cast<std::uint8_t>(space))}, spaces_[space].peak_time_ns});
    }
    for (const row_state& row : rows_) {
      const std::uint64_t epoch = spaces_[row.space].epoch;
      // Blocks that got another category later may have been in this one at the peak.
      if (row.total_blocks == 0 && row.owned.blocks_at_peak(epoch) == 0) continue;
      result.rows.push_back({index[row.space], row.operation, row.of, row.total_bytes, row.total_blocks,
                             row.owned.live_at_peak(epoch), row.owned.blocks_at_peak(epoch), row.owned.live, row.owned.blocks,
                             row.max_bytes, row.max_blocks, lifetime_us(row)});
    }
    return result;
  }

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
    category of = category::other;
    detail::owner_stats owned{};
    std::int64_t total_bytes = 0;
    std::int64_t total_blocks = 0;
    std::int64_t max_bytes = 0;
    std::int64_t max_blocks = 0;
    wide lifetime_ns = 0;    ///< of freed blocks
    wide live_since_ns = 0;  ///< sum of the allocation times of live blocks
  };

  [[nodiscard]] row_state& row_of(const replayed_block& block, category of) {
    const category kept = by_category_ ? of : category::other;
    const std::uint64_t key =
        std::uint64_t{block.operation} << 16 | std::uint64_t{block.space} << 8 | static_cast<std::uint64_t>(kept);
    const auto [found, is_new] = row_of_key_.try_emplace(key, rows_.size());
    if (is_new) rows_.push_back({block.space, block.operation, kept});
    return rows_[found->second];
  }
  [[nodiscard]] std::int64_t lifetime_us(const row_state& row) const noexcept {
    const wide ns = row.lifetime_ns + wide{row.owned.blocks} * end_ns_ - row.live_since_ns;
    return static_cast<std::int64_t>(std::clamp<wide>(ns / 1000, 0, std::numeric_limits<std::int64_t>::max()));
  }
  static void note_max(row_state& row) noexcept {
    if (row.owned.live <= row.max_bytes) return;
    row.max_bytes = row.owned.live;
    row.max_blocks = row.owned.blocks;
  }

  bool by_category_;
  std::int64_t end_ns_ = 0;
  std::array<space_state, any_space + 1> spaces_{};
  std::vector<row_state> rows_;
  std::unordered_map<std::uint64_t, std::size_t> row_of_key_;
};

/// The table of a trace, with categories if `by_category`. Two passes, the first for the clock.
template <trace_source Source>
[[nodiscard]] stack_table stack_table_of(const Source& source, bool by_category) {
  clock_visitor times;
  source.visit(times);
  stack_fold fold{by_category};
  trace_replay replay{fold, times.clock};
  source.visit(replay);
  return fold.table(replay.state());
}

}  // namespace memprof::inline MEMPROF_ABI
