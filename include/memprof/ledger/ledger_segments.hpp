#pragma once

#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/ledger/thread_state.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>

/// @file
/// How a `ledger` ends segments.

namespace memprof::inline MEMPROF_ABI::extend {

inline void ledger::end_segment(label name, std::uint64_t stamp) noexcept {
  if (stamp > stamp_) stamp_ = stamp;
  if (name == extend::other_names) ++other_names_;
  const std::uint32_t row = history_.prepare(name);
  if (row == detail::segment_history::no_row || !take_work(choose_ending_spaces(row))) {
    ++rejected_events_;
    return;
  }
  for (std::size_t index = 0; index < ending_count_; ++index) {
    if (!spaces_[ending_[index]]->settle(history_, segment_begin_)) ++rejected_events_;
  }
  (void)history_.add(name, segment_begin_, stamp_);  // there is room
  segment_begin_ = stamp_;
  for (std::size_t index = 0; index < ending_count_; ++index) {
    if (!spaces_[ending_[index]]->end_segment(history_, stamp_)) ++rejected_events_;
    changes_.end_segment(ending_[index], row);
  }
  pin_joint_peaks();
  history_.drop_surplus();
  if (history_.is_sparse()) history_.compact();
}

inline void ledger::settle_spaces() noexcept {
  settle_window();
  for (detail::space_ledger* space : spaces_) {
    if (space != nullptr && !space->settle(history_, segment_begin_)) ++rejected_events_;
  }
}

inline void ledger::settle_open_scopes() noexcept {
  settle_window();
  for (const detail::thread_state* thread : threads_) {
    if (thread == nullptr) continue;
    const detail::scope_stack& open = thread->scopes;
    open.for_each_space([&](std::uint8_t space, const detail::space_scopes& scopes) {
      std::int64_t inner_max = 0;
      for (std::size_t depth = open.depth(); depth > 0; --depth) {
        if (open[depth - 1].is_adopted) continue;
        inner_max = open.is_joined() ? scopes[depth].max_net : scopes[depth].max_with(inner_max);
        detail::operation_stats* const stats = spaces_[space]->find_or_make_operation(open[depth - 1].operation);
        if (stats != nullptr) {
          stats->note_peak(inner_max, scopes[depth].self_max);
        } else {
          ++rejected_events_;
        }
      }
    });
  }
}

inline std::uint64_t ledger::choose_ending_spaces(std::uint32_t row) noexcept {
  constexpr std::uint64_t each_space = 128;
  std::uint64_t steps = 0;
  ending_count_ = 0;
  for (std::size_t id = 0; id < space_end_; ++id) {
    if (spaces_[id] == nullptr || changes_.may_skip(id, row)) continue;
    ending_[ending_count_++] = static_cast<std::uint8_t>(id);
    const detail::space_ledger& space = *spaces_[id];
    steps += each_space + 2 * space.operation_count() + space.cores().grid_size() + space.steps_of_settling(history_);
  }
  return steps;
}

inline bool ledger::begin_change(std::uint8_t id) noexcept {
  if (changes_.has_changed(id)) return true;
  detail::space_ledger& space = *spaces_[id];
  if (!take_work(space.steps_of_settling(history_)) || !space.settle(history_, segment_begin_)) return false;
  changes_.begin(id);
  return true;
}

}  // namespace memprof::inline MEMPROF_ABI::extend
