#pragma once

#include <memprof/backend/cuda/begun_calls.hpp>
#include <memprof/backend/cuda/places.hpp>
#include <memprof/backend/cuda/tracked.hpp>
#include <memprof/backend/cuda/tracker.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/trace/event.hpp>

#include <cstdint>

/// @file
/// How a `tracker` follows memory of `cuMemCreate`, which has no address, and lives as long as handles or mappings of it do.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

inline void tracker::created(const place& at, std::uint64_t handle, std::uint64_t bytes) noexcept {
  if (handle == 0) return;
  const lock_guard guard{lock_};
  const held_memory made{handle, bytes, spaces_.find(at.kind, at.device), 1, 0};
  if (!known_->memory.put(made)) return event_sink{}.count_dropped_event();
  const owning_operation owner{at.asked_by};
  begin(made);
}

inline void tracker::retained(std::uint64_t handle) noexcept {
  const lock_guard guard{lock_};
  held_memory held{};
  if (!known_->memory.get(handle, held)) return;
  ++held.handles;
  keep_memory(held);
}

inline ticket tracker::release_begins(std::uint64_t handle) noexcept {
  const lock_guard guard{lock_};
  held_memory held{};
  if (!known_->memory.get(handle, held) || held.handles == 0) return 0;
  const ticket taken = next_ticket();
  keep({taken, begun_call::what::release, {}, held, {}});
  --held.handles;
  keep_memory(held);
  return taken;
}

inline void tracker::mapped(std::uint64_t address, std::uint64_t bytes, std::uint64_t handle) noexcept {
  const lock_guard guard{lock_};
  held_memory held{};
  if (!known_->memory.get(handle, held)) return;
  if (!known_->mappings.put({address, bytes, handle})) return event_sink{}.count_dropped_event();
  ++held.mappings;
  keep_memory(held);
}

inline ticket tracker::unmap_begins(std::uint64_t address, std::uint64_t bytes) noexcept {
  const lock_guard guard{lock_};
  ticket taken = 0;
  mapping unmapped{};
  for (std::uint64_t at = address; at < address + bytes && known_->mappings.take(at, unmapped); at += unmapped.bytes) {
    held_memory held{};
    if (!known_->memory.get(unmapped.handle, held)) continue;
    if (taken == 0) taken = next_ticket();
    keep({taken, begun_call::what::unmap, {}, held, unmapped});
    --held.mappings;
    keep_memory(held);
  }
  return taken;
}

inline void tracker::keep_memory(const held_memory& held) noexcept {
  if (!held.is_unused()) return (void)known_->memory.put(held);  // it is there already: nothing grows
  known_->memory.erase(held.handle);
  count(held.space, -signed_of(held.bytes), false);
  event_sink{}.deallocate(held.space, block_address{held.handle}, held.bytes);
}

inline void tracker::begin(const held_memory& made) noexcept {
  count(made.space, signed_of(made.bytes), false);
  event_sink{}.allocate(made.space, block_address{made.handle}, made.bytes);
}

inline void tracker::restore(held_memory held, std::uint32_t handles, std::uint32_t mappings) noexcept {
  const bool is_gone = !known_->memory.get(held.handle, held);
  held.handles = (is_gone ? 0 : held.handles) + handles;
  held.mappings = (is_gone ? 0 : held.mappings) + mappings;
  if (!known_->memory.put(held)) return event_sink{}.count_dropped_event();
  if (is_gone) begin(held);
}

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
