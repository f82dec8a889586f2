#pragma once

#include <memprof/record/capture_state.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>

namespace memprof::inline MEMPROF_ABI::detail {

/// From now on the events of the active capture go to its trace alone, which must have no limit, and the capture has no numbers
/// of its own: for a process whose trace another one reads. Saves the ledger's time and memory.
inline void keep_trace_only() noexcept {
  const control_guard control;
  if (capture_state* const state = state_of(abi_1::process_registry)) state->is_folded = false;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
