#pragma once

#include <memprof/memprof.hpp>


#include <cstddef>

namespace memprof::detail {

/// Calls `visit(address, bytes)` for each block of a space that is live in the active capture now, in no order. Costs a drain and
/// a pass over the live blocks, under the registry's lock: `visit` must not record, and take memory only where no hook sees it.
template <class Visitor>
void for_each_live_block(space_id space, Visitor&& visit) {
  registry& shared = abi_1::process_registry;
  const control_guard control;
  if (shared.drain == nullptr) return;
  shared.drain(shared);
  const space_ledger* const known = state_of(shared)->fold.events().space(space.value);
  if (known == nullptr) return;
  known->blocks().for_each(
      [&](const block& live) { visit(reinterpret_cast<const void*>(live.address), static_cast<std::size_t>(live.bytes)); });
}

}  // namespace memprof::detail
