#pragma once

#include <memprof/detail/pages.hpp>
#include <memprof/record/drain.hpp>
#include <memprof/record/event_order.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/rings.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

/// @file
/// An event path of its own (registry, contexts, drain) whose threads stand still at every step until the test tells them to go
/// on. Only one of them runs at a time, so a schedule is a sequence of choices: the same choices give the same execution.

namespace stepped {

using memprof::detail::path_step;

/// A thread that makes one call at a time and stands still at every step of the event path.
class thread {
 public:
  thread() : worker_([this] { work(); }) {}
  thread(const thread&) = delete;
  thread& operator=(const thread&) = delete;
  ~thread() {
    {
      const std::lock_guard lock{mutex_};
      is_ending_ = true;
      state_ = state::running;
    }
    changed_.notify_all();
    worker_.join();
  }

  /// Begins `call` and returns when it stands at its first step or has returned.
  void start(std::function<void()> call) {
    call_ = std::move(call);
    resume();
  }
  /// Lets a call that stands go on to its next step or its end.
  void resume() {
    std::unique_lock lock{mutex_};
    state_ = state::running;
    changed_.notify_all();
    changed_.wait(lock, [this] { return state_ != state::running; });
  }
  /// Lets it go on until it stands at `step`; false if the call returned before.
  bool resume_until(path_step step) {
    while (is_standing()) {
      if (at_ == step) return true;
      resume();
    }
    return false;
  }
  bool start_until(path_step step, std::function<void()> call) {
    start(std::move(call));
    return resume_until(step);
  }
  void finish() {
    while (is_standing()) resume();
  }
  void run(std::function<void()> call) {
    start(std::move(call));
    finish();
  }

  [[nodiscard]] bool is_standing() const { return state_ == state::standing; }
  [[nodiscard]] path_step at() const { return at_; }

  /// Called on the thread itself by the event path.
  void stand(path_step step) {
    std::unique_lock lock{mutex_};
    at_ = step;
    state_ = state::standing;
    changed_.notify_all();
    changed_.wait(lock, [this] { return state_ == state::running; });
  }

  static inline thread_local thread* current = nullptr;

 private:
  enum class state { idle, running, standing };

  void work() {
    current = this;
    std::unique_lock lock{mutex_};
    for (;;) {
      changed_.wait(lock, [this] { return state_ == state::running; });
      if (is_ending_) return;
      lock.unlock();
      call_();
      lock.lock();
      state_ = state::idle;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  state state_ = state::idle;
  path_step at_{};
  bool is_ending_ = false;
  std::function<void()> call_;
  std::thread worker_;  // last: it uses all of the above
};

/// The schedule policy of the event path.
struct pauses {
  static void reach(path_step step) noexcept {
    if (thread::current != nullptr) thread::current->stand(step);
  }
};

/// A drain's consumer that keeps the order of the calls.
struct drained_order {
  std::vector<memprof::extend::event> events;  ///< without `thread_begin`

  void apply(const memprof::extend::event* first, const memprof::extend::event* last, std::uint32_t) noexcept {
    for (; first != last; ++first) {
      if (first->kind != memprof::extend::event_kind::thread_begin) events.push_back(*first);
    }
  }
};

/// When a call began and ended, in steps of the schedule. A call's number is its event's address.
struct call_span {
  std::uint64_t begin;
  std::uint64_t end;
};

/// A registry with its rings, and the calls that were made.
class event_path {
 public:
  explicit event_path(std::uint32_t ring_capacity) {
    shared.ring_capacity = ring_capacity;
    shared.capture_count = 1;
    shared.make_room = memprof::detail::make_room;
    shared.capture = &drained;
    shared.drain = drain;
    memprof::detail::prepare_order(shared);
  }
  event_path(const event_path&) = delete;
  event_path& operator=(const event_path&) = delete;
  ~event_path() {
    memprof::detail::event_ring* ring = shared.rings.load();
    while (ring != nullptr) {
      memprof::detail::event_ring* const next = ring->next;
      memprof::detail::unmap_pages(ring->slots, memprof::detail::ring_slots::bytes_for(ring->slots->capacity));
      memprof::detail::unmap_pages(ring, sizeof(memprof::detail::event_ring));
      ring = next;
    }
    memprof::detail::unmap_pages(shared.drain_heap, shared.drain_heap_capacity * sizeof(memprof::detail::event_ring*));
  }

  /// A context for a thread that has not recorded yet.
  memprof::detail::thread_slot& new_context() { return contexts_.emplace_back(); }

  /// The number of a call that begins now.
  std::uint64_t begin_call() {
    calls.push_back({++time, 0});
    return calls.size() - 1;
  }
  void end_call(std::uint64_t call) { calls[call].end = ++time; }

  /// A call that records one event.
  [[nodiscard]] std::function<void()> record(memprof::detail::thread_slot& context, std::uint64_t call,
                                             memprof::extend::event_kind kind = memprof::extend::event_kind::allocate,
                                             std::uint64_t bytes = 1) {
    return [this, &context, call, kind, bytes] {
      memprof::detail::record<pauses>(shared, context, {0, call, bytes, 0, kind, 0, 0});
    };
  }
  /// What a snapshot does to the event path.
  [[nodiscard]] std::function<void()> snapshot(memprof::detail::thread_slot& context) {
    return [this, &context] {
      const memprof::detail::activity_guard hidden{context, memprof::detail::activity::busy};
      const memprof::detail::lock_guard lock{shared.lock};
      shared.drain(shared);
    };
  }
  /// What the end of a thread does to it.
  [[nodiscard]] std::function<void()> exit_thread(memprof::detail::thread_slot& context) {
    return [this, &context] {
      const memprof::detail::activity_guard hidden{context, memprof::detail::activity::busy};
      memprof::detail::detach_ring(shared, context);
    };
  }

  /// Records one event from begin to end with nobody in between.
  std::uint64_t record_at_once(thread& worker, memprof::detail::thread_slot& context) {
    const std::uint64_t call = begin_call();
    worker.run(record(context, call));
    end_call(call);
    return call;
  }

  /// Whether every call was drained once, in an order in which each takes effect between its begin and its end.
  [[nodiscard]] bool is_in_a_possible_order() const {
    if (drained.events.size() != calls.size()) return false;
    std::vector<bool> was_drained(calls.size());
    std::uint64_t latest_begin = 0;
    for (const memprof::extend::event& event : drained.events) {
      if (event.address >= calls.size() || was_drained[event.address]) return false;
      was_drained[event.address] = true;
      // One that was drained before began only after this one had ended.
      if (latest_begin > calls[event.address].end) return false;
      if (calls[event.address].begin > latest_begin) latest_begin = calls[event.address].begin;
    }
    return true;
  }

  /// Where in the order a call was drained; the number of drained calls if it was not.
  [[nodiscard]] std::size_t place_of(std::uint64_t call) const {
    std::size_t place = 0;
    while (place < drained.events.size() && drained.events[place].address != call) ++place;
    return place;
  }

  memprof::registry shared;
  drained_order drained;
  std::vector<call_span> calls;
  std::uint64_t time = 0;

 private:
  static void drain(memprof::registry& shared) noexcept {
    memprof::detail::drain_rings<pauses>(shared, *static_cast<drained_order*>(shared.capture));
  }

  std::deque<memprof::detail::thread_slot> contexts_;
};

}  // namespace stepped
