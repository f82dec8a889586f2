#pragma once

#include <memprof/record/drain.hpp>
#include <memprof/record/event_order.hpp>
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

}  // namespace memprof::inline MEMPROF_ABI::detail
