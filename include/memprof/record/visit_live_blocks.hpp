#pragma once

#include <memprof/config.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>

#include <cstddef>
#include <type_traits>

namespace memprof::inline MEMPROF_ABI::detail {

/// Calls `visit(address, bytes)` for each block of a space that is live in the active capture, in no particular order, whichever
/// part began it. Costs a drain and a pass over the live blocks, under the registry's lock: `visit` must not record, and must not
/// allocate memory that a hook sees.
template <class Visitor>
void for_each_live_block(space_id space, Visitor&& visit) {
  if (!may_control()) return;
  registry& shared = abi_1::process_registry;
  const control_guard control;
  if (shared.visit_live_blocks == nullptr) return;
  shared.drain(shared);
  shared.visit_live_blocks(shared, space.value, &visit, [](void* context, const void* address, std::size_t bytes) {
    (*static_cast<std::remove_reference_t<Visitor>*>(context))(address, bytes);
  });
}

}  // namespace memprof::inline MEMPROF_ABI::detail
