#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/record/capture_state.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/stack_recorder.hpp>
#include <memprof/trace/fact_table.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace memprof::inline MEMPROF_ABI::detail {

/// Has the heap's hooks make ready to walk stacks. Without the registry's lock.
inline void prepare_stacks(const registry& shared, stack_capture asked) noexcept {
  if (asked == stack_capture::off) return;
  // Acquire pairs with the release of the hooks, when their library is loaded.
  abi_1::stack_recorder* const recorder = shared.stacks.load(std::memory_order_acquire);
  if (recorder == nullptr) return;
  const internal_guard hidden;
  recorder->prepare(*recorder);
}

/// Puts into the facts which blocks have a stack. Under the lock.
inline void put_stacks(const registry& shared, capture_state& state, stack_capture recorded) {
  if (recorded == stack_capture::off) return;
  const abi_1::stack_recorder* const recorder = shared.stacks.load(std::memory_order_acquire);
  if (recorder == nullptr) {
    const missing_source row{"stacks", "the program includes neither malloc.hpp nor new_delete.hpp"};
    return state.facts(table_of(&row, &row + 1));
  }
  heap_stacks row;
  if (recorded == stack_capture::sampled) {
    row.from_bytes = stacked_from_bytes;
    row.sample_bytes = stack_sample_bytes;
  }
  row.missing_blocks = static_cast<std::int64_t>(recorder->missing.load(std::memory_order_relaxed));
  row.unwinder = recorder->way;
  state.facts(table_of(&row, &row + 1));
}

/// Has the hooks record stacks from now on. Under the lock, before events are recorded.
inline void begin_stacks(registry& shared, capture_state& state, stack_capture asked) {
  abi_1::stack_recorder* const recorder = shared.stacks.load(std::memory_order_acquire);
  if (recorder != nullptr) recorder->missing.store(0, std::memory_order_relaxed);
  put_stacks(shared, state, asked);
  // Relaxed: the barrier in `start_recording` makes it visible.
  shared.heap_stacks.store(recorder == nullptr ? 0 : static_cast<std::uint32_t>(asked), std::memory_order_relaxed);
}

/// Ends that, once all events are drained. Under the lock.
inline void end_stacks(registry& shared, capture_state& state) {
  put_stacks(shared, state, static_cast<stack_capture>(shared.heap_stacks.exchange(0, std::memory_order_relaxed)));
}

}  // namespace memprof::inline MEMPROF_ABI::detail
