#pragma once

#include <memprof/record/find_label.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/run_listener.hpp>
#include <memprof/trace/event.hpp>

#include <atomic>
#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// Records the end of a segment, or a checkpoint, in capture `number`, or in the active one if `number` is 0. False if that
/// capture is not active.
///
/// An ordinary event in the calling thread's ring: its stamp orders it among the events of all threads, and it needs no lock. It
/// takes another path only where full rings drop events, because it must not be dropped.
inline bool record_moment(std::uint32_t number, event_kind kind, std::string_view name) noexcept {
  registry& shared = abi_1::process_registry;
  thread_slot& self = abi_1::this_thread;
  const std::uint32_t active = shared.active_capture.load(std::memory_order_relaxed);
  if (active == 0 || (number != 0 && active != number)) return false;
  if (!may_take_lock(shared, self)) {
    note_reentrant(shared, activity::busy);
    return true;
  }
  event moment{0, 0, 0, find_label(name), kind, any_space, 0};
  if (!shared.drop_when_full.load(std::memory_order_relaxed)) {
    if (self.has_ring()) self.ring->order_word = order_unclaimed;  // so that it gets a stamp
    record<no_pauses>(shared, self, moment);
    return true;
  }
  const control_guard control{shared};
  if (shared.drain == nullptr) return false;
  shared.drain(shared);
  moment.stamp = shared.stamps.next();
  shared.put_event(shared, moment);
  return true;
}

/// Reads the process's memory now and then; null while no capture is active. A pointer, so that files which only mark segments
/// do not compile captures.
inline constinit std::atomic<void (*)() noexcept> snapshot_reader{nullptr};

/// Called with the name of each segment that has ended; null unless a backend reads high-water marks of its own at that moment.
inline constinit std::atomic<void (*)(std::string_view name) noexcept> segment_listener{nullptr};

inline bool record_segment_end(std::uint32_t number, std::string_view name) noexcept {
  if (!record_moment(number, event_kind::segment_end, name)) return false;
  // Acquire pairs with the release of the one who listens.
  if (const auto* const listener = abi_1::process_run_listener.load(std::memory_order_acquire))
    listener->segment_ended(name.data(), name.size());
  // Acquire pairs with the release of the backend.
  if (auto* const tell = segment_listener.load(std::memory_order_acquire)) tell(name);
  // Acquire pairs with the release in `start_capture`.
  if (auto* const read = snapshot_reader.load(std::memory_order_acquire)) read();
  return true;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
