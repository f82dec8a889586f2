#pragma once

#include <memprof/detail/pages.hpp>
#include <memprof/detail/process.hpp>
#include <memprof/record/drain.hpp>
#include <memprof/record/event_order.hpp>
#include <memprof/record/event_ring.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/ring_places.hpp>
#include <memprof/trace/event.hpp>

#include <atomic>
#include <cstdint>
#include <new>

/// @file
/// The rings of threads: creating, taking over, emptying, and replacing slots. All of it runs under the registry's lock and is
/// reached through `registry::make_room`, so that files that only record do not compile it.

namespace memprof::inline MEMPROF_ABI::detail {

/// Sets the slot for the ring's next event, from which it is also drained. Relaxed: called by its producer, or nothing records in
/// it.
inline void begin_at(event_ring& ring, event* slot) noexcept {
  ring.tail = slot;
  ring.cursor.store(slot, std::memory_order_relaxed);
}

/// Readies a drained ring for events from its first slot on. Under the lock, by its producer.
inline void rewind_ring(event_ring& ring) noexcept {
  ring_slots& slots = *ring.slots;
  const auto count = static_cast<std::uint64_t>(ring.cursor.load(std::memory_order_relaxed) - slots.first);
  begin_at(ring, slots.first);
  // Release pairs with the acquire load of a drain, which must not see old events before the new head. Before the number: if the
  // process is killed in between, a reader of its pages takes the ring for empty.
  slots.published.store(slots.first, std::memory_order_release);
  slots.first_number += count;
  // Relaxed: written under the lock, and read by its producer.
  ring.limit.store(slots.first + slots.capacity, std::memory_order_relaxed);
}

/// Slots in pages of their own; null if the system has none.
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

/// Slots in the trace file's pages if there is a place for them, otherwise in pages of their own; null if the system has none.
/// Under the lock.
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

/// Whether the ring should get new slots: with another capacity, or in the active capture's file instead of elsewhere.
[[nodiscard]] inline bool has_old_slots(const registry& shared, const event_ring& ring) noexcept {
  const ring_slots& slots = *ring.slots;
  if (slots.capacity != shared.ring_capacity) return true;
  const ring_places* const places = shared.places;
  if (places == nullptr) return slots.is_in_file != 0;
  return slots.file_capture != places->capture || (!places->holds(&slots) && places->has_place(slots.capacity));
}

/// A ring in pages of its own; null if the system has none. Under the lock.
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
  // Release pairs with any walk of the list: the ring is complete.
  shared.rings.store(ring, std::memory_order_release);
  return ring;
}

/// Replaces a drained ring's slots with the capacity and place currently wanted. Keeps the old ones if there is no memory.
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

/// Empties the calling thread's ring, draining all rings if `may_drain`. False if it could not be emptied. Under the lock.
inline bool empty_ring(registry& shared, event_ring& ring, bool may_drain) noexcept {
  event* const cursor = ring.cursor.load(std::memory_order_relaxed);
  if (shared.drain == nullptr) {
    ring.tail = cursor;  // recorded while the last capture ended; these belong to none
  } else if (may_drain) {
    // The thread's own events are older than the drain's clock reading, so one drain takes them all; the loop costs nothing and
    // makes that explicit.
    while (ring.tail != cursor) shared.drain(shared);
  }
  if (ring.tail != cursor) return false;
  if (has_old_slots(shared, ring)) replace_slots(shared, ring);
  rewind_ring(ring);
  return true;
}

/// A ring whose thread is gone, taken over by the calling thread; null if there is none. Prefers one with room for more events:
/// short-lived threads then fill it in turn and need a drain only when it is full. Under the lock.
[[nodiscard]] inline event_ring* take_over_ring(registry& shared) noexcept {
  event_ring* full = nullptr;
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    if (!ring->owner.take()) continue;
    // Acquire: sees what its last thread wrote; this flag was written last.
    const activity doing = ring->doing.load(std::memory_order_acquire);
    if (ring->thread == 0 && doing == activity::recording) {  // `leave_unfinished_record`
      ring->owner.give_up();
      continue;
    }
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

/// Gives the thread a ring that no living thread owns; false if there is no memory. Under the lock.
[[nodiscard]] inline bool attach_ring(registry& shared, thread_slot& self) noexcept {
  event_ring* ring = take_over_ring(shared);
  if (ring == nullptr) {
    ring = make_ring(shared);
    if (ring == nullptr || !ring->owner.take()) return false;
  }
  // The previous thread may have been stopped anywhere, even between two of the stores that publish an event.
  ring->cursor.store(ring->slots->published.load(std::memory_order_relaxed), std::memory_order_relaxed);
  ring->limit.store(nullptr, std::memory_order_relaxed);
  ring->capture = 0;
  ring->thread = ++shared.thread_count;
  for (event_ring::early_end& early : ring->early_ends) early = {};
  ring->doing.store(self.doing_without_ring.load(std::memory_order_relaxed), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  self.ring = ring;
  return true;
}

/// Releases the thread's ring before the thread ends; its events stay until they are drained.
inline void detach_ring(registry& shared, thread_slot& self) noexcept {
  if (!self.has_ring()) return;
  const registry_guard guard{shared};
  event_ring& ring = *self.ring;
  self.doing_without_ring.store(ring.doing.load(std::memory_order_relaxed), std::memory_order_relaxed);
  self.ring = &no_ring;
  ring.doing.store(activity::idle, std::memory_order_release);
  ring.owner.give_up();
}

/// Makes room for the thread's next event: gives it a ring, or empties the one it has. Under the lock.
[[nodiscard]] inline room make_room(registry& shared, thread_slot& self) noexcept {
  if (registry_guard::is_forking(shared) && shared.forking_process != process_id())
    return room::none;  // the capture belongs to the parent
  if (!self.has_ring() && !attach_ring(shared, self)) return room::none;
  event_ring& ring = *self.ring;
  const bool is_announced = ring.capture == shared.capture_count;
  if (!is_announced) ring.order_word = order_unclaimed;  // its first event gets a stamp
  event* const end = ring.slots->first + ring.slots->capacity;
  const bool may_drain = !shared.drop_when_full.load(std::memory_order_relaxed) || !is_announced;
  event* const cursor = ring.cursor.load(std::memory_order_relaxed);
  if ((end - cursor < 2 || has_old_slots(shared, ring)) && !empty_ring(shared, ring, may_drain)) return room::none;
  if (ring.slots->capacity == 0) return room::none;  // a child after `fork`, and the system has no memory
  // While the thread forks, each of its events comes here: in the child, its slots may lie in the parent's file.
  event* const next = ring.cursor.load(std::memory_order_relaxed);
  ring.limit.store(registry_guard::is_forking(shared) ? next + 1 : ring.slots->first + ring.slots->capacity,
                   std::memory_order_relaxed);
  ring.capture = shared.capture_count;
  return is_announced ? room::made : room::made_for_new_thread;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
