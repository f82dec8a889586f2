#pragma once

#include <memprof/record/event_ring.hpp>
#include <memprof/record/registry.hpp>

#include <atomic>
#include <cstdint>

#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/// @file
/// The order of events across threads, and which threads may omit stamps.
///
/// Guarantee: the ledger sees every event once, in an order in which each takes effect at one instant between the start and the
/// end of its call. So a peak is the exact peak of an execution that could have happened, and no free overtakes its allocation.
///
/// Recording: an allocation is recorded after the upstream has returned, a deallocation before the upstream is called. So no
/// other thread can hold the block's address while its event is being written.
///
/// Stamps: if a call on thread B starts after a call on thread A has returned, B's stamp is greater (`stamp_source`).
///
/// Draining (record/drain.hpp): read the clock into T, then all heads, then apply the events with stamp <= T, merged by stamp. An
/// event with stamp <= T that was not yet seen as published was still in its call at T; the next drain applies it, so it takes
/// effect after T, which is legal.
///
/// A stamp is most of an event's cost, and a thread that records alone needs none: its own ring is its order. The *order word*
/// says which thread is alone. It holds `none`, the *epoch and ring id* of the only recording thread, `pending`, or `shared`.
///  - A thread that has stamped once under the present word with its own id, and finds the word unchanged, writes 0: the event
///    takes the place after its predecessor in the ring.
///  - A thread that finds another's word (or `pending`) sets `shared`, then stamps. Under `shared` every thread stamps.
///  - The one event that the old owner has in flight at that moment began before the change, so a place among its earlier
///    events is legal. Any event of the old owner that depends on a stamped one has seen `shared` first: the dependence carries
///    the store.
///  - Only a drain gives the word back, when one ring was alone in two successive drains. A thread that has read `shared` might
///    still be about to take its stamp, later than the new owner's first; if it then hands a block to the owner, the owner's
///    unstamped free would be placed before that stamp. Hence a third value: set `pending`, make every core see it
///    (`membarrier`), check every other thread's `doing` flag, which is set before the word is read and cleared after the event
///    is published, and exchange `pending` for a new epoch only if all are idle. A thread that starts later reads `pending` and
///    sets `shared`.

namespace memprof::inline MEMPROF_ABI::detail {

/// Points where a test may hold a thread to force an interleaving.
enum class path_step {
  word_read,
  slot_written,
  published,
  clock_read,
  head_read,
  heads_read,
  run_applied,
  pending_set,
  barrier_passed,
  threads_checked,
  recording_on
};

/// The production schedule: no step waits.
struct no_pauses {
  static constexpr void reach(path_step) noexcept {}
};

inline constexpr std::uint64_t order_none = 0;
inline constexpr std::uint64_t order_shared = ~std::uint64_t{0};
inline constexpr std::uint64_t order_pending = ~std::uint64_t{1};
inline constexpr unsigned ring_id_bits = 24;

[[nodiscard]] inline std::uint64_t order_owner(std::uint64_t word) noexcept {
  return word >= order_pending ? 0 : word & ((std::uint64_t{1} << ring_id_bits) - 1);
}

[[nodiscard]] inline std::uint64_t next_order_word(registry& shared, std::uint32_t ring_id) noexcept {
  return ++shared.order_epoch << ring_id_bits | ring_id;
}

/// Registers for `membarrier`; without it the order word is never given back, and every event of a shared phase is stamped.
inline void prepare_order(registry& shared) noexcept {
#if defined(__linux__) && defined(SYS_membarrier)
  shared.can_grant = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
#else
  shared.can_grant = false;
#endif
}

/// After this, every thread of the process sees the stores before it, and this thread sees their earlier stores.
inline bool process_barrier() noexcept {
#if defined(__linux__) && defined(SYS_membarrier)
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
#else
  return false;
#endif
}

/// Claims or shares the order word for a thread that has to stamp, and returns the stamp.
[[gnu::cold, gnu::noinline]] inline std::uint64_t claim_order(registry& shared, event_ring& ring, std::uint64_t word) noexcept {
  const std::uint32_t own_id = ring.id;
  for (;;) {
    if (word == order_shared) return shared.stamps.next();
    if (order_owner(word) == own_id) {
      ring.order_word = word;
      return shared.stamps.next();
    }
    // The very first owner needs no barrier: no thread has stamped yet. Its epoch, 0, is never given again.
    const std::uint64_t wanted = word == order_none ? std::uint64_t{own_id} : order_shared;
    // Release pairs with the acquire load of the word in `record`: a thread that sees `shared` sees what led to it.
    if (shared.order_word.compare_exchange_weak(word, wanted, std::memory_order_acq_rel, std::memory_order_acquire)) {
      if (wanted == order_shared) shared.revocations.fetch_add(1, std::memory_order_relaxed);
      word = wanted;
    }
  }
}

/// Whether the ring's thread may be between reading the registry and publishing its event. Under the lock.
[[nodiscard]] inline bool is_in_flight(event_ring& ring) noexcept {
  // Acquire pairs with the release that clears `doing`: an event published before this load is in its ring, and its stamp is
  // older than any taken from now on.
  if (ring.doing.load(std::memory_order_acquire) != activity::recording) return false;
  // A thread may end in a signal handler that interrupted it; the event it was about to record never happened.
  return ring.owner.is_held();
}

/// Tries to give the word to the thread of `ring`. Called by a drain, under the lock.
template <class Pauses>
void grant_order(registry& shared, const event_ring& ring) noexcept {
  std::uint64_t word = order_shared;
  if (!shared.order_word.compare_exchange_strong(word, order_pending, std::memory_order_acq_rel, std::memory_order_relaxed))
    return;
  Pauses::reach(path_step::pending_set);
  bool is_quiet = process_barrier();
  Pauses::reach(path_step::barrier_passed);
  // Relaxed suffices for the list: rings are only added under the lock, which is held here.
  for (event_ring* other = shared.rings.load(std::memory_order_relaxed); other != nullptr; other = other->next) {
    if (other != &ring && is_in_flight(*other)) is_quiet = false;
  }
  Pauses::reach(path_step::threads_checked);
  word = order_pending;
  const std::uint64_t wanted = is_quiet ? next_order_word(shared, ring.id) : order_shared;
  if (shared.order_word.compare_exchange_strong(word, wanted, std::memory_order_acq_rel, std::memory_order_relaxed) && is_quiet) {
    ++shared.grants;
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
