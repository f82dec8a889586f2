#pragma once

/// @file
/// What the hooks of the global heap have in common: they record a block in the memory space `cpu`, unless the profiler took it
/// for itself.

#include <memprof/backend/heap_stacks.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/record/profiler_blocks.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>

#if MEMPROF_ENABLED

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace memprof::inline MEMPROF_ABI::detail {

/// The profiler's own blocks in this process, created at the first call; null if the system has no memory.
[[nodiscard]] inline profiler_blocks* profiler_blocks_of(registry& shared) noexcept {
  profiler_blocks* known = shared.profiler_blocks.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  void* const pages = map_pages(sizeof(profiler_blocks));
  if (pages == nullptr) return nullptr;
  auto* const made = new (pages) profiler_blocks;
  // Release pairs with the acquire loads here and in `is_own_block_freed`.
  if (shared.profiler_blocks.compare_exchange_strong(known, made, std::memory_order_acq_rel, std::memory_order_acquire))
    return made;
  unmap_pages(pages, sizeof(profiler_blocks));
  return known;
}

/// Remembers a block that the profiler allocates, in case the program frees it; forgets one that the profiler frees.
inline void note_own_block(registry& shared, event_kind kind, const void* address) noexcept {
  profiler_blocks* const own = profiler_blocks_of(shared);
  if (own == nullptr) return;
  // A signal handler that frees in the meantime must not wait for the lock that this thread holds.
  const activity_guard counted{activity::busy};
  if (kind == event_kind::allocate) {
    own->add(reinterpret_cast<std::uintptr_t>(address));
  } else {
    (void)own->remove(reinterpret_cast<std::uintptr_t>(address));
  }
}

/// The slow path of `is_own_block_freed`: decides about a block that may be the profiler's, and forgets it if it is.
[[nodiscard, gnu::cold, gnu::noinline]] inline bool forget_own_block(profiler_blocks& own, const void* address) noexcept {
  const activity_guard counted{activity::busy};  // as in `note_own_block`
  return own.remove(reinterpret_cast<std::uintptr_t>(address));
}

/// Whether the program frees a block that the profiler allocated.
[[nodiscard, gnu::always_inline]] inline bool is_own_block_freed(registry& shared, event_kind kind,
                                                                 const void* address) noexcept {
  if (kind != event_kind::deallocate) return false;
  // Acquire pairs with the release in `profiler_blocks_of`.
  profiler_blocks* const own = shared.profiler_blocks.load(std::memory_order_acquire);
  if (own == nullptr || !own->may_hold(reinterpret_cast<std::uintptr_t>(address))) [[likely]]
    return false;
  return forget_own_block(*own, address);
}

/// Records what the heap does on a thread that has no ring yet, or is inside the profiler or a tracked resource.
[[gnu::cold, gnu::noinline]] inline void record_heap_inside(event_kind kind, const void* address, std::size_t bytes) noexcept {
  registry& shared = abi_1::process_registry;
  switch (const activity doing = abi_1::this_thread.doing().load(std::memory_order_relaxed)) {
    case activity::idle:
      if (is_own_block_freed(shared, kind, address)) return;
      return record_event({0, reinterpret_cast<std::uintptr_t>(address), bytes, 0, kind, cpu_space, 0});
    case activity::internal: return note_own_block(shared, kind, address);
    case activity::nested:
      if (kind == event_kind::deallocate) note_own_block(shared, kind, address);
      return;
    default: return note_reentrant(shared, doing);
  }
}

/// Records an allocation in a capture with stacks. The only way to there. The stack begins where the hook returns to.
[[gnu::noinline]] inline void record_with_stack(registry& shared, thread_slot& self, const void* address, std::size_t bytes,
                                                const void* returns_to) noexcept {
  if (self.doing().load(std::memory_order_relaxed) != activity::idle)
    return record_heap_inside(event_kind::allocate, address, bytes);
  const std::uint32_t recorded = shared.heap_stacks.load(std::memory_order_relaxed);
  const label stack = wants_stack(recorded, bytes) ? stack_of_this_call(shared, returns_to) : 0;
  record_words<no_pauses>(shared, self, reinterpret_cast<std::uintptr_t>(address), bytes,
                          packed_tail({0, 0, 0, stack, event_kind::allocate, cpu_space, 0}));
}

/// Where the function returns to whose body this becomes: a hook is inlined into the function that the program calls, so that
/// stacks know where the program's own calls begin even if the hook's functions have no names.
[[nodiscard, gnu::always_inline]] inline const void* hook_returns_to() noexcept { return __builtin_return_address(0); }

/// Records what the heap does, unless this thread is inside the profiler or a tracked resource. Stacks begin at `returns_to`;
/// null: at `hook_returns_to`, which is read only where it is needed.
[[gnu::always_inline]] inline void record_heap_event(event_kind kind, const void* address, std::size_t bytes,
                                                     const void* returns_to = nullptr) noexcept {
  registry& shared = abi_1::process_registry;
  // Relaxed: as in `record_event`.
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  thread_slot& self = abi_1::this_thread;
  if (kind == event_kind::allocate && shared.heap_stacks.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return record_with_stack(shared, self, address, bytes, returns_to == nullptr ? hook_returns_to() : returns_to);
  if (self.ring->doing.load(std::memory_order_relaxed) != activity::idle) [[unlikely]]
    return record_heap_inside(kind, address, bytes);
  if (is_own_block_freed(shared, kind, address)) [[unlikely]]
    return;
  record_idle<no_pauses>(shared, self, reinterpret_cast<std::uintptr_t>(address), bytes,
                         packed_tail({0, 0, 0, 0, kind, cpu_space, 0}));
}

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
