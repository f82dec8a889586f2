#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/ledger/thread_state.hpp>
#include <memprof/trace/event.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether a `deallocate_range` frees the block at `address`.
[[nodiscard]] inline bool is_in_range(const event& recorded, std::uint64_t address) noexcept {
  return recorded.tag != 0 || (address >= recorded.address && address - recorded.address < recorded.bytes);
}

/// Applies a `deallocate_range` to the thread's current space: an arena that returns all its blocks at once. Costs a pass over
/// the live blocks of the space. False, with nothing changed, if the system has no memory for the addresses.
[[nodiscard]] inline bool deallocate_range(thread_state& run, const event& recorded, std::uint64_t stamp) noexcept {
  space_ledger& space = *run.space;
  page_array<std::uint64_t> addresses;
  bool has_memory = true;
  space.blocks().for_each([&](const block& live) {
    if (is_in_range(recorded, live.address)) has_memory = has_memory && addresses.push_back(live.address);
  });
  if (!has_memory) return false;
  for (const std::uint64_t address : addresses) {
    space.cores().deallocate(address);
    if (const live_blocks::place entry = space.find(address)) run.take_away(entry);
  }
  space.mark_event(stamp);
  return true;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
