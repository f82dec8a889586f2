#pragma once

#include <memprof/record/backend_guard.hpp>
#include <memprof/record/capture_backends.hpp>
#include <memprof/record/capture_calls.hpp>
#include <memprof/record/capture_drain.hpp>
#include <memprof/record/capture_stacks.hpp>
#include <memprof/record/capture_state.hpp>
#include <memprof/record/capture_trace.hpp>
#include <memprof/record/duplicate_registries.hpp>
#include <memprof/record/last_capture.hpp>
#include <memprof/record/live_trace.hpp>
#include <memprof/record/process_memory.hpp>
#include <memprof/record/process_reading.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/segment_end.hpp>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <utility>

/// @file
/// How a capture's backends are asked and detached, and how it ends: the part of the control path behind `snapshot`,
/// `end_capture` and `discard_capture`.

namespace memprof::inline MEMPROF_ABI::detail {

/// If the trace file of capture `number` has a gap, waits until it has caught up. Without the registry's lock, so that no thread
/// waits for it.
inline void wait_for_file_of(std::uint32_t number) noexcept {
  registry& shared = abi_1::process_registry;
  const backend_guard serial{shared};  // so that no thread discards the capture meanwhile
  if (!serial) return;
  const live_trace* file = nullptr;
  {
    const control_guard control;
    const capture_state* const state = state_of_active(number);
    if (state != nullptr && state->file.is_gapped()) file = &state->file;
  }
  if (file != nullptr) file->wait_for_disk();
}

/// Whether `malloc` was asked when capture `number` began. Then it is asked when it ends, too; the schedule counts both, so that
/// the captures that follow pay for it.
[[nodiscard]] inline bool began_with_heap(std::uint32_t number) noexcept {
  const control_guard control;
  const capture_state* const state = state_of_active(number);
  return state != nullptr && state->process.begin()->heap_bytes >= 0;
}

/// Counts the records of events that signal handlers interrupted and that never finished. Under the lock, once recording is
/// switched off, so that every other record finishes at once; waits for those for a limited time.
inline void count_unfinished_records(registry& shared) noexcept {
  constexpr int longest_ms = 200;
  int waited_ms = 0;
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    if (ring->capture != shared.capture_count || ring->thread == 0) continue;  // of another capture, or counted when it was left
    // Acquire, as in `is_in_flight`.
    const auto is_unfinished = [ring] { return ring->doing.load(std::memory_order_acquire) == activity::recording; };
    for (; is_unfinished() && ring->owner.is_held() && waited_ms < longest_ms; ++waited_ms) {
      const timespec millisecond{0, 1'000'000};
      ::nanosleep(&millisecond, nullptr);
    }
    if (is_unfinished()) note_reentrant(shared, activity::recording);
  }
}

/// Ends capture `number`, except for its trace file, which is still being written.
inline bool close_session(std::uint32_t number, std::string_view name) noexcept {
  registry& shared = abi_1::process_registry;
  if (number == 0 || active_capture() != number || !may_take_lock(shared, abi_1::this_thread)) return false;
  if (refuses_other_version(shared)) return false;
  // Acquire pairs with the release of the backend, which is detached next.
  if (auto* const tell = segment_listener.load(std::memory_order_acquire)) tell(name);
  detach_backends_of(number);
  const module_paths unrecorded = find_duplicate_registries();
  warn_about_duplicate_registries(unrecorded);
  wait_for_file_of(number);
  const capture_moment before = moment_before_reading(shared);
  const process_reading last_reading = read_process(reading_by::allocating_call, began_with_heap(number));
  const control_guard control;
  capture_state* const state = state_of_active(number);
  if (state == nullptr) return false;
  shared.active_capture.store(0, std::memory_order_relaxed);
  shared.no_dispatch.store(0, std::memory_order_relaxed);
  snapshot_reader.store(nullptr, std::memory_order_relaxed);
  process_status.close();
  count_unfinished_records(shared);
  shared.drain(shared);
  put_unrecorded_modules(*state, unrecorded);
  keep_reading(shared, *state, last_reading, before);
  put_process_memory(*state);
  end_stacks(shared, *state);
  end_trace(shared, *state, name);
  state->file.close(shared.rings.load(std::memory_order_relaxed));
  shared.places = nullptr;
  disconnect_capture(shared);
  return true;
}

MEMPROF_SEPARABLE bool finish_capture(std::uint32_t number, std::string_view name) noexcept {
  if (!close_session(number, name)) return false;
  // Without the lock, the file is left to the next capture; it is readable.
  if (const backend_guard serial{abi_1::process_registry}; serial) finish_file(abi_1::process_registry);
  return true;
}

MEMPROF_SEPARABLE void discard_session() noexcept {
  registry& shared = abi_1::process_registry;
  finish_capture(active_capture(), end_segment_name);
  const backend_guard serial{shared};
  if (!serial) return;
  finish_file(shared);
  capture_backends of_last_capture;  // destroyed after the registry's lock is released
  const control_guard control;
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) of_last_capture = forget_capture(shared);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
