#pragma once

#include <memprof/detail/pages.hpp>
#include <memprof/record/event_order.hpp>
#include <memprof/record/registry.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
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
  std::uint64_t until = pending_key(*heap[1]);
  if (count > 2 && pending_key(*heap[2]) < until) until = pending_key(*heap[2]);
  event* position = ring.tail + 1;
  while (position != ring.drain_limit && position->stamp <= until) ++position;  // 0 is below every stamp
  return position;
}

/// Events of several threads on their way to the consumer. It gets many at a time: threads that record at once alternate at
/// nearly every event, and a call for each such run would cost more than its events.
template <class Consumer>
class merged_events {
 public:
  explicit merged_events(Consumer& consumer) noexcept : consumer_(consumer) {}
  merged_events(const merged_events&) = delete;
  merged_events& operator=(const merged_events&) = delete;
  ~merged_events() { flush(); }

  void apply(const event* first, const event* last, std::uint32_t ring_id) noexcept {
    for (; first != last; ++first) {
      if (count_ == capacity) flush();
      events_[count_++] = {first, ring_id};
    }
  }

  /// Takes the events of two rings until one of them is empty. Whose turn it is cannot be predicted, so the earlier event is
  /// selected by arithmetic instead of a branch.
  void take(event_ring& left, event_ring& right) noexcept {
    const event* first = left.tail;
    const event* second = right.tail;
    std::uint64_t first_key = left.last_stamp;
    std::uint64_t second_key = right.last_stamp;
    for (;;) {
      // In as many steps, neither ring becomes empty before the last one.
      std::ptrdiff_t steps = std::min(left.drain_limit - first, right.drain_limit - second);
      if (steps == 0) break;
      if (count_ == capacity) flush();
      for (steps = std::min(steps, static_cast<std::ptrdiff_t>(capacity - count_)); steps != 0; --steps) {
        first_key = first->stamp != 0 ? first->stamp : first_key;
        second_key = second->stamp != 0 ? second->stamp : second_key;
        const std::uintptr_t is_second = second_key < first_key;
        events_[count_++] = {reinterpret_cast<const event*>(select(is_second, reinterpret_cast<std::uintptr_t>(first),
                                                                   reinterpret_cast<std::uintptr_t>(second))),
                             static_cast<std::uint32_t>(select(is_second, left.id, right.id))};
        first += 1 - is_second;
        second += is_second;
      }
    }
    advance(left, first, first_key);
    advance(right, second, second_key);
  }

  void flush() noexcept {
    if constexpr (requires { consumer_.apply(events_, events_); }) {
      consumer_.apply(events_, events_ + count_);
    } else {
      for_each_run(events_, events_ + count_, [this](const event* first, const event* last, std::uint32_t ring_id) {
        consumer_.apply(first, last, ring_id);
      });
    }
    count_ = 0;
  }

 private:
  static constexpr std::size_t capacity = 128;

  [[nodiscard]] static std::uintptr_t select(std::uintptr_t is_second, std::uintptr_t first, std::uintptr_t second) noexcept {
    return first ^ ((first ^ second) & (0 - is_second));
  }

  /// `key` belongs to the last event before `next` that has a stamp, or to `next` itself.
  static void advance(event_ring& ring, const event* next, std::uint64_t key) noexcept {
    const std::ptrdiff_t taken = next - ring.tail;
    ring.last_stamp = key;
    ring.drained += static_cast<std::uint64_t>(taken);
    ring.tail += taken;
  }

  Consumer& consumer_;
  std::size_t count_ = 0;
  ordered_event events_[capacity];
};

/// Empties the rings of a heap into the consumer.
template <class Pauses, class Consumer>
void merge_rings(event_ring** heap, std::uint32_t count, Consumer& consumer) noexcept {
  for (std::uint32_t position = count / 2; position-- > 0;) sift_down(heap, count, position);
  merged_events<Consumer> merged{consumer};
  while (count > 2) {
    event_ring& ring = *heap[0];
    apply_run(ring, end_of_run(heap, count), merged);
    Pauses::reach(path_step::run_applied);
    if (ring.tail == ring.drain_limit) heap[0] = heap[--count];
    sift_down(heap, count, 0);
  }
  merged.take(*heap[0], *heap[1]);
  merged.flush();
  event_ring& last = *heap[heap[0]->tail == heap[0]->drain_limit ? 1 : 0];
  apply_run(last, last.drain_limit, consumer);
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
  if (lone != nullptr) {
    apply_run(*heap[0], heap[0]->drain_limit, consumer);
  } else if (count != 0) {
    merge_rings<Pauses>(heap, count, consumer);
  }

  if (lone != nullptr && shared.can_grant && shared.sole_ring == lone->id &&
      shared.order_word.load(std::memory_order_relaxed) == order_shared) {
    grant_order<Pauses>(shared, *lone);
  }
  shared.sole_ring = lone != nullptr ? lone->id : 0;
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
