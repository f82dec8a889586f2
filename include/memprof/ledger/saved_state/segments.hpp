#pragma once

#include <memprof/ledger/checkpoint_history.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/saved_state/values.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/step_ends.hpp>
#include <memprof/ledger/timeline.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/event.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// The course of a capture: segments, checkpoints, the clock and the timelines of spaces.
struct saved_segments : saved_values {
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

  template <class State, class History>
  static void choice_of_step_ends(State& state, History& part) noexcept {
    auto& choice = part.step_ends_;
    state.numbers(choice.row, choice.first);
    const bool is_sound = choice.row == segment_history::no_row
                              ? choice.first == 0
                              : choice.row < part.rows_.size() && choice.first < part.rows_[choice.row].count;
    state.require(is_sound);
    if constexpr (State::reads) {
      if (!is_sound) choice = {};
    }
  }

  /// What the owners of a space had at the ends of steps.
  template <class State, class Ends>
  static void ends_of_steps(State& state, Ends& part, std::size_t operation_count, const segment_history& history) noexcept {
    const bool is_known = part.choice() == history.step_ends();  // otherwise the system had no memory
    std::uint64_t ends = is_known ? part.ends_ : 0;
    std::size_t count = is_known ? part.operations_.size() : 0;
    state.numbers(ends, count);
    state.require(ends <= history.step_end_count());
    if constexpr (State::reads) {
      if (!state.has_failed()) part.restart(history.step_ends(), ends);
    }
    for (std::size_t row = 0; row < count && !state.has_failed(); ++row) {
      std::uint32_t owner = State::reads ? 0 : part.operations_[row];
      state.number(owner);
      if constexpr (State::reads) {
        state.require((owner == step_ends::reserved_owner || owner < operation_count) && part.row_of(owner) == 0);
        if (!state.has_failed()) state.require(part.make_row(owner) != 0);
        if (state.has_failed()) return;
      }
      for (std::size_t at = 0; at < part.part_count(); ++at) {
        auto& bytes = part.parts_[row * step_ends::max_parts + at];
        state.amounts(bytes.least, bytes.most);
        state.require(bytes.least <= bytes.most);
      }
    }
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
};

}  // namespace memprof::inline MEMPROF_ABI::detail
