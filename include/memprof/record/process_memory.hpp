#pragma once

#include <memprof/detail/errno_guard.hpp>
#include <memprof/detail/succeeds.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/record/capture_state.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/handler_watch.hpp>
#include <memprof/record/process_reading.hpp>
#include <memprof/record/process_readings.hpp>
#include <memprof/record/profiler_blocks.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/fact_payload.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/memory_name.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

/// @file
/// How a capture's readings of the process's memory become facts of its trace.

namespace memprof::inline MEMPROF_ABI::detail {

/// What the capture itself knows at this moment. Under the lock, after a drain.
[[nodiscard]] inline capture_moment this_moment(registry& shared, capture_state& state) noexcept {
  capture_moment now;
  now.time_ns = monotonic_ns() - state.begin_ns;
  now.profiler_bytes = static_cast<std::int64_t>(profiler_bytes(shared, state));
  now.threads = shared.thread_count;
  now.alignment_bytes = shared.alignment_bytes.load(std::memory_order_relaxed);
  // See `show_block_to_hooks`.
  now.records_operator_new = shared.profiler_blocks.load(std::memory_order_relaxed) != nullptr;
  now.records_malloc = state.records_malloc;
  if (state.is_simulated) return now;  // nothing of what is recorded is in the process
  if (!state.is_folded) {
    now.recorded_bytes = -1;  // who reads the trace knows
    return now;
  }
  for (std::uint32_t id = 0; id < registry::max_spaces; ++id) {
    // The space that stands for those beyond the limit may hold blocks of the host; its memory is unknown.
    if (shared.space_memories[id] != host_memory && shared.space_names[id] != other_names) continue;
    const space_ledger* const space = state.fold.events().space(id);
    if (space == nullptr) continue;
    now.recorded_bytes += space->live();
    now.recorded_blocks += static_cast<std::int64_t>(space->blocks().size());
    now.allocated_bytes += space->allocated();
    now.allocated_blocks += static_cast<std::int64_t>(space->allocation_count());
  }
  return now;
}

/// Lets the program's replaced `operator new`, if it has one, see a block of the profiler's, so that `registry::profiler_blocks`
/// exists from then on, and looks whether its `malloc` notes one, too. Hidden from the hooks, during a capture.
inline void show_block_to_hooks(registry& shared, capture_state& state) noexcept {
  void* block = ::operator new(1, std::nothrow);
  asm volatile("" : "+r"(block) : : "memory");  // or the compiler leaves out both calls
  ::operator delete(block);
  block = std::malloc(1);
  asm volatile("" : "+r"(block) : : "memory");
  profiler_blocks* const own = shared.profiler_blocks.load(std::memory_order_relaxed);
  state.records_malloc = own != nullptr && own->remove(reinterpret_cast<std::uintptr_t>(block));
  std::free(block);
}

/// What the active or last capture knows now, before it reads: what is recorded until the reading is kept may have happened
/// before or after `malloc` answered. Takes the lock, under which no reading is made.
[[nodiscard]] inline capture_moment moment_before_reading(registry& shared) noexcept {
  const control_guard control{shared};
  capture_state* const state = state_of(shared);
  if (shared.drain == nullptr || state == nullptr) return {};
  shared.drain(shared);
  return this_moment(shared, *state);
}

/// Keeps a reading made after `before`. Under the lock, after a drain.
inline void keep_reading(registry& shared, capture_state& state, const process_reading& reading,
                         const capture_moment& before) noexcept {
  state.process.add(reading, before, this_moment(shared, state));
}

/// See `process_readings::raise_heap_before`. Where a capture begins, without the lock.
inline void settle_heap_before(registry& shared, const process_reading& first) noexcept {
  if (first.heap < 0 || first.threads == 1) return;
  process_reading second;
  const std::int64_t begin_ns = monotonic_ns();
  add_heap(second);
  process_heap_schedule.note(begin_ns, monotonic_ns());
  const control_guard control{shared};
  if (capture_state* const state = state_of(shared)) state->process.raise_heap_before(second.heap);
}

/// Puts the kept readings into the trace, if there are new ones and there is memory for them. Under the lock, where no hook sees
/// what it allocates.
inline void put_process_memory(capture_state& state) noexcept {
  if (!state.process.take_new()) return;
  (void)succeeds([&] { state.facts(table_of(state.process.begin(), state.process.end())); });
}

/// The same for the trace file alone, in which they survive if the process is killed, if they say something new: a run of many
/// small segments must not have a large file. Allocates nothing.
inline void write_process_memory(capture_state& state) noexcept {
  if (!state.file.takes_events() || !state.process.take_notable()) return;
  fact_payload<2048> rows;
  state.file.encoded_facts(rows.encode(state.process.begin(), state.process.end()));
  state.file.commit();
}

/// Reads the process's memory at a snapshot. Its frame has a buffer of 4 KiB, so it is not part of its caller's.
[[gnu::noinline]] inline void read_process_and_keep(registry& shared) noexcept {
  const errno_guard kept;
  const capture_moment before = moment_before_reading(shared);
  const std::int64_t reading_ns = monotonic_ns();  // a drain is no cost of reading: it would come sooner or later
  const process_reading reading = read_process(reading_by::snapshot);
  process_schedule.finish(reading_ns, monotonic_ns());
  const control_guard control{shared};
  capture_state* const state = state_of(shared);
  if (shared.drain == nullptr || state == nullptr || state->has_ended || !reading.is_there()) return;
  shared.drain(shared);
  keep_reading(shared, *state, reading, before);
  write_process_memory(*state);
}

/// The same, if the schedule and the stack allow. `snapshot_reader` points here while a capture is active.
inline void read_process_at_snapshot() noexcept {
  if (!is_outside(abi_1::this_thread)) return;
  const std::int64_t now_ns = monotonic_ns();
  if (!process_schedule.claim(now_ns)) return;
  if (is_on_alternate_stack()) return process_schedule.finish(now_ns, now_ns);  // the next snapshot may read
  read_process_and_keep(abi_1::process_registry);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
