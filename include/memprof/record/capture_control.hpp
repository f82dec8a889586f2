#pragma once

#include <memprof/profile/build.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/record/capture_calls.hpp>
#include <memprof/record/capture_state.hpp>
#include <memprof/record/capture_trace.hpp>
#include <memprof/record/capture_watcher.hpp>
#include <memprof/record/duplicate_registries.hpp>
#include <memprof/record/end_capture.hpp>
#include <memprof/record/last_capture.hpp>
#include <memprof/record/process_memory.hpp>
#include <memprof/record/process_reading.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/start_capture.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/event.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

/// @file
/// The control path: how `begin_capture`, `snapshot`, `end_capture` and `discard_capture` act on the process's registry. All of
/// it runs under the registry's lock, hidden from the hooks; none of it is on the hot path.

namespace memprof::inline MEMPROF_ABI::detail {

/// Makes a profile of the capture so far. Under the lock, after a drain.
template <std::same_as<profile> Profile>
[[nodiscard]] Profile make_profile(registry& shared, capture_state& state) {
  if (!state.has_ended) {
    put_lost_events(shared, state);
    put_clock_reading(shared, state);
    put_incomplete_file(state);
  }
  Profile result = build_profile_of(state.fold);
  const std::uint64_t events = state.fold.events().events();
  result.cost.events = static_cast<std::int64_t>(events);
  result.cost.drains = static_cast<std::int64_t>((state.has_ended ? state.end_drains : shared.drains) - state.begin_drains);
  result.cost.memory_bytes = static_cast<std::int64_t>(profiler_bytes(shared, state));
  result.cost.memory_bytes_at_million_events = static_cast<std::int64_t>(state.profiler_bytes_at_million);
  result.cost.record_ns_per_event = state.record_ns;
  if (events != 0) {
    const clock_readings& clock = state.fold.events().clock();
    const auto drain_ns = static_cast<double>(clock.to_ns(state.begin_stamp + state.drain_stamps));
    result.cost.drain_ns_per_event = drain_ns / static_cast<double>(events);
  }
  return result;
}

#if !MEMPROF_SEPARATE_COMPILATION
template <std::same_as<profile> Profile>
bool read_session(std::uint32_t number, Profile& result) {
#else
bool read_session(std::uint32_t number, profile& result) {
#endif
  registry& shared = abi_1::process_registry;
  if (!may_take_lock(shared, abi_1::this_thread)) return false;
  if (refuses_other_version(shared)) return false;
  report_facts_of(number == 0 ? active_capture() : number);
  const module_paths unrecorded = find_duplicate_registries();
  const capture_moment before = moment_before_reading(shared);
  const process_reading reading = active_capture() == 0 ? process_reading{} : read_process(reading_by::allocating_call);
  const internal_control_guard lock{shared};
  capture_state* const state = state_of(shared);
  if (state == nullptr || (number != 0 && shared.capture_count != number)) return false;
  if (shared.drain != nullptr) {
    shared.drain(shared);
    put_unrecorded_modules(*state, unrecorded);  // for an ended capture, the modules loaded at its end count
    keep_reading(shared, *state, reading, before);
    put_process_memory(*state);
  }
  result = make_profile<std::remove_reference_t<decltype(result)>>(shared, *state);
  if (watcher != nullptr && state->memory_trace != nullptr) watcher->compare(*state->memory_trace, result);
  return true;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
