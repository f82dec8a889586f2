#pragma once

#include <memprof/detail/errno_guard.hpp>
#include <memprof/detail/process.hpp>
#include <memprof/detail/signal_guard.hpp>
#include <memprof/record/event_order.hpp>
#include <memprof/record/event_ring.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

/// @file
/// The producer side of the event path. `record` is the hot path: no lock, no allocation, no system call, one 32-byte store and
/// one release store in the calling thread's own ring.

namespace memprof::inline MEMPROF_ABI::detail {

/// Hides what this thread does from its own hooks until the end of the scope. Nests.
class [[nodiscard]] activity_guard {
 public:
  explicit activity_guard(activity doing) noexcept : activity_guard(abi_1::this_thread, doing) {}
  activity_guard(thread_slot& self, activity doing) noexcept
      : self_(self), before_(self.doing().load(std::memory_order_relaxed)) {
    self.doing().store(doing, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  activity_guard(const activity_guard&) = delete;
  activity_guard& operator=(const activity_guard&) = delete;
  ~activity_guard() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Release pairs with the acquire load in `is_in_flight`. The thread may have got a ring in the meantime.
    self_.doing().store(before_, std::memory_order_release);
  }

 private:
  thread_slot& self_;
  activity before_;
};

/// Until the end of the scope, whatever comes from the global `operator new` belongs to the profiler, or to a block that is being
/// recorded as a whole: the hooks of `operator new` skip it. Everything else is recorded.
class [[nodiscard]] recording_suppressor : activity_guard {
 public:
  recording_suppressor() noexcept : activity_guard(activity::nested) {}
};

/// The calling thread works for the profiler in ways that its own hooks may see. Signals are blocked meanwhile: what their
/// handlers allocate would be indistinguishable from the profiler's own work.
class [[nodiscard]] internal_guard {
 public:
  internal_guard() noexcept : hidden_(activity::internal) {}

 private:
  signal_guard signals_;  // first, so that pending handlers run once the thread is outside again
  activity_guard hidden_;
};

/// The calling thread holds the registry's lock, and works for the profiler in ways that its own hooks may see.
class [[nodiscard]] internal_control_guard {
 public:
  explicit internal_control_guard(registry& shared) noexcept : lock_(shared) {}

 private:
  registry_guard lock_;  // first, as in `control_guard`; an `internal_guard` around it would keep handlers from running
  internal_guard hidden_;
};

/// The calling thread holds the registry's lock and allocates nothing that a hook sees.
class [[nodiscard]] control_guard {
 public:
  control_guard() noexcept : control_guard(abi_1::process_registry) {}
  explicit control_guard(registry& shared) noexcept : lock_(shared), hidden_(activity::busy) {}

 private:
  registry_guard lock_;  // first: a handler may run while the thread waits for it, and leave by `siglongjmp`
  activity_guard hidden_;
};

/// Writes the event after the ring's last and publishes it.
template <class Pauses>
[[gnu::always_inline]] inline void publish(event_ring& ring, event* slot, std::uint64_t stamp, std::uint64_t address,
                                           std::uint64_t bytes, std::uint64_t tail) noexcept {
  slot->stamp = stamp;
  slot->address = address;
  slot->bytes = bytes;
  __builtin_memcpy(&slot->label, &tail, sizeof tail);
  Pauses::reach(path_step::slot_written);
  ring.cursor.store(slot + 1, std::memory_order_relaxed);
  // Release pairs with the acquire load of the head in a drain.
  ring.slots->published.store(slot + 1, std::memory_order_release);
  Pauses::reach(path_step::published);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Release pairs with the acquire load in `is_in_flight`.
  ring.doing.store(activity::idle, std::memory_order_release);
}

/// Continues with an event that needs a stamp: several threads record, or this one has not yet shown that it is alone.
template <class Pauses>
[[gnu::noinline]] void record_stamped(registry& shared, event_ring& ring, std::uint64_t address, std::uint64_t bytes,
                                      std::uint64_t tail, std::uint64_t word) noexcept {
  const std::uint64_t stamp = word == order_shared ? shared.stamps.next() : claim_order(shared, ring, word);
  publish<Pauses>(ring, ring.cursor.load(std::memory_order_relaxed), stamp, address, bytes, tail);
}

template <class Pauses>
void record_words(registry& shared, thread_slot& self, std::uint64_t address, std::uint64_t bytes, std::uint64_t tail) noexcept;

/// Counts an event that is lost for want of memory, and says now and then in the trace how many there are: a process that is
/// killed cannot say so at its end. Under the lock.
[[gnu::cold]] inline void lose_event(registry& shared) noexcept {
  const std::uint64_t dropped = shared.dropped_events.fetch_add(1, std::memory_order_relaxed) + 1;
  // A thread that forks may be in the child already, where the trace is the parent's.
  if (!std::has_single_bit(dropped) || shared.put_event == nullptr || registry_guard::is_forking(shared)) return;
  const std::uint64_t reentrant = shared.reentrant_events.load(std::memory_order_relaxed);
  shared.put_event(shared, {0, dropped, reentrant, 0, event_kind::lost_events, any_space, 0});
}

/// Records the first event of a thread in a capture, or one that finds its ring full.
template <class Pauses>
[[gnu::cold, gnu::noinline]] void record_without_room(registry& shared, thread_slot& self, std::uint64_t address,
                                                      std::uint64_t bytes, std::uint64_t tail) noexcept {
  const errno_guard kept;  // locking and mapping make system calls
  room found = room::none;
  label thread_name = 0;
  {
    const bool may_wait = !shared.drop_when_full.load(std::memory_order_relaxed) || !self.has_ring() ||
                          self.ring->limit.load(std::memory_order_relaxed) == nullptr;
    // A thread under `overflow::drop` must not wait, and while another thread holds the lock it is unknown whether the ring was
    // emptied.
    if (may_wait) {
      const registry_guard lock{shared};
      const activity_guard guard{self, activity::busy};
      found = shared.make_room(shared, self);
      if (found == room::none) return lose_event(shared);
      if (found == room::made_for_new_thread) thread_name = detail::intern(shared, thread_title{}.view());
    } else if (registry_guard lock{shared, try_to_lock{}}) {
      const activity_guard guard{self, activity::busy};
      found = shared.make_room(shared, self);
    }
  }
  if (found == room::none) {
    shared.dropped_events.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (found == room::made_for_new_thread) {
    record_words<Pauses>(shared, self, self.ring->thread, thread_id(),
                         packed_tail({0, 0, 0, thread_name, event_kind::thread_begin, any_space, 0}));
  }
  record_words<Pauses>(shared, self, address, bytes, tail);
}

/// Handles an allocation while this thread is inside the profiler: by the profiler itself, the upstream of a tracked resource, or
/// a signal handler. Only the last is a loss.
[[gnu::cold, gnu::noinline]] inline void note_reentrant(registry& shared, activity doing) noexcept {
  if (doing == activity::internal || doing == activity::nested) return;
  shared.reentrant_events.fetch_add(1, std::memory_order_relaxed);
}

/// Whether the calling thread is outside the profiler. If it is not, it may hold the registry's lock, and the caller is a signal
/// handler that interrupted it and must not wait for that lock.
[[nodiscard]] inline bool is_outside(thread_slot& self) noexcept {
  const activity doing = self.doing().load(std::memory_order_relaxed);
  return doing == activity::idle || doing == activity::nested;
}

/// Whether the calling thread is inside the record of an event, and so holds no lock: a signal handler interrupted it, and either
/// still runs or has left by `siglongjmp`, by an exception or to another stack, so that the record may never finish.
[[nodiscard]] inline bool is_inside_record(thread_slot& self) noexcept {
  return self.doing().load(std::memory_order_relaxed) == activity::recording;
}

/// Gives up the ring of a thread that is inside the record of an event, so that its next events are recorded, in another ring.
/// The event counts as lost. Should its record go on after all, it finishes in the ring that was given up; until then, no thread
/// takes that over. A few rings at most are given up in this way: then the thread's events count as lost.
[[gnu::cold, gnu::noinline]] inline void leave_unfinished_record(registry& shared, thread_slot& self) noexcept {
  constexpr int most_left = 64;
  note_reentrant(shared, activity::recording);
  const registry_guard lock{shared};
  int left = 0;
  for (const event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    if (ring->thread == 0 && ring->doing.load(std::memory_order_relaxed) == activity::recording) ++left;
  }
  if (left >= most_left) return;
  event_ring& unfinished = *self.ring;
  self.doing_without_ring.store(activity::idle, std::memory_order_relaxed);
  self.ring = &no_ring;
  unfinished.thread = 0;
  unfinished.owner.give_up();
}

/// Whether the calling thread may take the registry's lock, which is false inside a control call. Notices a record that never
/// finished.
[[nodiscard]] inline bool may_take_lock(registry& shared, thread_slot& self) noexcept {
  if (is_inside_record(self)) leave_unfinished_record(shared, self);
  const activity doing = self.doing().load(std::memory_order_relaxed);
  return doing == activity::idle || doing == activity::nested || doing == activity::recording;
}

/// Whether a capture is active and the calling thread is outside the profiler. A signal handler that interrupts the profiler must
/// not wait for a lock that its thread may hold; its request is counted instead.
[[nodiscard]] inline bool may_control() noexcept {
  registry& shared = abi_1::process_registry;
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) return false;
  thread_slot& self = abi_1::this_thread;
  if (is_outside(self)) return true;
  note_reentrant(shared, self.doing().load(std::memory_order_relaxed));
  return false;
}

/// Records an event of a thread that has no ring or is inside the profiler. A tracked resource used by another one still records,
/// in its own space.
template <class Pauses>
[[gnu::cold, gnu::noinline]] void record_inside(registry& shared, thread_slot& self, std::uint64_t address, std::uint64_t bytes,
                                                std::uint64_t tail) noexcept {
  const activity doing = self.doing().load(std::memory_order_relaxed);
  if (doing != activity::nested && doing != activity::idle) return note_reentrant(shared, doing);
  const activity_guard outside{self, activity::idle};
  if (!self.has_ring()) return record_without_room<Pauses>(shared, self, address, bytes, tail);
  record_words<Pauses>(shared, self, address, bytes, tail);
}

/// A thread that records alone still stamps one event in this many, so that timelines know when things happened.
inline constexpr std::uintptr_t stamp_interval = 64;

/// Records one event of a thread that is not inside the profiler, and sets its stamp. The arguments stay in registers, and every
/// departure from the usual path is a tail call, so that this path saves no registers and has no stack frame.
template <class Pauses>
[[gnu::always_inline]] inline void record_idle(registry& shared, thread_slot& self, std::uint64_t address, std::uint64_t bytes,
                                               std::uint64_t tail) noexcept {
  event_ring& ring = *self.ring;
  // Set before the word is read: `is_in_flight` relies on it. The store may still wait in this core's buffer when the word is
  // read; the process-wide barrier on the draining side handles that, so nothing is needed here.
  ring.doing.store(activity::recording, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  event* const slot = ring.cursor.load(std::memory_order_relaxed);
  // Relaxed: the barrier in `start_recording` makes a new limit visible. A null limit takes this branch too.
  if (slot >= ring.limit.load(std::memory_order_relaxed)) [[unlikely]] {
    ring.doing.store(activity::idle, std::memory_order_relaxed);
    return record_without_room<Pauses>(shared, self, address, bytes, tail);
  }
  // Acquire pairs with the exchange in `claim_order`: an event that depends on another thread's stamped one sees `shared`.
  const std::uint64_t word = shared.order_word.load(std::memory_order_acquire);
  Pauses::reach(path_step::word_read);
  if (word != ring.order_word) [[unlikely]]
    return record_stamped<Pauses>(shared, ring, address, bytes, tail, word);
  if (reinterpret_cast<std::uintptr_t>(slot) % (stamp_interval * sizeof(event)) == 0) [[unlikely]]
    return record_stamped<Pauses>(shared, ring, address, bytes, tail, order_shared);
  publish<Pauses>(ring, slot, 0, address, bytes, tail);
}

/// Records one event and sets its stamp.
template <class Pauses>
[[gnu::always_inline]] inline void record_words(registry& shared, thread_slot& self, std::uint64_t address, std::uint64_t bytes,
                                                std::uint64_t tail) noexcept {
  if (self.ring->doing.load(std::memory_order_relaxed) != activity::idle) [[unlikely]]
    return record_inside<Pauses>(shared, self, address, bytes, tail);
  record_idle<Pauses>(shared, self, address, bytes, tail);
}

/// Records one event and sets its stamp. For the process's own registry, use `memprof::detail::record_event`.
template <class Pauses>
[[gnu::always_inline]] inline void record(registry& shared, thread_slot& self, const event& described) noexcept {
  record_words<Pauses>(shared, self, described.address, described.bytes, packed_tail(described));
}

/// Records one event of the calling thread if a capture is active.
[[gnu::always_inline]] inline void record_event(const event& described) noexcept {
  registry& shared = abi_1::process_registry;
  // Relaxed: whether a call that overlaps `begin_capture` or `end_capture` belongs to the capture is unspecified anyway.
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  record<no_pauses>(shared, abi_1::this_thread, described);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
