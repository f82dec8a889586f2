#pragma once

#include <memprof/ledger/allocator_event.hpp>
#include <memprof/ledger/checkpoint_history.hpp>
#include <memprof/ledger/facet/cores.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/ledger/thread_state.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>

/// @file
/// How a `ledger` applies events.

namespace memprof::inline MEMPROF_ABI::extend {

inline void ledger::apply(const event* first, const event* last, std::uint32_t ring) noexcept {
  detail::thread_state* const state = find_thread(ring);
  events_ += static_cast<std::uint64_t>(last - first);
  if (state == nullptr) {
    rejected_events_ += static_cast<std::uint64_t>(last - first);
    return;
  }
  detail::thread_state& run = *state;
  if (run.space != nullptr) {
    resume(run);
    run.prefetches = run.space->is_large();
  }
  for (const event* recorded = first; recorded != last; ++recorded) {
    if (run.prefetches && last - recorded > prefetch_distance) {
      // The next events are nearly always in the same space; otherwise the guess only costs a cache line.
      run.space->prefetch(recorded[prefetch_distance].address);
    }
    apply_one(run, *recorded);
  }
}

inline void ledger::apply(const detail::ordered_event* first, const detail::ordered_event* last) noexcept {
  events_ += static_cast<std::uint64_t>(last - first);
  for (const detail::ordered_event* next = first; next != last; ++next) {
    detail::thread_state* const state = find_thread(next->ring);
    if (state == nullptr) [[unlikely]] {
      ++rejected_events_;
      continue;
    }
    detail::thread_state& run = *state;
    if (run.space != nullptr) {
      resume(run);
      // Whatever the size of the table: its last change was often made on another core.
      if (last - next > prefetch_distance) run.space->prefetch(next[prefetch_distance].recorded->address);
    }
    apply_one(run, *next->recorded);
  }
}

inline void ledger::resume(detail::thread_state& run) noexcept {
  if (run.stats_generation != run.space->stats_generation()) run.space_id = detail::thread_state::no_space;
  if (run.space->shared() != nullptr) activate(*run.space);
}

inline void ledger::apply_one(detail::thread_state& run, const event& recorded) noexcept {
  // An event that was published late takes effect when it is applied, so time never runs backwards.
  if (recorded.stamp > stamp_) stamp_ = recorded.stamp;
  switch (recorded.kind) {
    case event_kind::allocate:
      if (enter(run, recorded.space) && !run.allocate(recorded, stamp_)) ++rejected_events_;
      break;
    case event_kind::deallocate:
      if (enter(run, recorded.space)) run.deallocate(recorded, stamp_);
      break;
    default:
      if (recorded.kind == event_kind::scope_begin) {
        begin_scope(run, recorded);
      } else if (recorded.kind == event_kind::scope_end) {
        end_scope(run, recorded);
      } else {
        apply_control(run, recorded);
      }
      break;
  }
}

[[gnu::noinline]] inline bool ledger::enter_other(detail::thread_state& run, std::uint8_t id) noexcept {
  settle_window();
  const detail::thread_scopes& source = operations_.works_for<const detail::thread_scopes>(run);
  const bool is_windowed = source.scopes.is_joined();
  detail::space_ledger* const space = spaces_[id] != nullptr || id == any_space ? spaces_[id] : make_space(id);
  detail::scope_usage* usage = nullptr;
  const bool may_change = space != nullptr && begin_change(id);
  if (may_change && is_windowed) {
    usage = &run.window;
  } else if (may_change && run.scopes.empty()) {
    usage = &space->outside_operations();
  } else if (may_change) {
    if (detail::space_scopes* const scopes = run.scopes.in_space(id)) usage = &scopes->back();
  }
  detail::operation_stats* const stats = usage == nullptr ? nullptr : space->find_or_make_operation(source.scopes.operation());
  if (stats == nullptr) {
    ++rejected_events_;
    return false;
  }
  if (space->shared() != nullptr) activate(*space);
  run.space_id = id;
  run.space = space;
  run.prefetches = space->is_large();
  run.usage = usage;
  run.owner = detail::block::owner_word(source.scopes.operation(), detail::category_of(source.scopes.tag()), 0);
  run.stats = stats;
  run.stats_generation = space->stats_generation();
  if (is_windowed || operations_.infers()) {
    // Looked up again after any other thread's event, which may have changed the operation or what it has.
    run.stats_generation = detail::thread_state::no_generation;
    run.inferred_from = stats->allocated;
  }
  if (is_windowed) {
    windowed_ = &run;
    windowed_space_ = id;
  }
  return true;
}

[[gnu::cold, gnu::noinline]] inline void ledger::close_window() noexcept {
  detail::thread_state& run = *std::exchange(windowed_, nullptr);
  const detail::scope_usage window = std::exchange(run.window, {});
  run.space_id = detail::thread_state::no_space;
  const detail::thread_scopes& source = operations_.works_for<const detail::thread_scopes>(run);
  if (&source != &run && !source.scopes.empty()) {
    detail::operation_stats* const stats = run.space->find_or_make_operation(source.scopes.operation());
    if (stats != nullptr) stats->inferred += stats->allocated - run.inferred_from;
  }
  if ((window.self_net | window.self_max) == 0) return;
  operations_.for_each_enclosing<detail::thread_scopes>(run, [&](detail::thread_scopes& on, std::size_t depth, bool is_self) {
    if (detail::space_scopes* const scopes = on.scopes.in_space(windowed_space_)) {
      (*scopes)[depth].add(window, is_self);
    } else {
      ++rejected_events_;
    }
  });
}

[[gnu::noinline]] inline void ledger::apply_control(detail::thread_state& run, const event& recorded) noexcept {
  switch (recorded.kind) {
    case event_kind::annotate:
      if (recorded.label == extend::other_names) ++other_names_;
      if (recorded.tag > detail::category_names.size()) {
        ++rejected_events_;
      } else if (const std::uint8_t id = recorded.space == any_space ? space_of(recorded.address) : recorded.space;
                 spaces_[id] != nullptr && begin_change(id)) {
        spaces_[id]->annotate(recorded);
      } else {
        ++rejected_events_;
      }
      break;
    case event_kind::thread_begin: begin_thread(run, recorded); break;
    default: apply_rare(run, recorded); break;  // separate, because a larger switch would cost the common events instructions
  }
}

[[gnu::noinline]] inline void ledger::apply_rare(detail::thread_state& run, const event& recorded) noexcept {
  if (recorded.kind == event_kind::deallocate_range) {
    if (enter(run, recorded.space) && !deallocate_range(run, recorded, stamp_)) ++rejected_events_;
    return;
  }
  if (detail::is_allocator_event(recorded.kind)) {
    if (enter(run, recorded.space) && !detail::apply_allocator_event(run, recorded, stamp_)) ++rejected_events_;
    return;
  }
  if (recorded.kind >= event_kind::segment_end) {
    run.space_id = detail::thread_state::no_space;
    return apply_to_capture(recorded);
  }
  const detail::per_core_event change{recorded};
  if (!change.is_possible() || !take_work(change.steps(spaces_[recorded.space]))) {
    ++rejected_events_;
  } else if (enter(run, recorded.space) && !change.apply(run, stamp_)) {
    ++rejected_events_;
  }
}

inline void ledger::apply_to_capture(const event& recorded) noexcept {
  switch (recorded.kind) {
    case event_kind::segment_end: end_segment(recorded.label, stamp_); break;
    case event_kind::clock_reading: clock_.add(recorded.stamp, static_cast<std::int64_t>(recorded.address)); break;
    case event_kind::lost_events:
      dropped_events_ = recorded.address;
      reentrant_events_ = recorded.bytes;
      are_more_missing_ = recorded.tag != 0;
      break;
    case event_kind::capture_end: has_ended_ = true; break;
    case event_kind::gap:
      if (__builtin_add_overflow(missing_events_, recorded.bytes, &missing_events_)) missing_events_ = UINT64_MAX;
      is_missing_events_ = true;
      break;
    case event_kind::checkpoint: add_checkpoint(recorded.label); break;
    case event_kind::use: break;  // changes nothing that is counted
    default: ++rejected_events_; break;
  }
}

inline void ledger::add_checkpoint(label name) noexcept {
  constexpr std::size_t blocks_a_step = 8;
  if (name == extend::other_names) ++other_names_;
  std::size_t blocks = 0;
  for (const detail::space_ledger* space : spaces_) blocks += space == nullptr ? 0 : space->blocks().size();
  if (!take_work(blocks / blocks_a_step) || !checkpoints_.begin(name, stamp_)) {
    ++rejected_events_;
    return;
  }
  for (std::uint8_t id = 0; id < max_spaces; ++id) {
    const detail::space_ledger* const space = spaces_[id];
    if (space == nullptr || checkpoints_.add(id, space->blocks(), space->live(), options_.largest_blocks)) continue;
    checkpoints_.abandon();
    ++rejected_events_;
    return;
  }
}

[[gnu::noinline]] inline void ledger::begin_thread(detail::thread_state& run, const event& recorded) noexcept {
  settle_window();
  run.space_id = detail::thread_state::no_space;
  const bool inferred = operations_.infers();
  // Threads beyond the greatest number are merged into one; that takes a million threads.
  operations_.begin_thread(run, recorded, detail::block::max_thread, finish_operation{*this});
  if (operations_.infers() == inferred) return;
  for (detail::thread_state* thread : threads_) {
    if (thread != nullptr) thread->space_id = detail::thread_state::no_space;
  }
}

[[gnu::noinline]] inline void ledger::begin_scope(detail::thread_state& run, const event& recorded) noexcept {
  run.space_id = detail::thread_state::no_space;
  if (recorded.label == extend::other_names) [[unlikely]]
    ++other_names_;
  if ((reinterpret_cast<std::uintptr_t>(windowed_) | recorded.bytes) != 0) [[unlikely]]
    return begin_shared_scope(run, recorded);
  if (!operations_.begin(run, recorded, stamp_, finish_operation{*this}, detail::operation_visitor::adopts_none{}))
    ++rejected_events_;
}

[[gnu::cold, gnu::noinline]] inline void ledger::begin_shared_scope(detail::thread_state& run, const event& recorded) noexcept {
  settle_window();
  if (!operations_.begin(run, recorded, stamp_, finish_operation{*this},
                         [this](std::uint32_t number) { return turn_thread_of_number(number); }))
    ++rejected_events_;
}

[[gnu::noinline]] inline void ledger::end_scope(detail::thread_state& run, const event& recorded) noexcept {
  settle_window();
  run.space_id = detail::thread_state::no_space;
  operations_.end(run, recorded, finish_operation{*this}, [this](std::uint32_t number) { return turn_thread_of_number(number); });
}

inline detail::thread_state* ledger::turn_thread_of_number(std::uint32_t number) noexcept {
  if (!take_work(8 * threads_.size())) return nullptr;
  for (detail::thread_state* thread : threads_) {
    if (thread == nullptr || thread->thread != number) continue;
    thread->space_id = detail::thread_state::no_space;
    return thread;
  }
  return nullptr;
}

inline bool ledger::take_work(std::uint64_t steps) noexcept {
  constexpr std::uint64_t for_each_event = 512;
  if (work_limit_ == unlimited_work) return true;
  if (work_done_ + steps > work_limit_ + for_each_event * (events_ - events_of_saved_state_)) {
    is_overworked_ = true;
    return false;
  }
  work_done_ += steps;
  return true;
}

}  // namespace memprof::inline MEMPROF_ABI::extend
