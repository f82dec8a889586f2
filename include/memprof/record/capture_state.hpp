#pragma once

#include <memprof/profile/build.hpp>
#include <memprof/profile/fact/incomplete_trace_file.hpp>
#include <memprof/profile/fact/unrecorded_module.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/record/capture_backends.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/drain.hpp>
#include <memprof/record/duplicate_registries.hpp>
#include <memprof/record/live_trace.hpp>
#include <memprof/record/options.hpp>
#include <memprof/record/phantom_addresses.hpp>
#include <memprof/record/process_readings.hpp>
#include <memprof/record/profiler_blocks.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/rings.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fitted_facts.hpp>
#include <memprof/trace/run_mode.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/version.hpp>

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// Second pointers to what holds the capture's facts: leak checkers do not search its pages for pointers.
inline constinit std::array<const void*, 2> reachable_facts{};

/// One capture: folds the incoming trace, and keeps it on request. Used under the registry's lock.
struct capture_state {
  capture_state(const capture_options& options, registry& shared)
      : begin_drains(shared.drains), begin_ns(monotonic_ns()), memory_trace(options.trace), fold(*shared.labels) {}

  std::uint64_t begin_drains;
  std::int64_t begin_ns;  ///< on the monotonic clock
  std::uint64_t begin_stamp = 0;
  std::int64_t last_reading_ns = 0;  ///< when the trace last got a clock reading, after `begin_ns`
  std::uint64_t end_drains = 0;
  std::uint64_t drain_stamps = 0;  ///< clock ticks spent draining
  std::uint64_t profiler_bytes_at_million = 0;
  std::uint64_t dropped_events = 0;  ///< these two as last written to the trace
  std::uint64_t reentrant_events = 0;
  bool lacks_modules = false;  ///< some libraries record elsewhere
  bool has_ended = false;
  bool is_simulated = false;  ///< `run_mode::no_dispatch`
  double record_ns = 0;
  trace* memory_trace;  ///< `capture_options::trace`; may be null
  live_trace file;
  std::uint64_t reported_missing_events = 0;  ///< as last reported in the facts; likewise the problem, by hash
  std::uint32_t reported_problem = 0;
  process_readings process;
  capture_backends backends;
  trace_fold fold;

  // --- input --------------------------------------------------------------------------------------------------------

  /// The drain's consumer.
  void apply(const event* first, const event* last, std::uint32_t ring_id) noexcept {
    fold.events(first, last, ring_id);
    if (memory_trace != nullptr) memory_trace->events(first, last, ring_id);
    if (file.takes_events()) file.events(first, last, ring_id);
  }
  void apply(const ordered_event* first, const ordered_event* last) noexcept {
    fold.events(first, last);
    if (memory_trace == nullptr && !file.takes_events()) return;
    for_each_run(first, last, [this](const event* begin, const event* end, std::uint32_t ring_id) {
      if (memory_trace != nullptr) memory_trace->events(begin, end, ring_id);
      if (file.takes_events()) file.events(begin, end, ring_id);
    });
  }
  void info(const capture_info& info) {
    fold.info(info);
    if (memory_trace != nullptr) memory_trace->info(info);
    file.info(info);
  }
  void name(label id, std::string_view text) noexcept {
    if (memory_trace != nullptr) memory_trace->name(id, text);
    file.name(id, text);
    file.commit();
  }
  void space(const space_definition& space) noexcept {
    fold.space(space);
    if (memory_trace != nullptr) memory_trace->space(space);
    file.space(space);
    file.commit();
  }
  void facts(const fact_table& table) {
    fold.facts({fitted(table)});
    reachable_facts = fold.memory_of_facts();
    if (memory_trace != nullptr) memory_trace->facts(table);
    file.facts(table);
    file.commit();
  }
  void put(const event& own) noexcept {
    apply(&own, &own + 1, no_ring_id);
    file.commit();
  }
};

/// The active or last capture; null if there is none, or if another version of the library began it. Under the lock.
[[nodiscard]] inline capture_state* state_of(registry& shared) noexcept {
  return shared.capture_version == version_number ? static_cast<capture_state*>(shared.capture) : nullptr;
}

/// Whether another version of the library began the active or last capture. Under the lock.
[[nodiscard]] inline bool is_of_other_version(const registry& shared) noexcept {
  return shared.capture != nullptr && shared.capture_version != version_number;
}

/// Warns, once, that a call does nothing because version `begun_by` began the capture. Without the lock.
[[gnu::cold, gnu::noinline]] inline void warn_of_other_version(std::uint32_t begun_by) noexcept {
  static constinit std::atomic<bool> is_said{false};
  if (is_said.exchange(true, std::memory_order_relaxed)) return;
  const internal_guard hidden;
  std::fprintf(stderr,
               "memprof: the capture was begun by memprof %u.%u.%u, so code compiled with %s can neither end it nor ask for its "
               "profile; build all parts with the same version\n",
               begun_by / 1'000'000, begun_by / 1'000 % 1'000, begun_by % 1'000, version_string);
}

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
  std::vector<unrecorded_module> modules(count);
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
  if (state.fold.write_saved_state(saved)) file.saved_state(saved);  // otherwise the gap says that events are missing
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

inline constexpr std::uint64_t million = 1'000'000;

/// Bytes that the profiler holds: rings, names and the capture.
[[nodiscard]] inline std::uint64_t profiler_bytes(const registry& shared, const capture_state& state) noexcept {
  const phantom_addresses* const phantom = shared.phantom.load(std::memory_order_relaxed);
  const profiler_blocks* const own = shared.profiler_blocks.load(std::memory_order_relaxed);
  return sizeof(registry) + (phantom == nullptr ? 0 : sizeof(phantom_addresses) + phantom->bytes()) +
         (own == nullptr ? 0 : sizeof(profiler_blocks) + own->bytes()) + shared.ring_bytes +
         shared.drain_heap_capacity * sizeof(event_ring*) + (shared.labels == nullptr ? 0 : shared.labels->bytes()) +
         (sizeof(capture_state) - sizeof(trace_fold)) + state.fold.bytes() + state.file.bytes();
}

/// Empties the rings into the active capture; `registry::drain` points here.
inline void drain_into_capture(registry& shared) noexcept {
  constexpr std::int64_t between_readings_ns = 1'000'000'000;
  capture_state* const active = state_of(shared);
  if (active == nullptr) return;
  capture_state& state = *active;
  const std::uint64_t before = shared.stamps.next();
  if (state.file.resume()) continue_file(shared, state);
  drain_rings<no_pauses>(shared, state);
  state.file.commit();
  if (state.file.wants_generation()) [[unlikely]]
    begin_generation(shared, state);
  state.drain_stamps += shared.stamps.next() - before;
  if (monotonic_ns() - state.begin_ns - state.last_reading_ns >= between_readings_ns) {
    put_clock_reading(shared, state);
    state.file.flush_unmapped();
  }
  if (state.profiler_bytes_at_million == 0 && state.fold.events().events() >= million) {
    state.profiler_bytes_at_million = profiler_bytes(shared, state);
  }
}

inline void put_event_into_capture(registry& shared, const event& own) noexcept {
  if (capture_state* const state = state_of(shared)) state->put(own);
}
inline void define_name_in_capture(registry& shared, label id) noexcept {
  if (capture_state* const state = state_of(shared)) state->name(id, shared.labels->text(id));
}
inline void define_space_in_capture(registry& shared, std::uint8_t id) noexcept {
  if (capture_state* const state = state_of(shared))
    state->space({id, shared.space_names[id], 0, false, shared.space_memories[id]});
}
inline void add_facts_to_capture(registry& shared, const fact_table& table) {
  if (capture_state* const state = state_of(shared)) state->facts(table);
}

/// Connects the registry to the capture, or disconnects it.
inline void connect_capture(registry& shared) noexcept {
  shared.drain = drain_into_capture;
  shared.put_event = put_event_into_capture;
  shared.define_name = define_name_in_capture;
  shared.define_space = define_space_in_capture;
  shared.add_facts = add_facts_to_capture;
}
inline void disconnect_capture(registry& shared) noexcept {
  shared.drain = nullptr;
  shared.put_event = nullptr;
  shared.define_name = nullptr;
  shared.define_space = nullptr;
  shared.add_facts = nullptr;
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
