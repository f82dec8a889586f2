#pragma once

#include <memprof/detail/wide_integer.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/ledger/summaries_by_name.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/state_bytes.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// What the parts of a ledger have in common, as stored in a saved state. Here and in the other headers of this folder, a
/// function defines the order of a part once, for a `state_writer` and a constant part, and for a `state_reader` and a part that
/// is still empty. Input is validated so that, whatever events follow and whatever profile is made, no arithmetic overflows and
/// no index is out of range.
///
/// The structs are friends of what they save, because a saved state has its members.
struct saved_values {
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
    state.amounts(part.live_at_start, part.live_at_end, part.peak_live_bytes);
    state.totals(part.allocated);
    state.amounts(part.allocation_count, part.blocks_at_start, part.blocks_at_end, part.blocks_at_peak);
    state.numbers(part.peak_ordinal, part.peak_stamp);
    operation(state, part.peak_operation, operation_count);
    state.numbers(part.owner_count, part.first_owner);
    state.amounts(part.remaining_bytes, part.remaining_operations, part.cumulative_peak);
    for (auto& held : part.categories) state.amounts(held.bytes, held.blocks);
  }

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
        const std::int64_t parts[] = {numbers.first, numbers.last, numbers.least, numbers.greatest};
        for (const std::int64_t number : parts) {
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
};

}  // namespace memprof::inline MEMPROF_ABI::detail
