#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/saved_state/segments.hpp>
#include <memprof/ledger/saved_state/spaces.hpp>
#include <memprof/ledger/saved_state/threads.hpp>
#include <memprof/ledger/shared_memory.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/ledger/thread_state.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/state_bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

/// @file
/// A ledger as a saved state of a trace: a reader continues from it as if it had seen all events before.

namespace memprof::inline MEMPROF_ABI::detail {

/// The ledger's sections of a saved state, for writing and reading.
template <class State, class Ledger>
class ledger_state {
 public:
  ledger_state(State& state, Ledger& events) noexcept : state_(state), events_(events) {}

  void transfer() noexcept {
    std::uint32_t revision = state_revision;
    state_.number(revision);
    state_.require(revision != 0 && revision <= state_revision);
    state_.section(state_section::operations, [this] { saved_threads::operations(state_, events_.operations_); });
    state_.section(state_section::ledger, [this] { capture(); });
    if constexpr (State::reads) {
      while (state_.next_section() == state_section::space) space(0);
    } else {
      for (std::size_t id = 0; id < ledger::max_spaces; ++id) {
        if (events_.spaces_[id] != nullptr) space(static_cast<std::uint8_t>(id));
      }
    }
    state_.section(state_section::threads, [this] { threads(&ledger_state::open_operations); });
    state_.section(state_section::thread_usage, [this] { threads(&ledger_state::usages); });
    state_.section(state_section::checkpoints,
                   [this] { saved_segments::checkpoints(state_, events_.checkpoints_, operation_count()); });
    state_.section(state_section::memories, [this] { memories(); });
    if (revision > 1) state_.section(state_section::step_ends, [this] { step_ends(); });
    if (revision > 2) {
      state_.section(state_section::adoptions, [this] { adoptions(); });
      state_.section(state_section::inferred, [this] { inferred(); });
    }
    if (revision > 3) state_.section(state_section::freed_categories, [this] { freed_categories(); });
    if constexpr (State::reads) {
      settle_memories();
      state_.require(state_.is_at_end());
      events_.events_of_saved_state_ = events_.events_;
    }
  }

 private:
  [[nodiscard]] std::size_t operation_count() const noexcept { return events_.operations().size(); }

  void capture() noexcept {
    state_.numbers(events_.stamp_, events_.segment_begin_, events_.dropped_events_, events_.reentrant_events_,
                   events_.missing_events_, events_.other_names_, events_.are_more_missing_, events_.has_ended_);
    state_.amounts(events_.events_, events_.rejected_events_);
    saved_threads::faults(state_, events_.operations_);
    saved_segments::clock(state_, events_.clock_);
    saved_segments::history(state_, events_.history_);
    state_.require(events_.segment_begin_ <= events_.stamp_);
  }

  void space(std::uint8_t id) noexcept {
    state_.section(state_section::space, [&] {
      state_.number(id);
      if constexpr (State::reads) {
        state_.require(id < ledger::max_spaces && events_.spaces_[id] == nullptr);
        if (state_.has_failed() || events_.make_space(id) == nullptr) return state_.require(false);
      }
      saved_spaces::space(state_, *events_.spaces_[id], operation_count(), events_.history_);
    });
    state_.section(state_section::blocks, [&] {
      std::uint8_t same = id;
      state_.number(same);
      state_.require(same == id);
      if (!state_.has_failed()) saved_spaces::blocks(state_, *events_.spaces_[id]);
    });
  }

  /// Calls `part(ring, thread)` for each thread.
  template <class Part>
  void threads(Part&& part) noexcept {
    std::size_t count = 0;
    for (const thread_state* thread : events_.threads_) count += thread == nullptr ? 0 : 1;
    if constexpr (State::reads) {
      state_.number(count);
      for (; count != 0 && !state_.has_failed(); --count) {
        std::uint32_t ring = 0;
        state_.number(ring);
        thread_state* const thread = state_.has_failed() ? nullptr : events_.find_thread(ring);
        state_.require(thread != nullptr);
        if (!state_.has_failed()) (this->*part)(*thread);
      }
    } else {
      state_.number(count);
      for (std::uint32_t ring = 0; ring < events_.threads_.size(); ++ring) {
        if (events_.threads_[ring] == nullptr) continue;
        state_.number(ring);
        (this->*part)(*events_.threads_[ring]);
      }
    }
  }

  using thread_part = std::conditional_t<State::reads, thread_state, const thread_state>;

  void open_operations(thread_part& thread) noexcept {
    state_.numbers(thread.thread, thread.unfollowed_scopes);
    state_.require(thread.thread <= block::max_thread);
    saved_threads::open_operations(state_, thread.scopes, operation_count());
  }
  void usages(thread_part& thread) noexcept {
    saved_threads::usages(state_, thread.scopes, [this](std::uint8_t id) { return events_.spaces_[id] != nullptr; });
  }

  void adoptions() noexcept {
    saved_threads::adoptions(state_, events_.operations_, events_.threads_.size(), [this](std::uint32_t ring) {
      return ring < events_.threads_.size() ? events_.threads_[ring] : nullptr;
    });
  }
  void inferred() noexcept {
    for (auto* space : events_.spaces_) {
      if (space != nullptr && !state_.has_failed()) saved_spaces::inferred(state_, *space);
    }
  }

  void freed_categories() noexcept {
    for (auto* space : events_.spaces_) {
      if (space != nullptr && !state_.has_failed()) saved_spaces::freed_since_peaks(state_, *space);
    }
  }

  void memories() noexcept {
    std::size_t count = events_.memories_.size();
    state_.number(count);
    state_.require(count == events_.memories_.size());
    for (auto* memory : events_.memories_) {
      if (state_.has_failed()) return;
      saved_spaces::memory(state_, *memory, operation_count(), events_.history_);
      for (std::size_t id = 0; id < ledger::max_spaces; ++id) {
        auto* const space = events_.spaces_[id];
        if (space == nullptr || space->shared() == nullptr || &space->shared()->memory() != memory) continue;
        saved_spaces::share(state_, *space->shared(), space->allocation_count(), operation_count());
      }
      const std::uint8_t named_spaces[] = {memory->peak_space, memory->sole_space};
      for (const std::uint8_t id : named_spaces) state_.require(id == any_space || events_.spaces_[id] != nullptr);
      state_.require(memory->sole_space != any_space || memory->peak_space != any_space || memory->peak == 0);
    }
  }
  void step_ends() noexcept {
    saved_segments::choice_of_step_ends(state_, events_.history_);
    for (auto* space : events_.spaces_) {
      if (space != nullptr && !state_.has_failed())
        saved_spaces::ends_of_steps(state_, *space, operation_count(), events_.history_);
    }
  }
  /// Starts with no space active.
  void settle_memories() noexcept {
    for (shared_memory* memory : events_.memories_) {
      memory->active = nullptr;
      memory->others = 0;
    }
    for (const space_ledger* space : events_.spaces_) {
      if (space != nullptr && space->shared() != nullptr) space->shared()->memory().others += space->live();
    }
    for (shared_memory* memory : events_.memories_) state_.require(memory->peak >= memory->others || !memory->is_known);
  }

  State& state_;
  Ledger& events_;
};

/// Writes a ledger's state as the bytes of a saved state. False if the system has no memory for it. Linear in the live blocks,
/// operations and segments.
[[nodiscard]] inline bool write_saved_state(ledger& events, page_array<unsigned char>& bytes) noexcept {
  events.settle_spaces();
  state_writer out{bytes};
  ledger_state{out, std::as_const(events)}.transfer();
  return out.finish();
}

/// Replaces a ledger's state with that of the ledger that wrote it; options and limits of the two must be equal. False,
/// with the ledger reset, if it is damaged or the system has no memory for it. One of a later revision, from a newer
/// memprof, is ignored.
[[nodiscard]] inline bool read_saved_state(ledger& events, const unsigned char* bytes, std::size_t size) noexcept {
  std::uint32_t revision = 0;
  state_reader{bytes, size}.number(revision);
  if (revision > state_revision) return true;
  events.forget();
  state_reader in{bytes, size};
  ledger_state{in, events}.transfer();
  if (in.has_failed()) events.forget();
  return !in.has_failed();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
