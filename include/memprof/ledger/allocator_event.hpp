#pragma once

#include <memprof/ledger/active_ledger.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/out_of_memory_ledger.hpp>
#include <memprof/ledger/reserved_ledger.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/ledger/stream_ledger.hpp>
#include <memprof/ledger/thread_state.hpp>
#include <memprof/trace/event.hpp>

#include <cstdint>
#include <limits>

/// @file
/// What an allocator of a device tells beyond plain blocks: for which stream and from which pool, what it takes from the device
/// and gives back, which freed blocks streams still use, and when the device has no more.

namespace memprof::inline MEMPROF_ABI {

/// Whether the event is one of these.
[[nodiscard]] inline bool is_allocator_event(event_kind kind) noexcept {
  return (kind >= event_kind::reserve && kind <= event_kind::out_of_memory) || kind == event_kind::complete_deallocation;
}

namespace detail {

/// The bytes that live at the event's address; 0 if nothing does.
[[nodiscard]] inline std::int64_t live_bytes_at(space_ledger& space, std::uint64_t address) noexcept {
  const live_blocks::place found = space.find(address);
  return found ? static_cast<std::int64_t>(found->bytes) : 0;
}

[[nodiscard]] inline bool allocate_on_stream(thread_state& run, const event& recorded, std::uint64_t stamp) noexcept {
  const std::int64_t replaced = live_bytes_at(*run.space, recorded.address);
  const std::uint64_t count = run.space->allocation_count();
  if (!run.allocate(recorded, stamp)) return false;
  stream_ledger& streams = run.space->streams();
  streams.deallocate(recorded.label, replaced);
  active_ledger& active = run.space->active();
  active.deallocate(replaced);
  if (run.space->allocation_count() == count) return true;
  streams.allocate(recorded.label, static_cast<std::int64_t>(recorded.bytes));
  active.allocate(recorded.address, static_cast<std::int64_t>(recorded.bytes));
  return true;
}

/// False if the system has no memory to keep a block that is freed and still in use.
[[nodiscard]] inline bool deallocate_on_stream(thread_state& run, const event& recorded, std::uint64_t stamp) noexcept {
  space_ledger& space = *run.space;
  const live_blocks::place freed = space.find(recorded.address);
  const std::uint64_t bytes = freed ? freed->bytes : 0;
  space.streams().deallocate(recorded.label, static_cast<std::int64_t>(bytes));
  const bool is_request = recorded.tag != 0;
  if (is_request && !freed) space.active().note_unknown_request();
  const bool is_kept = is_request && freed && space.active().request(recorded.address, bytes);
  if (!is_kept) space.active().deallocate(static_cast<std::int64_t>(bytes));
  run.deallocate(recorded, stamp);
  return is_kept || !is_request || !freed;
}

[[nodiscard]] inline bool change_reserved(space_ledger& space, const event& recorded) noexcept {
  reserved_ledger& held = space.reserved();
  const std::int64_t before = held.current();
  const bool is_applied = recorded.kind == event_kind::reserve ? held.reserve(recorded.address, recorded.bytes)
                                                               : held.release(recorded.address, recorded.bytes);
  if (is_applied) space.streams().change_reserved(recorded.label, held.current() - before);
  return is_applied;
}

[[nodiscard]] inline bool note_out_of_memory(thread_state& run, const event& recorded, std::uint64_t stamp) noexcept {
  constexpr auto greatest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool is_free_known = recorded.address != unknown_device_free;
  if (recorded.bytes > greatest || (is_free_known && recorded.address > greatest)) return false;
  const std::int64_t device_free = is_free_known ? static_cast<std::int64_t>(recorded.address) : -1;
  space_ledger& space = *run.space;
  space.out_of_memory().add({static_cast<std::int64_t>(recorded.bytes), device_free, space.live(),
                             space.reserved().current(), stamp, space.segment(), run.scopes.operation()});
  return true;
}

}  // namespace detail

/// Applies such an event to the space to which the thread has been turned. False if it must be rejected.
[[nodiscard]] inline bool apply_allocator_event(thread_state& run, const event& recorded, std::uint64_t stamp) noexcept {
  switch (recorded.kind) {
    case event_kind::allocate_on_stream: return detail::allocate_on_stream(run, recorded, stamp);
    case event_kind::deallocate_on_stream: return detail::deallocate_on_stream(run, recorded, stamp);
    case event_kind::complete_deallocation: run.space->active().complete(recorded.address, recorded.bytes); return true;
    case event_kind::out_of_memory: return detail::note_out_of_memory(run, recorded, stamp);
    default: return detail::change_reserved(*run.space, recorded);
  }
}

}  // namespace memprof::inline MEMPROF_ABI
