#pragma once

#include <memprof/ledger/address_ranges.hpp>
#include <memprof/ledger/byte_level.hpp>
#include <memprof/ledger/facet/cores.hpp>
#include <memprof/ledger/facet/out_of_memory.hpp>
#include <memprof/ledger/facet/reserved.hpp>
#include <memprof/ledger/facet/streams.hpp>
#include <memprof/ledger/saved_state/values.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/state_bytes.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// The facets of a memory space.
struct saved_facets : saved_values {
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
    std::size_t count = part.ranges_.size();
    state.number(count);
    if constexpr (State::reads) {
      std::uint64_t held = 0;
      std::uint64_t reached = 0;
      for (std::size_t done = 0; done < count && !state.has_failed(); ++done) {
        address_range row{};
        state.numbers(row.begin, row.end);
        state.require(row.begin < row.end && row.begin >= reached && part.ranges_.make_room());
        if (state.has_failed()) return part.ranges_.clear();
        part.ranges_.insert(row);
        reached = row.end;
        held += row.end - row.begin;  // below 2^64, because they are disjoint
      }
      state.require(held <= static_cast<std::uint64_t>(state_reader::greatest));
      part.level_.current_ = state.has_failed() ? 0 : static_cast<std::int64_t>(held);
    } else {
      part.ranges_.for_each([&](const address_range& row) { state.numbers(row.begin, row.end); });
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
};

}  // namespace memprof::inline MEMPROF_ABI::detail
