#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/fact/incomplete_trace_file.hpp>
#include <memprof/profile/fact/unrecorded_module.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/record/capture_backends.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/drain.hpp>
#include <memprof/record/duplicate_registries.hpp>
#include <memprof/record/growth_warning.hpp>
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
#include <memprof/trace/fact_table.hpp>
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
      : begin_drains(shared.drains),
        begin_ns(monotonic_ns()),
        memory_trace(options.trace),
        warn_growth_after(options.warn_growth_after),
        on_growth(options.on_growth),
        fold(*shared.labels) {}

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
  bool is_folded = true;      ///< false: events go to the trace alone; see `keep_trace_only`
  bool is_simulated = false;  ///< `run_mode::no_dispatch`
  bool records_malloc = false;
  double record_ns = 0;
  trace* memory_trace;              ///< `capture_options::trace`; may be null
  std::uint32_t warn_growth_after;  ///< `capture_options::warn_growth_after`, and the function to call
  void (*on_growth)(const growth_warning&) noexcept;
  page_array<std::uint64_t> noticed_growth;  ///< who was warned of: the space, and the owner in its 32 lowest bits
  live_trace file;
  std::uint64_t reported_missing_events = 0;  ///< as last reported in the facts; likewise the problem, by hash
  std::uint32_t reported_problem = 0;
  process_readings process;
  capture_backends backends;
  trace_fold fold;

  // --- input --------------------------------------------------------------------------------------------------------

  /// The drain's consumer.
  void apply(const event* first, const event* last, std::uint32_t ring_id) noexcept {
    if (is_folded) fold.events(first, last, ring_id);
    if (memory_trace != nullptr) memory_trace->events(first, last, ring_id);
    if (file.takes_events()) file.events(first, last, ring_id);
  }
  void apply(const ordered_event* first, const ordered_event* last) noexcept {
    if (is_folded) fold.events(first, last);
    if (file.takes_events()) file.events(first, last);
    if (memory_trace == nullptr) return;
    for_each_run(first, last, [this](const event* begin, const event* end, std::uint32_t ring_id) {
      memory_trace->events(begin, end, ring_id);
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

/// The active or last capture; null if there is none, or if a part with other types began it. Under the lock.
[[nodiscard]] inline capture_state* state_of(registry& shared) noexcept {
  return shared.capture_version == part_version ? static_cast<capture_state*>(shared.capture) : nullptr;
}

/// Whether a part with another version of the library, or another `std::string`, began the active or last capture. Under the
/// lock.
[[nodiscard]] inline bool is_of_other_version(const registry& shared) noexcept {
  return shared.capture != nullptr && shared.capture_version != part_version;
}

/// Warns, once, that a call does nothing because a part of `part_version` `begun_by` began the capture. Without the lock.
[[gnu::cold, gnu::noinline]] inline void warn_of_other_version(std::uint32_t begun_by) noexcept {
  static constinit std::atomic<bool> is_said{false};
  if (is_said.exchange(true, std::memory_order_relaxed)) return;
  const internal_guard hidden;
  const std::uint32_t version = begun_by & ~former_string_bit;
  const auto string_of = [](std::uint32_t part) {
    return (part & former_string_bit) != 0 ? " with _GLIBCXX_USE_CXX11_ABI=0" : "";
  };
  std::fprintf(stderr,
               "memprof: the capture was begun by memprof %u.%u.%u%s, so code compiled with %s%s can neither end it nor ask for "
               "its profile; build all parts in the same way\n",
               version / 1'000'000, version / 1'000 % 1'000, version % 1'000, string_of(begun_by), version_string,
               string_of(part_version));
}

/// Bytes that the profiler holds: rings, names and the capture.
[[nodiscard]] inline std::uint64_t profiler_bytes(const registry& shared, const capture_state& state) noexcept {
  const phantom_addresses* const phantom = shared.phantom.load(std::memory_order_relaxed);
  const profiler_blocks* const own = shared.profiler_blocks.load(std::memory_order_relaxed);
  const abi_1::stack_recorder* const stacks = shared.stacks.load(std::memory_order_acquire);
  return sizeof(registry) + (phantom == nullptr ? 0 : sizeof(phantom_addresses) + phantom->bytes()) +
         (stacks == nullptr ? 0 : stacks->bytes) + (own == nullptr ? 0 : sizeof(profiler_blocks) + own->bytes()) +
         shared.ring_bytes + shared.drain_heap_capacity * sizeof(event_ring*) +
         (shared.labels == nullptr ? 0 : shared.labels->bytes()) + (sizeof(capture_state) - sizeof(trace_fold)) +
         state.fold.bytes() + state.file.bytes() + state.noticed_growth.bytes();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
