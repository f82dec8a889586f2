#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/trace/event.hpp>

#include <concepts>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// Notified of each block that comes or goes in a memory space, and at which stamp. A block replaced at its address goes first.
/// `segment_ended` is called once `history` has the segment.
template <class T>
concept block_listener = requires(T listener, std::uint8_t space, const block& one, std::uint64_t stamp,
                                  const segment_history& history) {
  listener.allocated(space, one, stamp);
  listener.freed(space, one, stamp);
  listener.segment_ended(history);
};

/// Applies events as `ledger::apply` does, and notifies `listener` of each block that came or went and each segment that ended.
///
/// The ledger decides what a block is; this compares its blocks before and after an event, so that a capture, which has no
/// listener, does not pay for it. Costs a few lookups per event, and a pass over the space's live blocks for an event that may
/// free many.
template <block_listener Listener>
void apply_and_notify(ledger& events, const event* first, const event* last, std::uint32_t ring, Listener& listener) {
  page_array<block> before;
  for (; first != last; ++first) {
    const event& recorded = *first;
    before.clear();
    std::uint64_t allocations = 0;
    if (const space_ledger* const space = events.space(recorded.space)) {
      allocations = space->allocation_count();
      if (recorded.kind == event_kind::deallocate_circular_buffers || recorded.kind == event_kind::deallocate_range) {
        space->blocks().for_each([&](const block& live) { (void)before.push_back(live); });
      } else if (const block* const live = space->blocks().at(recorded.address)) {
        (void)before.push_back(*live);
      }
    }
    const std::uint64_t segments = events.segments().count();
    events.apply(first, first + 1, ring);
    if (events.segments().count() != segments) listener.segment_ended(events.segments());
    const space_ledger* const space = events.space(recorded.space);
    if (space == nullptr) continue;
    for (const block& old : before) {
      const block* const now = space->blocks().at(old.address);
      if (now == nullptr || now->born() != old.born()) listener.freed(recorded.space, old, events.last_stamp());
    }
    if (space->allocation_count() == allocations) continue;
    if (const block* const made = space->blocks().at(recorded.address))
      listener.allocated(recorded.space, *made, events.last_stamp());
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
