#pragma once

#include <memprof/detail/wide_integer.hpp>
#include <memprof/ledger/byte_level.hpp>
#include <memprof/ledger/checkpoint_history.hpp>
#include <memprof/ledger/event_tally.hpp>
#include <memprof/ledger/facet/capacity.hpp>
#include <memprof/ledger/facet/cores.hpp>
#include <memprof/ledger/facet/out_of_memory.hpp>
#include <memprof/ledger/facet/reserved.hpp>
#include <memprof/ledger/facet/streams.hpp>
#include <memprof/ledger/linear_fit.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/ledger/operation_tree.hpp>
#include <memprof/ledger/running_summary.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/ledger/shared_memory.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/ledger/summaries_by_name.hpp>
#include <memprof/ledger/timeline.hpp>
#include <memprof/ledger/top_blocks.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/state_bytes.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace memprof::inline MEMPROF_ABI::detail {

/// The parts of a ledger as stored in a saved state. Each function defines their order once, for a `state_writer` and a constant
/// part, and for a `state_reader` and a part that is still empty. Input is validated so that, whatever events follow and whatever
/// profile is made, no arithmetic overflows and no index is out of range.
///
/// A friend of all these classes, because a saved state has their members.
struct state_parts {
  // --- shared parts -------------------------------------------------------------------------------------------------

  template <class State, class Tally>
  static void counted(State& state, Tally& part) noexcept {
    state.amounts(part.count);
    state.number(part.bytes);  // a saturating sum
    state.require(part.bytes >= 0);
  }

  template <class State, class Operation>
  static void operation(State& state, Operation& node, std::size_t operation_count) noexcept {
    state.number(node);
    state.require(node < operation_count);
  }

  /// A block that is or was live; for one on cores, `owner` is the rectangle.
  template <class State, class Block>
  static void known_block(State& state, Block& part, std::size_t operation_count) noexcept {
    state.numbers(part.address, part.born_thread, part.owner);
    state.amounts(part.bytes);
    state.require(part.operation() < operation_count && part.category() < category_names.size());
  }

  template <class State, class Rows>
  static void owners(State& state, Rows& part, std::size_t operation_count) noexcept {
    state_sum bytes;
    state.rows(part, [&](auto& row) {
      operation(state, row.operation, operation_count);
      state.amounts(row.bytes, row.blocks);
      bytes.add(state, row.bytes);
    });
  }

  template <class State, class Record>
  static void segment(State& state, Record& part, std::size_t operation_count) noexcept {
    state.amounts(part.live_at_start, part.live_at_end, part.live_at_peak);
    state.totals(part.allocated);
    state.amounts(part.allocation_count, part.blocks_at_start, part.blocks_at_end, part.blocks_at_peak);
    state.numbers(part.peak_ordinal, part.peak_stamp);
    operation(state, part.peak_operation, operation_count);
    state.numbers(part.owner_count, part.first_owner);
    state.amounts(part.remaining_bytes, part.remaining_operations, part.cumulative_peak);
    for (auto& held : part.categories) state.amounts(held.bytes, held.blocks);
  }

  // --- segments -----------------------------------------------------------------------------------------------------

  /// Maximum number of segments, and so of steps: keeps the exact sums over them in range.
  static constexpr std::uint64_t max_segments = std::uint64_t{1} << 40U;

  /// A 128-bit sum of at most 2^`bits`.
  template <class State, class Sum>
  static void wide_sum(State& state, Sum& part, unsigned bits) noexcept {
    auto low = static_cast<std::uint64_t>(part);
    auto high = static_cast<std::int64_t>(part >> 64);
    state.numbers(low, high);
    if constexpr (State::reads) {
      const std::int64_t most = std::int64_t{1} << (bits - 64);
      state.require(high >= -most && high < most);
      part = state.has_failed() ? 0 : static_cast<int128>(static_cast<uint128>(static_cast<int128>(high)) << 64 | low);
    }
  }
  template <class State, class Integer>
  static void wide_integer_of(State& state, Integer& part) noexcept {
    for (auto& limb : part.limbs_) state.number(limb);
  }
  template <class State, class Summary>
  static void summary(State& state, Summary& part) noexcept {
    state.numbers(part.first, part.last, part.least, part.greatest, part.least_segment, part.greatest_segment);
    state.require(part.least_segment < max_segments && part.greatest_segment < max_segments);
    wide_sum(state, part.total, 110);
  }
  template <class State, class Summaries>
  static void summaries(State& state, Summaries& part, std::size_t name_count) noexcept {
    state.rows(part.known_, [&](auto& known) {
      std::uint8_t is_known = known == 0 ? 0 : 1;
      state.number(is_known);
      if constexpr (State::reads) known = is_known == 0 ? 0 : 1;
    });
    state.require(part.known_.size() <= name_count);
    if constexpr (State::reads) {
      if (!state.has_failed()) state.require(part.records_.resize(part.known_.size()));
      if (state.has_failed()) return part.known_.clear();
    }
    for (std::size_t index = 0; index < part.known_.size(); ++index) {
      if (part.known_[index] == 0) continue;
      for (auto& numbers : part.records_[index]) {
        summary(state, numbers);
        for (const std::int64_t number : {numbers.first, numbers.last, numbers.least, numbers.greatest}) {
          state.require(number >= -2 * state_reader::greatest && number <= 2 * state_reader::greatest);
        }
      }
    }
  }
  template <class State, class Lines>
  static void fits(State& state, Lines& part, std::size_t name_count) noexcept {
    state.rows(part, [&](auto& line) {
      state.amounts(line.first);
      wide_sum(state, line.sum, 110);
      wide_integer_of(state, line.squares);
      wide_integer_of(state, line.products);
    });
    state.require(part.size() <= name_count);
  }

  /// The segments kept in full, and the rows of their names.
  template <class State, class History>
  static void history(State& state, History& part) noexcept {
    state.numbers(part.count_, part.step_);
    state.require(part.count_ < max_segments && part.step_ <= part.count_);
    state.rows(part.rows_, [&](auto& row) {
      state.numbers(row.name, row.stands_for_others, row.count, row.first_number, row.last_number, row.last_step);
      state.require(row.count != 0 && row.count <= part.count_ && row.first_number <= row.last_number &&
                    row.last_number < part.count_ && row.last_step <= part.step_);
      summary(state, row.duration);
      state.numbers(row.steps.first, row.steps.count);
      state.require(row.steps.first <= row.last_step && row.steps.count == row.count);
      wide_sum(state, row.steps.sum, 82);
      wide_sum(state, row.steps.squares, 122);
      if constexpr (State::reads) {
        const auto index = static_cast<std::uint32_t>(&row - part.rows_.data());
        if (row.stands_for_others) {
          state.require(part.others_ == segment_history::no_row);
          part.others_ = index;
        } else if (!state.has_failed()) {
          const live_blocks::insertion made = part.row_index_.insert(segment_history::key_of(row.name));
          state.require(made.is_new);
          if (made.is_new) made.entry->owner = index;
          ++part.named_;
        }
      }
    });
    std::uint64_t next_number = 0;
    state.rows(part.marks_, [&](auto& mark) {
      state.numbers(mark.name, mark.row, mark.begin_stamp, mark.end_stamp, mark.number, mark.step, mark.holds, mark.pins,
                    mark.is_first, mark.is_dropped);
      state.require(mark.row < part.rows_.size() && mark.begin_stamp <= mark.end_stamp && mark.number >= next_number &&
                    mark.number < part.count_ && mark.step <= part.step_);
      next_number = mark.number + 1;
      if constexpr (State::reads) part.dropped_ += mark.is_dropped ? 1 : 0;
    });
  }

  /// The kept checkpoints. The positions of each one's rows and blocks follow from their counts.
  template <class State, class Checkpoints>
  static void checkpoints(State& state, Checkpoints& part, std::size_t operation_count) noexcept {
    state.numbers(part.count_, part.stride_);
    state.require(part.count_ < max_segments && std::has_single_bit(part.stride_));
    std::uint64_t next_number = 0;
    std::size_t rows = 0;
    state.rows(part.marks_, [&](auto& mark) {
      state.numbers(mark.name, mark.row_count, mark.number, mark.stamp, mark.bytes, mark.is_first);
      state.amounts(mark.blocks);
      state.require(mark.bytes >= 0 && mark.number >= next_number && mark.number < part.count_);
      next_number = mark.number + 1;
      if constexpr (State::reads) mark.first_row = rows;
      rows += mark.row_count;
    });
    std::size_t blocks = 0;
    state.rows(part.rows_, [&](auto& row) {
      state.numbers(row.space, row.block_count);
      state.amounts(row.bytes, row.blocks);
      state.require(row.space < any_space);
      if constexpr (State::reads) row.first_block = blocks;
      blocks += row.block_count;
    });
    state.rows(part.blocks_, [&](auto& held) { known_block(state, held, operation_count); });
    state.require(part.marks_.size() <= checkpoint_history::max_kept && part.rows_.size() == rows &&
                  part.blocks_.size() == blocks);
    if constexpr (State::reads) {
      if (state.has_failed()) part = Checkpoints{};
    }
  }

  // --- operations ---------------------------------------------------------------------------------------------------

  /// The tree of operations, in the order in which they were first called.
  template <class State, class Visitor>
  static void operations(State& state, Visitor& part) noexcept {
    auto& tree = part.operations_;
    std::size_t count = tree.size() - 1;
    state.number(count);
    for (std::uint32_t index = 1; index <= count && !state.has_failed(); ++index) {
      operation_tree::node node{};
      if constexpr (!State::reads) node = tree[index];
      state.numbers(node.parent, node.name);
      state.amounts(node.invocations, node.finished);
      if constexpr (State::reads) {
        if (!state.has_failed()) state.require(node.parent < index && tree.child(node.parent, node.name) == index);
        if (!state.has_failed()) tree.nodes_[index] = node;
      }
    }
  }
  template <class State, class Visitor>
  static void faults(State& state, Visitor& part) noexcept {
    state.amounts(part.unbalanced_, part.too_deep_);
  }

  // --- facets -------------------------------------------------------------------------------------------------------

  template <class State, class Clock>
  static void clock(State& state, Clock& part) noexcept {
    state.amounts(part.least_distance_ns_);
    state.rows(part.kept_, [&](auto& row) {
      state.number(row.stamp);
      state.number(row.ns);
    });
    state.require(part.kept_.size() <= clock_readings::max_kept);
    for (std::size_t index = 0; index < part.kept_.size(); ++index) {
      const auto& row = part.kept_[index];
      state.require(row.ns >= 0);
      if (index != 0) state.require(row.stamp > part.kept_[index - 1].stamp && row.ns >= part.kept_[index - 1].ns);
    }
  }

  template <class State, class Line>
  static void line(State& state, Line& part) noexcept {
    const auto point = [&](auto& row) {
      state.number(row.stamp);
      state.amounts(row.peak, row.current);
    };
    state.amounts(part.width_);
    std::uint64_t remaining = part.has_open_ ? part.remaining_ : part.width_;  // all of a point's events, because none has begun
    state.amounts(remaining);
    state.require(remaining != 0 && remaining <= part.width_);
    if constexpr (State::reads) {
      part.has_open_ = remaining != part.width_;
      part.remaining_ = part.has_open_ ? remaining : 1;
    }
    point(part.open_);
    state.rows(part.points_, point);
    state.require(part.points_.size() < part.max_points_);
  }

  template <class State, class Streams>
  static void streams(State& state, Streams& part) noexcept {
    const auto record = [&](auto& row) {
      state.number(row.name);
      state.amounts(row.live, row.peak_live, row.allocation_count, row.reserved, row.peak_reserved);
    };
    state.rows(part.rows_, record);
    state.require(part.rows_.size() <= stream_ledger::max_rows);
    state.number(part.has_further_);
    record(part.further_);
  }

  template <class State, class Failed>
  static void out_of_memory(State& state, Failed& part, std::size_t operation_count) noexcept {
    state.rows(part.kept_, [&](auto& row) {
      // The program's request and the device's free memory may be any numbers.
      state.numbers(row.requested, row.device_free);
      state.require(row.requested >= 0 && row.device_free >= -1);
      state.amounts(row.live, row.reserved, row.segment);
      state.number(row.stamp);
      operation(state, row.operation, operation_count);
    });
    state.require(part.kept_.size() <= out_of_memory_ledger::max_kept);
    counted(state, part.further_);
  }

  /// Everything except the current value, which the caller knows.
  template <class State, class Level>
  static void level(State& state, Level& part, const segment_history& history) noexcept {
    state.amounts(part.peak_, part.segment_peak_);
    state.rows(part.segments_, [&](auto& row) { state.amounts(row.peak, row.current); });
    state.require(part.segments_.size() <= history.marks().size());
    summaries(state, part.by_name_, history.rows().size());
  }

  template <class State, class Active>
  static void active(State& state, Active& part, const segment_history& history) noexcept {
    state.number(part.is_used_);
    state.amounts(part.level_.current_);
    level(state, part.level_, history);
    table_of_blocks(state, part.pending_, [&](auto& freed) { state.amounts(freed.bytes); });
    counted(state, part.unmatched_completions);
    counted(state, part.missing_completions);
  }

  template <class State, class Reserved>
  static void reserved(State& state, Reserved& part, const segment_history& history) noexcept {
    state.number(part.is_used_);
    level(state, part.level_, history);
    std::uint64_t held = 0;
    std::uint64_t reached = 0;
    state.rows(part.ranges_, [&](auto& row) {
      state.numbers(row.begin, row.end);
      state.require(row.begin < row.end && row.begin >= reached);
      reached = row.end;
      held += row.end - row.begin;  // below 2^64, because they are disjoint
    });
    if constexpr (State::reads) {
      state.require(held <= static_cast<std::uint64_t>(state_reader::greatest));
      part.level_.current_ = state.has_failed() ? 0 : static_cast<std::int64_t>(held);
    }
    counted(state, part.unmatched_releases);
    counted(state, part.replaced_reservations);
  }

  template <class State, class Cores>
  static void cores(State& state, Cores& part, const segment_history& history) noexcept {
    const auto usage = [&](auto& row) { state.changes(row.circular_buffers, row.buffers, row.total); };
    state.rows(part.ranges_, [&](auto& cores) {
      state.number(cores);
      state.require(core_range::unpacked(cores).is_valid());
    });
    if (part.ranges_.empty()) return;  // no block has come yet
    state.numbers(part.columns_, part.rows_);
    state.require(part.columns_ <= 256 && part.rows_ <= 256);
    state.rows(part.grid_, [&](auto& core) {
      usage(core.live);
      usage(core.peak);
      usage(core.overall);
    });
    state.require(part.grid_.size() == part.columns_ * part.rows_);
    state.rows(part.segments_, [&](auto& row) {
      usage(row.peak);
      state.numbers(row.busiest_x, row.busiest_y);
    });
    state.require(part.segments_.size() <= history.marks().size());
    summaries(state, part.by_name_, history.rows().size());
    state_sum bytes;
    for (auto& table : part.blocks_) {
      table_of_blocks(state, table, [&](auto& held) {
        state.numbers(held.born_thread, held.owner);
        state.amounts(held.bytes);
        bytes.add(state, static_cast<std::int64_t>(held.bytes));
        const core_range at = core_range::unpacked(static_cast<std::uint32_t>(held.owner));
        state.require(at.is_valid() && at.x1 < part.columns_ && at.y1 < part.rows_);
      });
    }
    if constexpr (State::reads) {
      const std::size_t circular = part.blocks_[static_cast<std::size_t>(buffer_kind::circular_buffer)].size();
      state.require(part.ended_.reserve(circular + 1));
      for (const std::uint32_t known : part.ranges_) state.require(part.known_ranges_.insert(known).is_new);
    }
  }

  /// A table's blocks in no particular order: the address, then whatever `rest` transfers.
  template <class State, class Table, class Rest>
  static void table_of_blocks(State& state, Table& table, Rest&& rest) noexcept {
    std::size_t count = table.size();
    state.number(count);
    std::uint64_t last = 0;
    if constexpr (State::reads) {
      for (; count != 0 && !state.has_failed(); --count) {
        std::int64_t distance = 0;
        state.number(distance);
        if (state.has_failed()) break;
        const live_blocks::insertion made = table.insert(last += static_cast<std::uint64_t>(distance));
        state.require(made.is_new);
        if (state.has_failed()) break;
        *made.entry = {last, 0, 0, 0};
        rest(*made.entry);
      }
    } else {
      table.for_each([&](const block& held) {
        state.number(static_cast<std::int64_t>(held.address - last));
        last = held.address;
        rest(held);
      });
    }
  }

  // --- a space ------------------------------------------------------------------------------------------------------

  template <class State, class Space>
  static void space(State& state, Space& part, std::size_t operation_count, const segment_history& history) noexcept {
    const std::size_t segment_count = history.marks().size();
    totals(state, part);
    owner_statistics(state, part, operation_count);
    state.rows(part.owners_, [&](auto& row) {
      operation(state, row.operation, operation_count);
      state.amounts(row.bytes, row.blocks);
    });
    state.rows(part.segments_, [&](auto& record) {
      segment(state, record, operation_count);
      state.require(record.first_owner <= part.owners_.size() && record.owner_count <= part.owners_.size() - record.first_owner);
    });
    state.require(part.segments_.size() <= segment_count);
    state.amounts(part.overall_peak_, part.overall_segment_);
    summaries(state, part.by_name_, history.rows().size());
    fits(state, part.lines_, history.rows().size());
    owners(state, part.overall_owners_, operation_count);
    state.number(part.freed_count_);
    state.require(part.freed_count_ <= part.options_.largest_blocks);
    if (state.has_failed()) return;
    for (std::uint32_t index = 0; index < part.freed_count_; ++index)
      known_block(state, part.freed_since_peak_[index], operation_count);
    largest_of_finished(state, part.largest_of_finished_, operation_count, segment_count);
    shortfall(state, part, operation_count);
    line(state, part.line_);
    for (auto* unusual : {&part.unmatched_frees, &part.replaced_allocations, &part.mismatched_sizes, &part.cross_thread_frees,
                          &part.unknown_annotations, &part.untracked_allocations, &part.null_allocations}) {
      counted(state, *unusual);
    }
    cores(state, part.cores_, history);
    reserved(state, part.reserved_, history);
    streams(state, part.streams_);
    active(state, part.active_, history);
    out_of_memory(state, part.out_of_memory_, operation_count);
  }

  template <class State, class Space>
  static void totals(State& state, Space& part) noexcept {
    std::int64_t allocated = part.allocated();
    std::int64_t start_allocated = part.room_at_begin_ - part.start_room_;
    state.totals(allocated);
    state.totals(start_allocated);
    state.require(start_allocated <= allocated);
    if constexpr (State::reads) {
      part.room_ = std::min(std::numeric_limits<std::int64_t>::max() - allocated, state_reader::greatest);
      part.room_at_begin_ = part.room_ + allocated;
      part.start_room_ = part.room_at_begin_ - start_allocated;
    }
    state.amounts(part.ordinal_, part.start_ordinal_, part.peak_ordinal_);
    state.require(part.ordinal_ < std::uint64_t{1} << 43U && part.start_ordinal_ <= part.ordinal_);
    state.amounts(part.peak_live_, part.peak_blocks_, part.start_live_, part.start_blocks_);
    if constexpr (State::reads) {
      part.watch_above_ = part.peak_live_;
      part.watched_ordinal_ = part.peak_ordinal_;
    }
    state.numbers(part.peak_stamp_, part.peak_operation_);
  }

  /// What operations and categories had at the open segment's peak, and the statistics of operations. Their current values come
  /// with the blocks.
  template <class State, class Space>
  static void owner_statistics(State& state, Space& part, std::size_t operation_count) noexcept {
    state.require(part.peak_operation_ < operation_count);
    state_sum at_peak;
    const auto owned = [&](auto& stats) {
      std::int64_t live = stats.live_at_peak(part.epoch_);
      std::int64_t blocks = stats.blocks_at_peak(part.epoch_);
      state.amounts(live, blocks);
      at_peak.add(state, live);
      if constexpr (State::reads) stats = {0, live, part.epoch_, 0, blocks};
    };
    for (auto& category : part.categories_) owned(category);
    at_peak = {};
    state_sum allocated;
    state_sum freed;
    state.rows(part.operations_, [&](auto& stats) {
      owned(stats.owned);
      state.totals(stats.allocated);
      state.totals(stats.freed);
      allocated.add(state, stats.allocated);
      freed.add(state, stats.freed);
      state.amounts(stats.allocation_count, stats.deallocation_count, stats.finished, stats.peak, stats.self_peak);
      state.changes(stats.max_delta);
      state.amounts(stats.changing);
      if (stats.changing == 0) return;
      for (auto* run : {&stats.first, &stats.last, &stats.largest}) {
        state.numbers(run->begin_stamp, run->end_stamp, run->thread);
        state.changes(run->delta);
        state.amounts(run->peak);
      }
    });
    state.require(!part.operations_.empty() && part.operations_.size() <= operation_count);
  }

  template <class State, class Largest>
  static void largest_of_finished(State& state, Largest& part, std::size_t operation_count, std::size_t segment_count) noexcept {
    std::size_t level = 0;
    for (auto& counts : part.counts_) {
      auto& blocks = part.blocks_[level];
      std::size_t count = counts.size();
      state.number(count);
      state.require(count <= (segment_count >> level) + 1);
      if constexpr (State::reads) {
        if (!state.has_failed()) state.require(blocks.resize(count * part.limit_) && counts.resize(count));
        if (state.has_failed()) return;
      }
      for (std::size_t index = 0; index < count; ++index) {
        state.number(counts[index]);
        state.require(counts[index] <= part.limit_);
        if (state.has_failed()) return;
        for (std::size_t row = 0; row < counts[index]; ++row)
          known_block(state, blocks[index * part.limit_ + row], operation_count);
      }
      ++level;
    }
  }

  template <class State, class Space>
  static void shortfall(State& state, Space& part, std::size_t operation_count) noexcept {
    auto& first = part.shortfall_;
    known_block(state, first.asked, operation_count);
    if (!first.has_happened()) return;
    if constexpr (State::reads) {
      part.shortfall_above_ = part.core_shortfall_above_ = std::numeric_limits<std::int64_t>::max();
      state.require(part.capacity_ != 0);
    }
    state.amounts(first.segment);
    state.number(first.stamp);
    segment(state, first.moment, operation_count);
    state.numbers(first.is_on_core, first.core.x0, first.core.y0, first.core.x1, first.core.y1, first.has_holders);
    owners(state, first.owners, operation_count);
    state.rows(first.largest, [&](auto& held) { known_block(state, held, operation_count); });
  }

  /// A space's live blocks, each with its address, bytes, allocation number, thread, operation, category and annotation.
  template <class State, class Space>
  static void blocks(State& state, Space& part) noexcept {
    std::uint64_t last_born = 0;
    std::uint64_t live = 0;
    table_of_blocks(state, part.live_blocks_, [&](auto& held) {
      std::uint64_t born = held.born();
      auto distance = static_cast<std::int64_t>(born - last_born);
      std::uint32_t thread = held.thread();
      std::uint32_t node = held.operation();
      std::uint32_t category = held.category();
      label annotation = held.annotation();
      state.amounts(held.bytes);
      state.numbers(distance, thread, node, category, annotation);
      if constexpr (State::reads) {
        born = last_born + static_cast<std::uint64_t>(distance);
        state.require(born <= part.ordinal_ && thread <= block::max_thread && node < part.operations_.size() &&
                      category < category_names.size() && annotation <= block::max_annotation);
        if (state.has_failed()) return;
        live += held.bytes;
        state.require(live <= static_cast<std::uint64_t>(state_reader::greatest));
        if (state.has_failed()) return;
        held.born_thread = born << block::thread_bits | thread;
        held.owner = block::owner_word(node, category, annotation);
        for (owner_stats* owner : {&part.operations_[node].owned, &part.categories_[category]}) {
          owner->live += static_cast<std::int64_t>(held.bytes);
          ++owner->blocks;
        }
      }
      last_born = born;
    });
    if constexpr (State::reads) {
      part.live_ = static_cast<std::int64_t>(live);
      state.require(part.live_ <= part.allocated());
    }
  }

  // --- memories shared by several spaces ----------------------------------------------------------------------------

  template <class State, class Memory>
  static void memory(State& state, Memory& part, std::size_t operation_count, const segment_history& history) noexcept {
    wide_sum(state, part.peak, 72);
    state.numbers(part.is_known, part.sole_space, part.peak_space, part.peak_stamp, part.peak_segment, part.is_pinned,
                  part.pinned_segment);
    state.require(part.peak >= 0 && part.peak_segment <= history.count() && part.pinned_segment <= history.count());
    operation(state, part.peak_operation, operation_count);
    if constexpr (State::reads) part.peaks = 1;
  }

  template <class State, class Share>
  static void share(State& state, Share& part, std::uint64_t last_born, std::size_t operation_count) noexcept {
    std::uint8_t is_unchanged = part.is_unchanged_since_peak() ? 1 : 0;
    state.number(is_unchanged);
    if constexpr (State::reads) {
      part.seen_ = is_unchanged != 0 ? 0 : part.memory().peaks;
      part.epoch_ = 1;
    }
    if (is_unchanged != 0) return;
    state.amounts(part.ordinal_, part.live_, part.blocks_);
    state.require(part.ordinal_ <= last_born);
    state_sum bytes;
    const auto freed = [&](auto& row) {
      category_at_peak sum = part.current(row);
      state.amounts(sum.bytes, sum.blocks);
      bytes.add(state, sum.bytes);
      if constexpr (State::reads) row = {sum.bytes, sum.blocks, part.epoch_};
    };
    for (auto& row : part.by_category_) freed(row);
    bytes = {};
    state.rows(part.by_operation_, freed);
    state.require(part.by_operation_.size() <= operation_count);
    state.number(part.freed_count_);
    state.require(part.freed_count_ <= part.limit_);
    if (state.has_failed()) return;
    for (std::uint32_t index = 0; index < part.freed_count_; ++index)
      known_block(state, part.freed_largest_[index], operation_count);
  }

  // --- a thread -----------------------------------------------------------------------------------------------------

  /// A thread's open operations, outermost first: node, name, number, category.
  template <class State, class Stack>
  static void open_operations(State& state, Stack& part, std::size_t operation_count) noexcept {
    state.rows(part.scopes_, [&](auto& scope) {
      operation(state, scope.operation, operation_count);
      state.numbers(scope.name, scope.number, scope.tag, scope.begin_stamp);
      state.require(scope.tag <= category_names.size());
    });
    state.require(part.scopes_.size() <= scope_stack::max_depth);
  }

  /// Their usage of each space; `is_space(id)` says which spaces exist.
  template <class State, class Stack, class IsSpace>
  static void usages(State& state, Stack& part, IsSpace&& is_space) noexcept {
    std::uint32_t used = part.used_count_;
    state.number(used);
    for (std::uint32_t index = 0; index < used && !state.has_failed(); ++index) {
      std::uint8_t space = 0;
      if constexpr (!State::reads) space = part.table_->used[index];
      state.number(space);
      if constexpr (State::reads) {
        state.require(is_space(space) && !part.knows(space));
        if (!state.has_failed()) state.require(part.in_space(space) != nullptr);
        if (state.has_failed()) return;
      }
      state_sum bytes;
      for (auto& usage : part.table_->scopes[space]) {
        state.changes(usage.self_net, usage.inner_net);
        state.amounts(usage.self_max, usage.max_net);
        for (const std::int64_t part_of_net : {usage.self_net, usage.inner_net, usage.max_net}) bytes.add(state, part_of_net);
      }
    }
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
