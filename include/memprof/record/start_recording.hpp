#pragma once

#include <memprof/record/clock.hpp>
#include <memprof/record/drain.hpp>
#include <memprof/record/event_order.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/rings.hpp>

#include <atomic>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// A drain's consumer for events that belong to no capture.
struct discarded_events {
  void apply(const event*, const event*, std::uint32_t) const noexcept {}
};

/// Makes all threads record for capture `shared.capture_count`, and discards what the rings still hold. Under the lock, while no
/// capture is active.
///
/// A thread may still be recording for an earlier capture: it saw that capture active and was then preempted. So there must be
/// one instant after which everything is recorded and before which nothing is kept. Recording is switched on first; then the
/// contents of the rings are cut off where a drain would cut them, so that no effect is kept without its cause. An allocation
/// that is kept returns after the cut, so its free finds recording switched on.
template <class Pauses>
void start_recording(registry& shared) noexcept {
  shared.make_room = make_room;
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    ring->limit.store(nullptr, std::memory_order_relaxed);  // makes each thread join the new capture
  }
  shared.active_capture.store(shared.capture_count, std::memory_order_relaxed);
  Pauses::reach(path_step::recording_on);
  // Every thread sees the stores above, and what it published before is visible below. Without membarrier, a thread could publish
  // an event, be missed below, and yet find no capture active at its next event, within the time a store takes to become visible.
  if (!process_barrier()) std::atomic_thread_fence(std::memory_order_seq_cst);
  discarded_events nobody;
  drain_rings<Pauses>(shared, nobody);
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) ring->drained = 0;
}

/// Cost of writing one event on this machine, in nanoseconds: the minimum of a few short rounds in a separate ring.
[[nodiscard]] inline double measure_record_cost(registry& shared) noexcept {
  constexpr std::uint32_t events_per_round = 256;
  ring_slots* const slots = make_slots(1, events_per_round);
  if (slots == nullptr) return 0;
  event_ring ring;
  ring.slots = slots;
  ring.limit.store(slots->first + events_per_round, std::memory_order_relaxed);
  ring.order_word = 1;
  thread_slot context;
  context.ring = &ring;
  registry scratch;
  scratch.order_word.store(1, std::memory_order_relaxed);
  scratch.stamps.chosen.store(shared.stamps.chosen.load(std::memory_order_relaxed), std::memory_order_relaxed);
  double best = 0;
  for (int round = 0; round < 8; ++round) {
    ring.cursor.store(slots->first, std::memory_order_relaxed);
    const std::int64_t before = monotonic_ns();
    for (std::uint32_t count = 0; count < events_per_round; ++count) {
      record<no_pauses>(scratch, context, {0, count, 1, 0, event_kind::allocate, 0, 0});
    }
    const double cost = static_cast<double>(monotonic_ns() - before) / events_per_round;
    if (round == 0 || cost < best) best = cost;
  }
  unmap_pages(slots, ring_slots::bytes_for(events_per_round));
  return best;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
