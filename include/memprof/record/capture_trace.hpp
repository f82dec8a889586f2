#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/fact/incomplete_trace_file.hpp>
#include <memprof/profile/fact/unrecorded_module.hpp>
#include <memprof/record/capture_state.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/duplicate_registries.hpp>
#include <memprof/record/live_trace.hpp>
#include <memprof/record/options.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/rings.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/run_mode.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/version.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// What a capture puts into its trace besides the program's events.

namespace memprof::inline MEMPROF_ABI::detail {

/// Adds a reading of both clocks to the trace. Under the lock, after a drain.
inline void put_clock_reading(registry& shared, capture_state& state) noexcept {
  const std::uint64_t stamp = shared.stamps.next();
  state.last_reading_ns = monotonic_ns() - state.begin_ns;
  state.put({stamp, static_cast<std::uint64_t>(state.last_reading_ns), static_cast<std::uint64_t>(unix_ns()), 0,
             event_kind::clock_reading, any_space, 0});
}

/// Records in the trace how much was lost, if that has changed. Under the lock, after a drain.
inline void put_lost_events(registry& shared, capture_state& state) noexcept {
  const std::uint64_t dropped = shared.dropped_events.load(std::memory_order_relaxed);
  const std::uint64_t reentrant = shared.reentrant_events.load(std::memory_order_relaxed);
  if (dropped == state.dropped_events && reentrant == state.reentrant_events && !state.lacks_modules) return;
  state.dropped_events = dropped;
  state.reentrant_events = reentrant;
  const std::uint16_t are_more_missing = state.lacks_modules ? 1 : 0;
  state.put({shared.stamps.next(), dropped, reentrant, 0, event_kind::lost_events, any_space, are_more_missing});
}

/// Records which libraries record elsewhere. Under the lock.
inline void put_unrecorded_modules(capture_state& state, const module_paths& paths) {
  if (paths.size() == 0 && !state.lacks_modules) return;
  state.lacks_modules = paths.size() != 0;
  std::size_t count = 0;
  for (const char character : paths) count += character == '\0' ? 1 : 0;
  vector<unrecorded_module> modules(count);
  const char* path = paths.data();
  for (unrecorded_module& module : modules) {
    module.path = path;
    path += module.path.size() + 1;
  }
  state.facts(to_table(modules));
}

/// Records what the trace file lacks, if that has changed. Under the lock.
[[gnu::cold, gnu::noinline]] inline void put_incomplete_file(capture_state& state) {
  const std::uint64_t missing = state.file.missing_events();
  const std::string problem = state.file.problem();
  const std::uint32_t hash = problem.empty() ? 0 : label_table::hash_of(problem);
  if (state.reported_missing_events == missing && state.reported_problem == hash) return;
  state.reported_missing_events = missing;
  state.reported_problem = hash;
  const incomplete_trace_file row{std::string{state.file.path()}, problem, static_cast<std::int64_t>(missing)};
  state.facts(table_of(&row, &row + 1));
}

/// Resumes the trace file after a gap: writes everything that is needed to read on from here. Under the lock, before a drain.
[[gnu::cold, gnu::noinline]] inline void continue_file(registry& shared, capture_state& state) noexcept {
  live_trace& file = state.file;
  for (label id = file.last_name() + 1; id <= shared.labels->size(); ++id) file.name(id, shared.labels->text(id));
  for (std::uint32_t id = file.spaces(); id < shared.space_count; ++id)
    file.space({static_cast<std::uint8_t>(id), shared.space_names[id], 0, false, shared.space_memories[id]});
  for (const event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    if (ring->drained != 0) file.position(ring->id, ring->drained);
  }
  page_array<unsigned char> saved;
  // Otherwise the gap says that events are missing.
  if (state.is_folded && state.fold.write_saved_state(saved)) file.saved_state(saved);
  file.commit();
}

/// Begins a generation of a trace file that has a limit. Under the lock, after a drain.
[[gnu::cold, gnu::noinline]] inline void begin_generation(registry& shared, capture_state& state) noexcept {
  page_array<unsigned char> saved;
  if (!state.fold.write_saved_state(saved)) return;
  state.file.begin_generation(*shared.labels, state.fold.events().events(), saved, [&](trace& beginning) {
    for (const event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
      if (ring->drained != 0) beginning.position(ring->id, ring->drained);
    }
  });
}

/// Begins the trace with what is known before the first event. Under the lock.
inline void begin_trace(registry& shared, capture_state& state, const capture_options& options, run_mode mode,
                        const process_info& process) {
  capture_info info;
  info.library_version = version_string;
  info.mode = mode;
  info.device = options.device.name.view();
  info.begin_unix_ns = unix_ns();
  info.begin_stamp = shared.stamps.next();
  info.timeline_points = options.timeline_points;
  info.largest_blocks = options.largest_blocks;
  info.owners_per_segment = options.owners_per_segment;
  info.full_segments = options.full_segments;
  info.segment_names = options.segment_names;
  info.operations = options.operations;
  info.leading_thread = options.infer_operations ? thread_id() : 0;
  info.process = process;
  state.begin_stamp = info.begin_stamp;
  state.is_simulated = mode == run_mode::no_dispatch;
  state.info(info);
  for (label id = 1; id <= shared.labels->size(); ++id) state.name(id, shared.labels->text(id));
  for (std::uint32_t id = 0; id < registry::max_spaces; ++id) {
    if (shared.space_names[id] == 0) continue;
    space_definition space{static_cast<std::uint8_t>(id), shared.space_names[id], 0, false, shared.space_memories[id]};
    if (const device_space* const limited = options.device.find_space(shared.labels->text(space.name))) {
      space.capacity = limited->capacity;
      space.is_per_core = limited->is_per_core;
      space.memory = 0;  // the device's memory
    }
    state.space(space);
  }
  state.put({info.begin_stamp, 0, static_cast<std::uint64_t>(info.begin_unix_ns), 0, event_kind::clock_reading, any_space, 0});
}

/// Ends the trace and its last segment. Under the lock, after a drain.
inline void end_trace(registry& shared, capture_state& state, std::string_view last_segment) noexcept {
  if (state.file.wait_and_resume()) continue_file(shared, state);
  if (state.file.take_lacks_facts()) {
    for (const fact_table& table : state.fold.facts()) state.file.facts(table);
  }
  put_incomplete_file(state);
  const label name = detail::intern(shared, last_segment);
  put_lost_events(shared, state);
  put_clock_reading(shared, state);
  state.put({0, 0, 0, name, event_kind::segment_end, any_space, 0});
  state.put({0, 0, 0, 0, event_kind::capture_end, any_space, 0});
  state.end_drains = shared.drains;
  state.has_ended = true;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
