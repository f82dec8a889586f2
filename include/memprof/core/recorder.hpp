#pragma once

#include <memprof/core/drain.hpp>
#include <memprof/core/event.hpp>
#include <memprof/core/event_order.hpp>
#include <memprof/core/event_ring.hpp>
#include <memprof/core/registry.hpp>
#include <memprof/detail/errno_guard.hpp>

#include <atomic>
#include <cstdint>
#include <new>

/// @file
/// The producer's side of the event path. `record` is the hot path: no lock, no allocation, no system call, one 32-byte store
/// and one release store in the calling thread's own ring.

namespace memprof::detail {

/// Hides what this thread does from its own hooks until the end of the scope. Nests.
class [[nodiscard]] activity_guard {
 public:
  activity_guard(thread_context& self, activity doing) noexcept
      : self_(self), before_(self.doing.load(std::memory_order_relaxed)) {
    self.doing.store(doing, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  activity_guard(const activity_guard&) = delete;
  activity_guard& operator=(const activity_guard&) = delete;
  ~activity_guard() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Release pairs with the acquire load in `grant_order`.
    self_.doing.store(before_, std::memory_order_release);
  }

 private:
  thread_context& self_;
  activity before_;
};

/// What is taken from the global `operator new` until the end of the scope belongs to the profiler, or to a block that is being
/// recorded as a whole: the hooks of `operator new` leave it out. Everything else is recorded.
class [[nodiscard]] nested_allocation : activity_guard {
 public:
  nested_allocation() noexcept : activity_guard(abi_1::this_thread, activity::nested) {}
};

/// Makes a thread's ring ready for events from its first slot on. Under the lock, with the ring drained.
inline void rewind_ring(thread_context& self, event_ring& ring) noexcept {
  ring.tail = ring.first;
  self.cursor = ring.first;
  self.limit = ring.first + ring.capacity;
  // Release pairs with the acquire load of a drain, which must not see old events before the new head.
  ring.head.store(ring.first, std::memory_order_release);
}

/// A ring with pages of its own, or null if the system has none. Under the lock.
[[nodiscard]] inline event_ring* make_ring(registry& shared) noexcept {
  if (!reserve_drain_heap(shared)) return nullptr;
  void* const ring_pages = map_pages(sizeof(event_ring));
  if (ring_pages == nullptr) return nullptr;
  void* const events = map_pages(shared.ring_capacity * sizeof(event));
  if (events == nullptr) {
    unmap_pages(ring_pages, sizeof(event_ring));
    return nullptr;
  }
  event_ring* const ring = new (ring_pages) event_ring;
  ring->first = ring->tail = static_cast<event*>(events);
  ring->head.store(ring->first, std::memory_order_relaxed);
  ring->capacity = shared.ring_capacity;
  ring->id = ++shared.ring_count;
  ring->next = shared.rings.load(std::memory_order_relaxed);
  shared.ring_bytes += ring->bytes();
  // Release pairs with whoever walks the list: the ring is complete.
  shared.rings.store(ring, std::memory_order_release);
  return ring;
}

/// Exchanges a drained ring's space for one of the size that is asked for now. Keeps the old one if there is no memory.
inline void resize_ring(registry& shared, event_ring& ring) noexcept {
  void* const events = map_pages(shared.ring_capacity * sizeof(event));
  if (events == nullptr) return;
  shared.ring_bytes -= ring.bytes();
  unmap_pages(ring.first, ring.capacity * sizeof(event));
  ring.first = static_cast<event*>(events);
  ring.capacity = shared.ring_capacity;
  shared.ring_bytes += ring.bytes();
}

/// Empties the ring of the calling thread, by draining all if `may_drain`. False if it could not be emptied. Under the lock.
inline bool empty_own_ring(registry& shared, thread_context& self, bool may_drain) noexcept {
  event_ring& ring = *self.ring;
  if (shared.drain == nullptr) {
    ring.tail = self.cursor;  // recorded while the last capture ended: they belong to none
  } else if (may_drain) {
    // Own events are older than the drain's clock reading, so one drain takes them all; the loop costs nothing and says so.
    while (ring.tail != self.cursor) shared.drain(shared);
  }
  if (ring.tail != self.cursor) return false;
  if (ring.capacity != shared.ring_capacity) resize_ring(shared, ring);
  rewind_ring(self, ring);
  return true;
}

/// Gives the thread a ring that no living thread has; false if there is no memory. Under the lock.
[[nodiscard]] inline bool attach_ring(registry& shared, thread_context& self) noexcept {
  event_ring* ring = shared.rings.load(std::memory_order_relaxed);
  while (ring != nullptr && ring->owner != nullptr) ring = ring->next;
  if (ring != nullptr && ring->tail != ring->head.load(std::memory_order_relaxed)) {
    // Its last thread left events. Taking them now keeps the number of rings to that of living threads.
    if (shared.drain != nullptr && !shared.drop_when_full) shared.drain(shared);
    if (ring->tail != ring->head.load(std::memory_order_relaxed)) ring = nullptr;
  }
  if (ring == nullptr) ring = make_ring(shared);
  if (ring == nullptr) return false;
  ring->owner = &self;
  self.ring = ring;
  self.order_word = order_unclaimed;  // a thread new to a ring stamps its first event
  if (ring->capacity != shared.ring_capacity) resize_ring(shared, *ring);
  for (auto& cached : ring->label_cache) cached = {};
  rewind_ring(self, *ring);
  return true;
}

/// Lets go of the thread's ring; its events stay until they are drained.
inline void detach_ring(registry& shared, thread_context& self) noexcept {
  if (self.ring == nullptr) return;
  const lock_guard guard{shared.lock};
  self.ring->owner = nullptr;
  self.ring = nullptr;
  self.cursor = self.limit = nullptr;
}

template <class Pauses>
void record(registry& shared, thread_context& self, const event& described) noexcept;

/// Lets the process's threads give their rings back; armed by a thread's first event.
struct thread_exit_hook {
  thread_context* context = nullptr;
  registry* shared = nullptr;
  thread_exit_hook() = default;
  thread_exit_hook(const thread_exit_hook&) = delete;
  thread_exit_hook& operator=(const thread_exit_hook&) = delete;
  ~thread_exit_hook() {
    if (context == nullptr) return;
    const activity_guard guard{*context, activity::draining};
    detach_ring(*shared, *context);
    context->has_exited = true;
  }
};

/// Records for a thread whose thread-local objects are gone, in the ring that all such threads share.
template <class Pauses>
[[gnu::cold, gnu::noinline]] void record_after_exit(registry& shared, const event& described) noexcept {
  const activity_guard guard{abi_1::this_thread, activity::draining};
  const lock_guard lock{shared.lock};
  thread_context& stand_in = shared.exited_threads;
  if (stand_in.ring == nullptr && !attach_ring(shared, stand_in)) {
    shared.dropped_events.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (stand_in.cursor == stand_in.limit && !empty_own_ring(shared, stand_in, !shared.drop_when_full)) {
    shared.dropped_events.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  record<Pauses>(shared, stand_in, described);
}

/// The first event of a thread, or one that finds its ring full.
template <class Pauses>
[[gnu::cold, gnu::noinline]] void record_without_room(registry& shared, thread_context& self, const event& described) noexcept {
  const errno_guard kept;  // locks and pages ask the system
  if (self.has_exited) return record_after_exit<Pauses>(shared, described);
  bool has_room = false;
  bool is_first = false;
  {
    const activity_guard guard{self, activity::draining};
    if (self.ring == nullptr && &self == &abi_1::this_thread) {
      thread_local thread_exit_hook hook;
      hook.context = &self;
      hook.shared = &shared;
    }
    is_first = self.ring == nullptr;
    // A thread that asked to drop must not wait, and while the lock is held nobody can say whether its ring was emptied.
    if (is_first || !shared.drop_when_full) {
      shared.lock.lock();
    } else if (!shared.lock.try_lock()) {
      shared.dropped_events.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const lock_guard lock{shared.lock, adopt_lock{}};
    has_room = is_first ? attach_ring(shared, self) : empty_own_ring(shared, self, !shared.drop_when_full);
  }
  if (!has_room) {
    shared.dropped_events.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (is_first) record<Pauses>(shared, self, {0, 0, 0, 0, event_kind::thread_begin, 0, 0});
  record<Pauses>(shared, self, described);
}

/// Somebody allocates while this thread is inside the profiler: the profiler itself, the upstream of a tracked resource, or a
/// signal handler. Only the last is a loss.
[[gnu::cold, gnu::noinline]] inline void note_reentrant(registry& shared, activity doing) noexcept {
  if (doing == activity::internal || doing == activity::nested) return;
  shared.reentrant_events.fetch_add(1, std::memory_order_relaxed);
}

/// Whether the calling thread is outside the profiler. If not, it may hold the registry's lock already, and who asks is a signal
/// handler that interrupted it: it must not wait for that lock.
[[nodiscard]] inline bool is_outside(const thread_context& self) noexcept {
  const activity doing = self.doing.load(std::memory_order_relaxed);
  return doing == activity::idle || doing == activity::nested;
}

/// An event of a thread that is inside the profiler. A tracked resource below another one speaks for a space of its own.
template <class Pauses>
[[gnu::cold, gnu::noinline]] void record_inside(registry& shared, thread_context& self, const event& described) noexcept {
  const activity doing = self.doing.load(std::memory_order_relaxed);
  if (doing != activity::nested) return note_reentrant(shared, doing);
  const activity_guard outside{self, activity::idle};
  record<Pauses>(shared, self, described);
}

/// A thread that is alone still stamps one event in so many, so that timelines know when things happened.
inline constexpr std::uintptr_t stamp_interval = 64;

/// Records one event of a thread that is not inside the profiler; its stamp is set here.
template <class Pauses>
[[gnu::always_inline]] inline void record_idle(registry& shared, thread_context& self, const event& described) noexcept {
  // Set before the word is read: `grant_order` relies on it. The store may still wait in this core's buffer when the word is
  // read; the granting side's process-wide barrier takes care of that, so that nothing here has to.
  self.doing.store(activity::recording, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  event* const slot = self.cursor;
  if (slot == self.limit) [[unlikely]] {
    self.doing.store(activity::idle, std::memory_order_relaxed);
    const event copy = described;  // only here is its address needed: otherwise it never leaves the registers
    return record_without_room<Pauses>(shared, self, copy);
  }
  // Acquire pairs with the exchange in `claim_order`: an event that depends on another thread's stamped one sees `shared`.
  const std::uint64_t word = shared.order_word.load(std::memory_order_acquire);
  Pauses::reach(path_step::word_read);
  std::uint64_t stamp = 0;
  if (word != self.order_word) [[unlikely]] {
    stamp = word == order_shared ? shared.stamps.next() : claim_order(shared, self, word);
  } else if (reinterpret_cast<std::uintptr_t>(slot) % (stamp_interval * sizeof(event)) == 0) {
    stamp = shared.stamps.next();
  }
  // Field by field: copied as a whole it would be written to the stack first, and waited for.
  slot->stamp = stamp;
  slot->address = described.address;
  slot->bytes = described.bytes;
  slot->label = described.label;
  slot->kind = described.kind;
  slot->space = described.space;
  slot->tag = described.tag;
  Pauses::reach(path_step::slot_written);
  self.cursor = slot + 1;
  // Release pairs with the acquire load of the head in a drain.
  self.ring->head.store(slot + 1, std::memory_order_release);
  Pauses::reach(path_step::published);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Release pairs with the acquire load in `grant_order`.
  self.doing.store(activity::idle, std::memory_order_release);
}

/// Records one event; its stamp is set here. For the process, call `memprof::detail::record_event`.
template <class Pauses>
[[gnu::always_inline]] inline void record(registry& shared, thread_context& self, const event& described) noexcept {
  if (self.doing.load(std::memory_order_relaxed) != activity::idle) [[unlikely]] {
    const event copy = described;
    return record_inside<Pauses>(shared, self, copy);
  }
  record_idle<Pauses>(shared, self, described);
}

/// Records one event of the calling thread if a capture is active.
[[gnu::always_inline]] inline void record_event(const event& described) noexcept {
  registry& shared = abi_1::process_registry;
  // Relaxed: whether a call that overlaps `begin_capture` or `end_capture` is part of the capture is open anyway.
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  record<no_pauses>(shared, abi_1::this_thread, described);
}

}  // namespace memprof::detail
