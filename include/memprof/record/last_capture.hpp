#pragma once

#include <memprof/detail/cancellation_guard.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/record/backend_guard.hpp>
#include <memprof/record/capture_backends.hpp>
#include <memprof/record/capture_state.hpp>
#include <memprof/record/capture_trace.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/segment_end.hpp>

#include <atomic>
#include <cstdint>
#include <utility>

/// @file
/// The active or last capture of the process, as the control path finds and forgets it, and calls to its backends.

namespace memprof::inline MEMPROF_ABI::detail {

/// A second pointer to the capture's backends, set under the lock. They live until the process ends, and leak checkers do not
/// search the capture's pages for pointers.
inline constinit void* reachable_backends = nullptr;

/// Destroys the last capture and returns its backends, to be destroyed after the lock is released. Under the lock.
[[nodiscard]] inline capture_backends forget_capture(registry& shared) noexcept {
  capture_backends backends;
  if (capture_state* const state = state_of(shared)) {
    backends = std::move(state->backends);
    state->~capture_state();
    unmap_pages(state, sizeof(capture_state));
  }
  shared.capture = nullptr;
  reachable_backends = nullptr;
  reachable_facts = {};
  return backends;
}

/// Completes the trace file of the capture that has ended. Waits for the disk without the registry's lock, but with the backends'
/// lock, so that no other thread begins or discards a capture meanwhile.
inline void finish_file(registry& shared) noexcept {
  const cancellation_guard whole;  // it waits for a thread
  if (shared.active_capture.load(std::memory_order_relaxed) != 0) return;
  capture_state* const state = state_of(shared);
  if (state == nullptr || !state->file.finish()) return;
  {
    const internal_control_guard lock{shared};
    state->file.settle();
    shared.trace_file = {};  // before closing: a child after `fork` must not close another file with that number
    put_incomplete_file(*state);
  }
  const internal_guard hidden;
  state->file.close_file();
}

/// Capture `number`; null if it is not active, or if a part with other types began it. Under the lock.
[[nodiscard]] inline capture_state* state_of_active(std::uint32_t number) noexcept {
  return number != 0 && active_capture() == number ? state_of(abi_1::process_registry) : nullptr;
}

/// Whether a part with other types began the active or last capture; warns if so.
[[nodiscard]] inline bool refuses_other_version(const registry& shared) noexcept {
  std::uint32_t begun_by = 0;
  {
    const control_guard control;
    if (is_of_other_version(shared)) begun_by = shared.capture_version;
  }
  if (begun_by != 0) warn_of_other_version(begun_by);
  return begun_by != 0;
}

/// Everything needed to call a capture's backends without the registry's lock.
struct found_backends {
  void* backends = nullptr;
  const backend_calls* calls = nullptr;
  bool is_first_end = false;  ///< they were attached, and the caller has to detach them
};

/// The backends of capture `number`, if it is active and has any. With `takes_end`, they count as detached from now on.
[[nodiscard]] inline found_backends find_backends(std::uint32_t number, bool takes_end) noexcept {
  const control_guard control;
  capture_state* const state = state_of_active(number);
  if (state == nullptr) return {};
  capture_backends& backends = state->backends;
  if (!backends.is_attached()) return {};
  return {backends.get(), backends.calls(), takes_end && backends.take_attached()};
}

/// Asks the backends of capture `number`, if it is active and has any, for facts.
inline void report_facts_of(std::uint32_t number) {
  const backend_guard serial{abi_1::process_registry};
  if (!serial) return;
  const found_backends found = find_backends(number, false);
  if (found.calls == nullptr) return;
  const recording_suppressor hidden;
  found.calls->report_facts(found.backends);
}

/// Detaches the backends of capture `number`, if it is active and has any, and asks them for facts one last time.
inline void detach_backends_of(std::uint32_t number) noexcept {
  const backend_guard serial{abi_1::process_registry};
  if (!serial) return;
  const found_backends found = find_backends(number, true);
  if (!found.is_first_end) return;
  const recording_suppressor hidden;
  found.calls->detach(found.backends);
  found.calls->report_facts(found.backends);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
