#pragma once

#include <memprof/detail/errno_guard.hpp>
#include <memprof/detail/process.hpp>
#include <memprof/detail/signal_guard.hpp>
#include <memprof/record/drain.hpp>
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
/// The producer's side of the event path. `record` is the hot path: no lock, no allocation, no system call, one 32-byte store
/// and one release store in the calling thread's own ring.

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
    // Release pairs with the acquire load in `is_in_flight`. The thread may have got a ring meanwhile.
    self_.doing().store(before_, std::memory_order_release);
  }

 private:
  thread_slot& self_;
  activity before_;
};

/// What is taken from the global `operator new` until the end of the scope belongs to the profiler, or to a block that is being
/// recorded as a whole: the hooks of `operator new` leave it out. Everything else is recorded.
class [[nodiscard]] recording_suppressor : activity_guard {
 public:
  recording_suppressor() noexcept : activity_guard(activity::nested) {}
};

/// The calling thread works for the profiler in a way that its own hooks may see. Signals wait meanwhile: what their handlers
/// allocate could not be distinguished from what the profiler does.
class [[nodiscard]] internal_guard {
 public:
  internal_guard() noexcept : hidden_(activity::internal) {}

 private:
  signal_guard signals_;  // first, so that waiting handlers run when the thread is outside again
  activity_guard hidden_;
};

/// The calling thread holds the registry's lock and allocates nothing that a hook sees. Events of a signal handler that
/// interrupts it are counted.
class [[nodiscard]] control_guard {
 public:
  control_guard() noexcept : control_guard(abi_1::process_registry) {}
  explicit control_guard(registry& shared) noexcept : hidden_(activity::busy), lock_(shared) {}

 private:
  activity_guard hidden_;
  registry_guard lock_;
};

/// Where the ring's next event goes, and is drained from. Relaxed: its producer, or nobody records in it.
inline void begin_at(event_ring& ring, event* slot) noexcept {
  ring.tail = slot;
  ring.cursor.store(slot, std::memory_order_relaxed);
}

/// Makes a drained ring ready for events from its first slot on. Under the lock, by its producer.
inline void rewind_ring(event_ring& ring) noexcept {
  ring_slots& slots = *ring.slots;
  const auto count = static_cast<std::uint64_t>(ring.cursor.load(std::memory_order_relaxed) - slots.first);
  begin_at(ring, slots.first);
  // Release pairs with the acquire load of a drain, which must not see old events before the new head. Before the number: a
  // reader of the pages of a process that was killed in between takes the ring for empty.
  slots.published.store(slots.first, std::memory_order_release);
  slots.first_number += count;
  // Relaxed: written under the lock, and read by its producer.
  ring.limit.store(slots.first + slots.capacity, std::memory_order_relaxed);
}

/// Slots in pages of their own, or null if the system has none.
[[nodiscard]] inline ring_slots* make_slots(std::uint32_t ring, std::uint32_t capacity) noexcept {
  void* const pages = map_pages(ring_slots::bytes_for(capacity));
  if (pages == nullptr) return nullptr;
  auto* const slots = new (pages) ring_slots{};
  slots->first = reinterpret_cast<event*>(slots + 1);
  slots->published.store(slots->first, std::memory_order_relaxed);
  slots->ring = ring;
  slots->capacity = capacity;
  return slots;
}

/// Slots in the trace file's pages if there is a place for them, else in pages of their own; null if the system has none. Under
/// the lock.
[[nodiscard]] inline ring_slots* place_slots(registry& shared, std::uint32_t ring, std::uint64_t drained) noexcept {
  ring_places* const places = shared.places;
  if (places != nullptr && places->has_place(shared.ring_capacity)) return places->take(ring, drained);
  ring_slots* const slots = make_slots(ring, shared.ring_capacity);
  if (slots == nullptr) return nullptr;
  slots->first_number = drained;
  if (places == nullptr) return slots;
  slots->file_capture = places->capture;
  places->rings_outside->fetch_add(1, std::memory_order_relaxed);
  return slots;
}

/// Whether the ring should get other slots: of another number, or in the active capture's file instead of elsewhere.
[[nodiscard]] inline bool has_old_slots(const registry& shared, const event_ring& ring) noexcept {
  const ring_slots& slots = *ring.slots;
  if (slots.capacity != shared.ring_capacity) return true;
  const ring_places* const places = shared.places;
  if (places == nullptr) return slots.is_in_file != 0;
  return slots.file_capture != places->capture || (!places->holds(&slots) && places->has_place(slots.capacity));
}

/// A ring with pages of its own, or null if the system has none. Under the lock.
[[nodiscard]] inline event_ring* make_ring(registry& shared) noexcept {
  if (!reserve_drain_heap(shared)) return nullptr;
  void* const ring_pages = map_pages(sizeof(event_ring));
  if (ring_pages == nullptr) return nullptr;
  ring_slots* const slots = place_slots(shared, shared.ring_count + 1, 0);
  if (slots == nullptr) {
    unmap_pages(ring_pages, sizeof(event_ring));
    return nullptr;
  }
  event_ring* const ring = new (ring_pages) event_ring;
  ring->slots = slots;
  begin_at(*ring, slots->first);
  ring->id = ++shared.ring_count;
  ring->next = shared.rings.load(std::memory_order_relaxed);
  shared.ring_bytes += ring->bytes();
  // Release pairs with whoever walks the list: the ring is complete.
  shared.rings.store(ring, std::memory_order_release);
  return ring;
}

/// Exchanges a drained ring's slots for as many, and where, as is asked for now. Keeps the old ones if there is no memory.
inline void replace_slots(registry& shared, event_ring& ring) noexcept {
  ring_slots* const slots = place_slots(shared, ring.id, ring.drained);
  if (slots == nullptr) return;
  shared.ring_bytes -= ring.bytes();
  const bool was_outside = shared.places != nullptr && ring.slots->file_capture == shared.places->capture;
  if (was_outside) shared.places->rings_outside->fetch_sub(1, std::memory_order_relaxed);
  if (ring.slots->capacity != 0) unmap_pages(ring.slots, ring_slots::bytes_for(ring.slots->capacity));
  ring.slots = slots;
  begin_at(ring, slots->first);
  shared.ring_bytes += ring.bytes();
}

/// Empties the calling thread's ring, by draining all if `may_drain`. False if it could not be emptied. Under the lock.
inline bool empty_ring(registry& shared, event_ring& ring, bool may_drain) noexcept {
  event* const cursor = ring.cursor.load(std::memory_order_relaxed);
  if (shared.drain == nullptr) {
    ring.tail = cursor;  // recorded while the last capture ended: they belong to none
  } else if (may_drain) {
    // Own events are older than the drain's clock reading, so one drain takes them all; the loop costs nothing and says so.
    while (ring.tail != cursor) shared.drain(shared);
  }
  if (ring.tail != cursor) return false;
  if (has_old_slots(shared, ring)) replace_slots(shared, ring);
  rewind_ring(ring);
  return true;
}

/// A ring whose thread is gone, now the calling thread's; null if there is none. One with room for more events is preferred:
/// short-lived threads then fill it one after the other, and need a drain only when it is full. Under the lock.
[[nodiscard]] inline event_ring* take_over_ring(registry& shared) noexcept {
  event_ring* full = nullptr;
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    if (!ring->owner.take()) continue;
    // Acquire: what its last thread wrote, of which this flag was the last.
    (void)ring->doing.load(std::memory_order_acquire);
    event* const published = ring->slots->published.load(std::memory_order_acquire);
    const bool has_room = ring->slots->first + ring->slots->capacity - published >= 2;
    if (has_room || full != nullptr) {
      if (full != nullptr) full->owner.give_up();
      return ring;
    }
    full = ring;
  }
  return full;
}

/// Gives the thread a ring that no living thread has; false if there is no memory. Under the lock.
[[nodiscard]] inline bool attach_ring(registry& shared, thread_slot& self) noexcept {
  event_ring* ring = take_over_ring(shared);
  if (ring == nullptr) {
    ring = make_ring(shared);
    if (ring == nullptr || !ring->owner.take()) return false;
  }
  // That thread may have been stopped anywhere, even between two of the stores that publish an event.
  ring->cursor.store(ring->slots->published.load(std::memory_order_relaxed), std::memory_order_relaxed);
  ring->limit.store(nullptr, std::memory_order_relaxed);
  ring->order_word = order_unclaimed;  // a thread new to a ring stamps its first event
  ring->capture = 0;
  ring->thread = ++shared.thread_count;
  for (event_ring::early_end& early : ring->early_ends) early = {};
  ring->doing.store(self.doing_without_ring.load(std::memory_order_relaxed), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  self.ring = ring;
  return true;
}

/// Lets go of the thread's ring before the thread ends; its events stay until they are drained.
inline void detach_ring(registry& shared, thread_slot& self) noexcept {
  if (!self.has_ring()) return;
  const registry_guard guard{shared};
  event_ring& ring = *self.ring;
  self.doing_without_ring.store(ring.doing.load(std::memory_order_relaxed), std::memory_order_relaxed);
  self.ring = &no_ring;
  ring.doing.store(activity::idle, std::memory_order_release);
  ring.owner.give_up();
}

/// What `make_room` did.
enum class room : std::uint8_t { none, made, made_for_new_thread };

/// Makes room for the thread's next event: gives it a ring, or empties that. Under the lock.
[[nodiscard]] inline room make_room(registry& shared, thread_slot& self) noexcept {
  if (registry_guard::is_forking(shared) && shared.forking_process != process_id())
    return room::none;  // the capture is the parent's
  if (!self.has_ring() && !attach_ring(shared, self)) return room::none;
  event_ring& ring = *self.ring;
  const bool is_announced = ring.capture == shared.capture_count;
  if (!is_announced) ring.order_word = order_unclaimed;  // its first event says when it was
  event* const end = ring.slots->first + ring.slots->capacity;
  const bool may_drain = !shared.drop_when_full.load(std::memory_order_relaxed) || !is_announced;
  event* const cursor = ring.cursor.load(std::memory_order_relaxed);
  if ((end - cursor < 2 || has_old_slots(shared, ring)) && !empty_ring(shared, ring, may_drain)) return room::none;
  if (ring.slots->capacity == 0) return room::none;  // a child after `fork`, for which the system has no memory
  // While the thread forks, each of its events comes here: in the child its slots may lie in the parent's file.
  event* const next = ring.cursor.load(std::memory_order_relaxed);
  ring.limit.store(registry_guard::is_forking(shared) ? next + 1 : ring.slots->first + ring.slots->capacity,
                   std::memory_order_relaxed);
  ring.capture = shared.capture_count;
  return is_announced ? room::made : room::made_for_new_thread;
}

/// The last fields of an event as the word that they are in memory.
[[nodiscard, gnu::always_inline]] inline std::uint64_t rest_of(const event& described) noexcept {
  // By shifts: compilers put fields into a word one after the other, and cannot take the constants out of a loop.
  return described.label | std::uint64_t{static_cast<std::uint8_t>(described.kind)} << 32 | std::uint64_t{described.space} << 40 |
         std::uint64_t{described.tag} << 48;
}
static_assert(std::endian::native == std::endian::little && offsetof(event, label) == 24 && offsetof(event, kind) == 28 &&
              offsetof(event, space) == 29 && offsetof(event, tag) == 30);

/// Writes the event behind the ring's last and publishes it.
template <class Pauses>
[[gnu::always_inline]] inline void publish(event_ring& ring, event* slot, std::uint64_t stamp, std::uint64_t address,
                                           std::uint64_t bytes, std::uint64_t rest) noexcept {
  slot->stamp = stamp;
  slot->address = address;
  slot->bytes = bytes;
  __builtin_memcpy(&slot->label, &rest, sizeof rest);
  Pauses::reach(path_step::slot_written);
  ring.cursor.store(slot + 1, std::memory_order_relaxed);
  // Release pairs with the acquire load of the head in a drain.
  ring.slots->published.store(slot + 1, std::memory_order_release);
  Pauses::reach(path_step::published);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Release pairs with the acquire load in `is_in_flight`.
  ring.doing.store(activity::idle, std::memory_order_release);
}

/// Goes on with an event that needs a stamp: several threads record, or this one has not yet shown that it is alone.
template <class Pauses>
[[gnu::noinline]] void record_stamped(registry& shared, event_ring& ring, std::uint64_t address, std::uint64_t bytes,
                                      std::uint64_t rest, std::uint64_t word) noexcept {
  const std::uint64_t stamp = word == order_shared ? shared.stamps.next() : claim_order(shared, ring, word);
  publish<Pauses>(ring, ring.cursor.load(std::memory_order_relaxed), stamp, address, bytes, rest);
}

template <class Pauses>
void record_words(registry& shared, thread_slot& self, std::uint64_t address, std::uint64_t bytes, std::uint64_t rest) noexcept;

/// The first event of a thread in a capture, or one that finds its ring full.
template <class Pauses>
[[gnu::cold, gnu::noinline]] void record_without_room(registry& shared, thread_slot& self, std::uint64_t address,
                                                      std::uint64_t bytes, std::uint64_t rest) noexcept {
  const errno_guard kept;  // locks and pages ask the system
  room found = room::none;
  label thread_name = 0;
  {
    const activity_guard guard{self, activity::busy};
    const bool may_wait = !shared.drop_when_full.load(std::memory_order_relaxed) || !self.has_ring() ||
                          self.ring->limit.load(std::memory_order_relaxed) == nullptr;
    // A thread that asked to drop must not wait, and while the lock is held nobody can say whether its ring was emptied.
    if (may_wait) {
      const registry_guard lock{shared};
      found = make_room(shared, self);
      if (found == room::made_for_new_thread) thread_name = detail::intern(shared, thread_title{}.view());
    } else if (registry_guard::is_forking(shared) || shared.lock.try_lock()) {
      const registry_guard lock{shared, adopt_lock{}};
      found = make_room(shared, self);
    }
  }
  if (found == room::none) {
    shared.dropped_events.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (found == room::made_for_new_thread) {
    record_words<Pauses>(shared, self, self.ring->thread, thread_id(),
                         rest_of({0, 0, 0, thread_name, event_kind::thread_begin, any_space, 0}));
  }
  record_words<Pauses>(shared, self, address, bytes, rest);
}

/// Somebody allocates while this thread is inside the profiler: the profiler itself, the upstream of a tracked resource, or a
/// signal handler. Only the last is a loss.
[[gnu::cold, gnu::noinline]] inline void note_reentrant(registry& shared, activity doing) noexcept {
  if (doing == activity::internal || doing == activity::nested) return;
  shared.reentrant_events.fetch_add(1, std::memory_order_relaxed);
}

/// Whether the calling thread is outside the profiler. If not, it may hold the registry's lock already, and who asks is a signal
/// handler that interrupted it: it must not wait for that lock.
[[nodiscard]] inline bool is_outside(thread_slot& self) noexcept {
  const activity doing = self.doing().load(std::memory_order_relaxed);
  return doing == activity::idle || doing == activity::nested;
}

/// Whether a capture is active and the calling thread outside the profiler. A signal handler that interrupts it must not wait for
/// the lock that the thread may hold; what it asks for is counted instead.
[[nodiscard]] inline bool may_control() noexcept {
  registry& shared = abi_1::process_registry;
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) return false;
  thread_slot& self = abi_1::this_thread;
  if (is_outside(self)) return true;
  note_reentrant(shared, self.doing().load(std::memory_order_relaxed));
  return false;
}

/// An event of a thread that has no ring, or is inside the profiler. A tracked resource below another one speaks for a space of
/// its own.
template <class Pauses>
[[gnu::cold, gnu::noinline]] void record_inside(registry& shared, thread_slot& self, std::uint64_t address, std::uint64_t bytes,
                                                std::uint64_t rest) noexcept {
  const activity doing = self.doing().load(std::memory_order_relaxed);
  if (doing != activity::nested && doing != activity::idle) return note_reentrant(shared, doing);
  const activity_guard outside{self, activity::idle};
  if (!self.has_ring()) return record_without_room<Pauses>(shared, self, address, bytes, rest);
  record_words<Pauses>(shared, self, address, bytes, rest);
}

/// A thread that is alone still stamps one event in so many, so that timelines know when things happened.
inline constexpr std::uintptr_t stamp_interval = 64;

/// Records one event of a thread that is not inside the profiler; its stamp is set here. The arguments stay in registers, and
/// whatever leaves the usual path is a call in tail position, so that this path saves none and has no stack frame.
template <class Pauses>
[[gnu::always_inline]] inline void record_idle(registry& shared, thread_slot& self, std::uint64_t address, std::uint64_t bytes,
                                               std::uint64_t rest) noexcept {
  event_ring& ring = *self.ring;
  // Set before the word is read: `is_in_flight` relies on it. The store may still wait in this core's buffer when the word is
  // read; the asking side's process-wide barrier takes care of that, so that nothing here has to.
  ring.doing.store(activity::recording, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  event* const slot = ring.cursor.load(std::memory_order_relaxed);
  // Relaxed: the barrier in `start_recording` makes a new limit seen. Below it also if that is null.
  if (slot >= ring.limit.load(std::memory_order_relaxed)) [[unlikely]] {
    ring.doing.store(activity::idle, std::memory_order_relaxed);
    return record_without_room<Pauses>(shared, self, address, bytes, rest);
  }
  // Acquire pairs with the exchange in `claim_order`: an event that depends on another thread's stamped one sees `shared`.
  const std::uint64_t word = shared.order_word.load(std::memory_order_acquire);
  Pauses::reach(path_step::word_read);
  if (word != ring.order_word) [[unlikely]]
    return record_stamped<Pauses>(shared, ring, address, bytes, rest, word);
  if (reinterpret_cast<std::uintptr_t>(slot) % (stamp_interval * sizeof(event)) == 0) [[unlikely]]
    return record_stamped<Pauses>(shared, ring, address, bytes, rest, order_shared);
  publish<Pauses>(ring, slot, 0, address, bytes, rest);
}

/// Records one event; its stamp is set here.
template <class Pauses>
[[gnu::always_inline]] inline void record_words(registry& shared, thread_slot& self, std::uint64_t address, std::uint64_t bytes,
                                                std::uint64_t rest) noexcept {
  if (self.ring->doing.load(std::memory_order_relaxed) != activity::idle) [[unlikely]]
    return record_inside<Pauses>(shared, self, address, bytes, rest);
  record_idle<Pauses>(shared, self, address, bytes, rest);
}

/// Records one event; its stamp is set here. For the process, call `memprof::detail::record_event`.
template <class Pauses>
[[gnu::always_inline]] inline void record(registry& shared, thread_slot& self, const event& described) noexcept {
  record_words<Pauses>(shared, self, described.address, described.bytes, rest_of(described));
}

/// Records one event of the calling thread if a capture is active.
[[gnu::always_inline]] inline void record_event(const event& described) noexcept {
  registry& shared = abi_1::process_registry;
  // Relaxed: whether a call that overlaps `begin_capture` or `end_capture` is part of the capture is open anyway.
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  record<no_pauses>(shared, abi_1::this_thread, described);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
