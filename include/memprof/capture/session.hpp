#pragma once

#include <memprof/capture/capture_state.hpp>
#include <memprof/capture/no_dispatch_fault.hpp>
#include <memprof/capture/options.hpp>
#include <memprof/capture/other_registries.hpp>
#include <memprof/capture/process_life.hpp>
#include <memprof/core/device_description.hpp>
#include <memprof/core/event_order.hpp>
#include <memprof/core/memory_space.hpp>
#include <memprof/core/recorder.hpp>
#include <memprof/core/registry.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/profile/profile.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// The control path: what `begin_capture`, `snapshot`, `end_capture` and `clear` do to the process's registry. All of it runs
/// under the registry's lock, hidden from the hooks; none of it is on the hot path.

namespace memprof::detail {

/// The calling thread works for the profiler: it holds the lock, and its own allocations are not recorded.
class [[nodiscard]] control_guard {
 public:
  control_guard() noexcept : hidden_(abi_1::this_thread, activity::internal), lock_(abi_1::process_registry.lock) {}

 private:
  activity_guard hidden_;
  lock_guard<spin_lock> lock_;
};

[[nodiscard]] inline capture_state* state_of(registry& shared) noexcept { return static_cast<capture_state*>(shared.capture); }

inline void check(const capture_options& options) {
  const auto refuse = [](const char* field, std::uint32_t value, const char* allowed) {
    raise("begin_capture: capture_options::" + std::string{field} + " is " + std::to_string(value) + "; use " + allowed);
  };
  if (options.ring_capacity < 2 || options.ring_capacity > (1U << 24)) {
    refuse("ring_capacity", options.ring_capacity, "2 to 16777216 events (the default is 1024)");
  }
  if (options.timeline_points < 2) refuse("timeline_points", options.timeline_points, "2 or more (the default is 4096)");
  if (options.largest_blocks > 4096) refuse("largest_blocks", options.largest_blocks, "0 to 4096 (the default is 10)");
  for (const device_space& space : options.device.spaces) {
    if (space.capacity >= 0) continue;
    raise("begin_capture: the capacity of '" + std::string{space.name.view()} + "' of device '" +
          std::string{options.device.name.view()} + "' is " + std::to_string(space.capacity) + "; use bytes, or 0 for no limit");
  }
}

using device_space_ids = std::array<std::uint8_t, device_description::max_spaces>;

/// The ids of the memory spaces that have the names of the device's limited ones. Throws `memprof::error` if the process has too
/// many memory spaces.
[[nodiscard]] inline device_space_ids ids_of_limited_spaces(registry& shared, const device_description& device) {
  device_space_ids ids{};
  for (std::size_t index = 0; index < device.space_count; ++index) {
    if (device.spaces[index].capacity != 0) ids[index] = id_of_space(shared, device.spaces[index].name.view());
  }
  return ids;
}

/// Gives those spaces their capacities. False if the system has no memory.
[[nodiscard]] inline bool limit_spaces(ledger& events, const device_description& device, const device_space_ids& ids) noexcept {
  for (std::size_t index = 0; index < device.space_count; ++index) {
    const device_space& space = device.spaces[index];
    if (space.capacity != 0 && !events.limit(ids[index], space.capacity, space.is_per_core)) return false;
  }
  return true;
}

/// Forgets what rings still hold from before the capture, and gives this thread's ring the size that is asked for.
inline void discard_old_events(registry& shared) noexcept {
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    ring->tail = ring->head.load(std::memory_order_acquire);  // pairs with the release in `record`
  }
  if (abi_1::this_thread.ring != nullptr) empty_own_ring(shared, abi_1::this_thread, false);
  shared.dropped_events.store(0, std::memory_order_relaxed);
  shared.reentrant_events.store(0, std::memory_order_relaxed);
}

/// The backends of the capture once more, under the lock. They live until the process ends, and leak checkers do not look for
/// pointers to them in the pages of the capture.
inline constinit void* reachable_backends = nullptr;

/// Destroys the last capture, under the lock, and returns its backends, to be destroyed without it.
[[nodiscard]] inline kept_backends forget_capture(registry& shared) noexcept {
  kept_backends backends;
  if (capture_state* const state = state_of(shared)) {
    backends = std::move(state->backends);
    state->~capture_state();
    unmap_pages(state, sizeof(capture_state));
  }
  shared.capture = nullptr;
  reachable_backends = nullptr;
  return backends;
}

/// Begins a capture and returns its number. Throws `memprof::error` if one is active or an option is out of range.
[[nodiscard]] inline std::uint32_t begin_session(const capture_options& options) {
  check(options);
  registry& shared = abi_1::process_registry;
  pin_module();
  kept_backends of_last_capture;  // destroyed when the lock is free again
  const control_guard control;
  if (shared.layout_version != registry::current_layout_version) {
    raise("begin_capture: another version of memprof is active in this process (layout " + std::to_string(shared.layout_version) +
          ", this one has " + std::to_string(registry::current_layout_version) + "); build all parts with the same version");
  }
  if (shared.active_capture.load(std::memory_order_relaxed) != 0) {
    raise("begin_capture: a capture is already active in this process; end it first (end_capture, or its guard's end)");
  }
  if (options.mode == run_mode::no_dispatch && !prepare_no_dispatch(shared)) {
    raise(
        "begin_capture: the system reserves no address range for run_mode::no_dispatch; raise the limit on address space "
        "(`ulimit -v unlimited`), or capture with run_mode::normal");
  }
  of_last_capture = forget_capture(shared);
  (void)abi_1::intern(shared, "cpu");  // makes the table of names, with the space "cpu" in it
  const device_space_ids limited_spaces = ids_of_limited_spaces(shared, options.device);
  watch_forks(shared);
  prepare_order(shared);
  shared.ring_capacity = options.ring_capacity;
  shared.drop_when_full = options.overflow_policy == overflow::drop;
  discard_old_events(shared);
  // In pages of its own: `operator new` is what may be watched.
  void* const pages = map_pages(sizeof(capture_state));
  if (pages == nullptr) raise("begin_capture: the system has no memory for the capture");
  auto* const state = new (pages) capture_state(options, shared);
  shared.capture = state;
  if (!limit_spaces(state->events, options.device, limited_spaces)) {
    (void)forget_capture(shared);  // it has no backends yet
    raise("begin_capture: the system has no memory for the capacities of the device");
  }
  state->record_ns = measure_record_cost(shared);
  shared.drain = drain_into_capture;
  if (++shared.capture_count == 0) ++shared.capture_count;
  shared.no_dispatch.store(options.mode == run_mode::no_dispatch ? shared.capture_count : 0, std::memory_order_relaxed);
  // Release pairs with nothing that must be ordered: a call that overlaps this one may or may not be recorded.
  shared.active_capture.store(shared.capture_count, std::memory_order_release);
  return shared.capture_count;
}

[[nodiscard]] inline std::uint32_t active_session() noexcept {
  return abi_1::process_registry.active_capture.load(std::memory_order_relaxed);
}

/// Ends the present segment. Throws `memprof::error` if no capture is active.
inline void end_segment(std::string_view name) {
  registry& shared = abi_1::process_registry;
  const control_guard control;
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) {
    raise("snapshot: no capture is active, so there is no segment '" + std::string{name} +
          "' to end; hold the guard of begin_capture() while the program runs");
  }
  shared.drain(shared);
  state_of(shared)->events.end_segment(abi_1::intern(shared, name), shared.stamps.next());
}

/// Lets capture `number` own its backends; gives them back if another thread has ended it already.
[[nodiscard]] inline kept_backends keep_backends(std::uint32_t number, kept_backends backends) noexcept {
  const control_guard control;
  if (active_session() != number) return backends;
  reachable_backends = backends.get();
  state_of(abi_1::process_registry)->backends = std::move(backends);
  return {};
}

/// Switches the backends of capture `number` off, if it is active and has any.
inline void detach_backends_of(std::uint32_t number) noexcept {
  const backend_calls* attached = nullptr;
  void* backends = nullptr;
  {
    const control_guard control;
    if (active_session() != number) return;
    kept_backends& kept = state_of(abi_1::process_registry)->backends;
    attached = kept.take_attached();
    backends = kept.get();
  }
  if (attached == nullptr) return;
  // Not under the lock: they may call us.
  const nested_allocation hidden;
  attached->detach(backends);
}

/// Ends capture `number` with a last segment. False if it is not the active one.
inline bool end_session(std::uint32_t number, std::string_view name) noexcept {
  registry& shared = abi_1::process_registry;
  if (number == 0 || active_session() != number) return false;
  detach_backends_of(number);
  module_paths other_registries = find_other_registries();
  warn_about_other_registries(other_registries);
  const control_guard control;
  if (active_session() != number) return false;
  shared.active_capture.store(0, std::memory_order_relaxed);
  shared.no_dispatch.store(0, std::memory_order_relaxed);
  shared.drain(shared);
  shared.drain = nullptr;
  capture_state& state = *state_of(shared);
  state.end_stamp = shared.stamps.next();
  state.end_ns = monotonic_ns();
  state.end_drains = shared.drains;
  state.other_registries = std::move(other_registries);
  state.dropped_events = shared.dropped_events.load(std::memory_order_relaxed);
  state.reentrant_events = shared.reentrant_events.load(std::memory_order_relaxed);
  state.events.end_segment(abi_1::intern(shared, name), state.end_stamp);
  return true;
}

/// Ends whatever capture is active and forgets the last one.
inline void clear_session() noexcept {
  registry& shared = abi_1::process_registry;
  end_session(active_session(), end_segment_name);
  kept_backends of_last_capture;  // destroyed when the lock is free again
  const control_guard control;
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) of_last_capture = forget_capture(shared);
}

/// The profile of capture `number`, or of whichever there is for 0. False if it is gone.
template <class State = capture_state>
[[nodiscard]] bool read_session(std::uint32_t number, profile& result) {
  registry& shared = abi_1::process_registry;
  module_paths other_registries = find_other_registries();
  const control_guard control;
  State* const state = static_cast<State*>(shared.capture);
  if (state == nullptr || (number != 0 && shared.capture_count != number)) return false;
  if (shared.drain != nullptr) {
    shared.drain(shared);
    state->other_registries = std::move(other_registries);  // of a capture that has ended, those that were there at its end count
  }
  result = make_profile(shared, *state);
  state->backends.describe(result);
  return true;
}

}  // namespace memprof::detail
