#pragma once

#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/record/capture_state.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/space_id.hpp>

#include <cstddef>

namespace memprof::inline MEMPROF_ABI::detail {

/// Calls `visit(address, bytes)` for each block of a space that is live in the active capture now, in no order. Costs a drain and
/// a pass over the live blocks, under the registry's lock: `visit` must not record, and take memory only where no hook sees it.
template <class Visitor>
void for_each_live_block(space_id space, Visitor&& visit) {
  registry& shared = abi_1::process_registry;
  const control_guard control;
  if (shared.drain == nullptr) return;
  shared.drain(shared);
  capture_state* const state = state_of(shared);
  if (state == nullptr) return;
  const space_ledger* const known = state->fold.events().space(space.value);
  if (known == nullptr) return;
  known->blocks().for_each(
      [&](const block& live) { visit(reinterpret_cast<const void*>(live.address), static_cast<std::size_t>(live.bytes)); });
}

}  // namespace memprof::inline MEMPROF_ABI::detail
