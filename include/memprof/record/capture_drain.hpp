#pragma once

#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/record/capture_state.hpp>
#include <memprof/record/capture_trace.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/drain.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_part.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/fact_tables.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/payload.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

/// @file
/// How rings are emptied into the active capture, and what else the registry passes to it.

namespace memprof::inline MEMPROF_ABI::detail {

/// Empties the rings into the active capture; `registry::drain` points here.
inline void drain_into_capture(registry& shared) noexcept {
  constexpr std::int64_t between_readings_ns = 1'000'000'000;
  constexpr std::uint64_t million = 1'000'000;
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
inline void add_facts_to_capture(registry& shared, std::string_view records) {
  capture_state* const state = state_of(shared);
  if (state == nullptr) return;
  fact_tables added{no_fact_limits};
  for (payload_reader in{records}; !in.is_at_end();) {
    fact_part part;
    if (decode_facts(in.text(), part)) added.add(std::move(part));
  }
  for (const fact_table& table : added.all()) state->facts(table);
}

inline void visit_live_blocks_of_capture(registry& shared, std::uint8_t space, void* context,
                                         void (*visit)(void*, const void*, std::size_t)) {
  capture_state* const state = state_of(shared);
  const space_ledger* const known = state == nullptr ? nullptr : state->fold.events().space(space);
  if (known == nullptr) return;
  known->blocks().for_each([&](const block& live) {
    visit(context, reinterpret_cast<const void*>(live.address), static_cast<std::size_t>(live.bytes));
  });
}

/// Connects the registry to the capture, or disconnects it.
inline void connect_capture(registry& shared) noexcept {
  shared.drain = drain_into_capture;
  shared.put_event = put_event_into_capture;
  shared.define_name = define_name_in_capture;
  shared.define_space = define_space_in_capture;
  shared.add_fact_records = add_facts_to_capture;
  shared.visit_live_blocks = visit_live_blocks_of_capture;
}
inline void disconnect_capture(registry& shared) noexcept {
  shared.drain = nullptr;
  shared.put_event = nullptr;
  shared.define_name = nullptr;
  shared.define_space = nullptr;
  shared.add_fact_records = nullptr;
  shared.visit_live_blocks = nullptr;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
