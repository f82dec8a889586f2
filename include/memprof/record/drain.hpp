#pragma once

#include <memprof/detail/pages.hpp>
#include <memprof/record/event_order.hpp>
#include <memprof/record/registry.hpp>

#include <atomic>
#include <cstdint>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// Merge key of a ring's first pending event: its stamp, or its predecessor's if it has none.
[[nodiscard]] inline std::uint64_t pending_key(const event_ring& ring) noexcept {
  return ring.tail->stamp != 0 ? ring.tail->stamp : ring.last_stamp;
}

/// End of the events in [first, last) with a stamp of at most `until`; those after it were recorded while the drain ran.
[[nodiscard]] inline event* trim_to(event* first, event* last, std::uint64_t until) noexcept {
  // Stamps grow within a ring, and an event without one belongs to the last one that has one, so only the newest are examined.
  for (event* position = last; position != first; --position) {
    const std::uint64_t stamp = position[-1].stamp;
    if (stamp == 0) continue;
    if (stamp <= until) return last;
    last = position - 1;
  }
  return last;
}

/// Restores the heap (smallest key on top) after the key at `position` grew.
inline void sift_down(event_ring** heap, std::uint32_t count, std::uint32_t position) noexcept {
  event_ring* const moving = heap[position];
  const std::uint64_t key = pending_key(*moving);
  for (;;) {
    std::uint32_t child = 2 * position + 1;
    if (child >= count) break;
    if (child + 1 < count && pending_key(*heap[child + 1]) < pending_key(*heap[child])) ++child;
    if (pending_key(*heap[child]) >= key) break;
    heap[position] = heap[child];
    position = child;
  }
  heap[position] = moving;
}

/// Passes [tail, last) of a ring to the consumer.
template <class Consumer>
void apply_run(event_ring& ring, event* last, Consumer& consumer) noexcept {
  for (event* position = last; position != ring.tail; --position) {
    if (position[-1].stamp == 0) continue;
    ring.last_stamp = position[-1].stamp;
    break;
  }
  consumer.apply(ring.tail, last, ring.id);
  ring.drained += static_cast<std::uint64_t>(last - ring.tail);
  ring.tail = last;
}

/// End of the run that the top ring may deliver before another ring's turn.
[[nodiscard]] inline event* end_of_run(event_ring** heap, std::uint32_t count) noexcept {
  const event_ring& ring = *heap[0];
  if (count == 1) return ring.drain_limit;
  std::uint64_t until = pending_key(*heap[1]);
  if (count > 2 && pending_key(*heap[2]) < until) until = pending_key(*heap[2]);
  event* position = ring.tail + 1;
  while (position != ring.drain_limit && position->stamp <= until) ++position;  // 0 is below every stamp
  return position;
}

/// Empties all rings into `consumer.apply(first, last, ring_id)`, in the order that record/event_order.hpp guarantees. Under the
/// lock. Costs one clock reading, a look at every ring, and the merge.
template <class Pauses, class Consumer>
void drain_rings(registry& shared, Consumer& consumer) noexcept {
  ++shared.drains;
  const std::uint64_t until = shared.stamps.next();
#if defined(__x86_64__)
  __builtin_ia32_lfence();  // the heads must not be read before the clock
#endif
  Pauses::reach(path_step::clock_read);
  event_ring** const heap = shared.drain_heap;
  std::uint32_t count = 0;
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    // Acquire pairs with the release that publishes an event in `record`.
    event* const head = ring->slots->published.load(std::memory_order_acquire);
    Pauses::reach(path_step::head_read);
    ring->drain_limit = trim_to(ring->tail, head, until);
    if (ring->drain_limit != ring->tail) heap[count++] = ring;
  }
  Pauses::reach(path_step::heads_read);

  const event_ring* const lone = count == 1 ? heap[0] : nullptr;
  for (std::uint32_t position = count / 2; position-- > 0;) sift_down(heap, count, position);
  while (count != 0) {
    event_ring& ring = *heap[0];
    apply_run(ring, end_of_run(heap, count), consumer);
    Pauses::reach(path_step::run_applied);
    if (ring.tail == ring.drain_limit) heap[0] = heap[--count];
    if (count > 1) sift_down(heap, count, 0);
  }

  if (lone != nullptr && shared.can_grant && shared.lone_ring == lone->id &&
      shared.order_word.load(std::memory_order_relaxed) == order_shared) {
    grant_order<Pauses>(shared, *lone);
  }
  shared.lone_ring = lone != nullptr ? lone->id : 0;
}

/// Makes the heap large enough for one more ring; false if the system has no memory. Under the lock.
[[nodiscard]] inline bool reserve_drain_heap(registry& shared) noexcept {
  if (shared.ring_count < shared.drain_heap_capacity) return true;
  const std::uint32_t capacity = shared.drain_heap_capacity == 0 ? 512 : 2 * shared.drain_heap_capacity;
  void* const pages = map_pages(capacity * sizeof(event_ring*));
  if (pages == nullptr) return false;
  unmap_pages(shared.drain_heap, shared.drain_heap_capacity * sizeof(event_ring*));
  shared.drain_heap = static_cast<event_ring**>(pages);
  shared.drain_heap_capacity = capacity;
  return true;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
