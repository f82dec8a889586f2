#pragma once

#include <memprof/profile/build.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/record/capture_state.hpp>
#include <memprof/record/capture_trace.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/clock_readings.hpp>

#include <concepts>
#include <cstdint>

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

}  // namespace memprof::inline MEMPROF_ABI::detail
