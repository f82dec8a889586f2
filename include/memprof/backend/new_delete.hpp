#pragma once

/// @file
/// Replaces all forms of the global `operator new` and `operator delete` with ones that record in the memory space `cpu` and take
/// memory from `malloc`. Include it in exactly one .cpp: replacements cannot be inline, so a second include is a "multiple
/// definition" error of the linker.
///
/// Valgrind's tools substitute their own `operator new` for these unless run with
/// `--soname-synonyms=somalloc=nouserintercepts`.
///
/// Bytes are as the program requested them. While no capture is active, each call costs one load more than the plain one. With
/// `MEMPROF_ENABLED=0` nothing is replaced.

#include <memprof/config.hpp>

#if MEMPROF_ENABLED

#include <memprof/detail/pages.hpp>
#include <memprof/record/profiler_blocks.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
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

/// Records what the C++ heap does on a thread that has no ring yet, or is inside the profiler or a tracked resource.
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

/// Records what the C++ heap does, unless this thread is inside the profiler or a tracked resource.
[[gnu::always_inline]] inline void record_heap_event(event_kind kind, const void* address, std::size_t bytes) noexcept {
  registry& shared = abi_1::process_registry;
  // Relaxed: as in `record_event`.
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  thread_slot& self = abi_1::this_thread;
  if (self.ring->doing.load(std::memory_order_relaxed) != activity::idle) [[unlikely]]
    return record_heap_inside(kind, address, bytes);
  if (is_own_block_freed(shared, kind, address)) [[unlikely]]
    return;
  record_idle<no_pauses>(shared, self, reinterpret_cast<std::uintptr_t>(address), bytes,
                         packed_tail({0, 0, 0, 0, kind, cpu_space, 0}));
}

/// `malloc` for any alignment, with the loop over new-handlers that the standard requires; null if no handler is left.
[[nodiscard, gnu::cold, gnu::noinline]] inline void* heap_allocate(std::size_t bytes, std::size_t alignment) {
  for (;;) {
    const std::size_t wanted = bytes == 0 ? 1 : bytes;
    void* address = nullptr;
    if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
      address = std::malloc(wanted);
    } else if (::posix_memalign(&address, alignment, wanted) != 0) {
      address = nullptr;
    }
    if (address != nullptr) [[likely]]
      return address;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) return nullptr;
    handler();
  }
}

[[nodiscard]] inline void* new_tracked(std::size_t bytes, std::size_t alignment) {
  // The usual case first: no loop, and no variable whose address is taken.
  void* address = alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__ && bytes != 0 ? std::malloc(bytes) : nullptr;
  if (address == nullptr) [[unlikely]]
    address = heap_allocate(bytes, alignment);
  if (address == nullptr) [[unlikely]] {
#if defined(__cpp_exceptions)
    throw std::bad_alloc{};
#else
    std::abort();
#endif
  }
  record_heap_event(event_kind::allocate, address, bytes);
  return address;
}

[[nodiscard]] inline void* new_tracked_or_null(std::size_t bytes, std::size_t alignment) noexcept {
#if defined(__cpp_exceptions)
  try {
    return new_tracked(bytes, alignment);  // a new-handler may throw
  } catch (...) {
    return nullptr;
  }
#else
  void* const address = heap_allocate(bytes, alignment);
  if (address != nullptr) record_heap_event(event_kind::allocate, address, bytes);
  return address;
#endif
}

inline void delete_tracked(void* address, std::size_t bytes = 0) noexcept {
  if (address == nullptr) return;
  record_heap_event(event_kind::deallocate, address, bytes);
  std::free(address);
}

/// Counts what glibc's `malloc` keeps for a block's alignment, if it maps pages for it: up to that alignment more. Those of a
/// page or less are noise. Counted during captures and between them, as blocks live on.
inline void note_alignment(std::size_t alignment, bool is_freed) noexcept {
  constexpr std::size_t page = 4096;
  if (alignment <= page) return;
  const auto bytes = static_cast<std::int64_t>(alignment);
  // Relaxed: a statistic.
  abi_1::process_registry.alignment_bytes.fetch_add(is_freed ? -bytes : bytes, std::memory_order_relaxed);
}

[[nodiscard]] inline void* new_aligned(std::size_t bytes, std::size_t alignment) {
  void* const address = new_tracked(bytes, alignment);
  note_alignment(alignment, false);
  return address;
}

[[nodiscard]] inline void* new_aligned_or_null(std::size_t bytes, std::size_t alignment) noexcept {
  void* const address = new_tracked_or_null(bytes, alignment);
  if (address != nullptr) note_alignment(alignment, false);
  return address;
}

inline void delete_aligned(void* address, std::size_t alignment, std::size_t bytes = 0) noexcept {
  if (address != nullptr) note_alignment(alignment, true);
  delete_tracked(address, bytes);
}

inline constexpr std::size_t default_alignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
[[nodiscard]] constexpr std::size_t to_size(std::align_val_t alignment) noexcept { return static_cast<std::size_t>(alignment); }

}  // namespace memprof::inline MEMPROF_ABI::detail

/// Defined so that the linker's first error names the cause where this header is in two .cpp files.
extern "C" void memprof_new_delete_belongs_in_exactly_one_cpp_file();
extern "C" void memprof_new_delete_belongs_in_exactly_one_cpp_file() {}

// The compiler must not see through these: it would pair the inlined `malloc` with a `delete` elsewhere and warn.
#define MEMPROF_DETAIL_REPLACEMENT [[gnu::noinline]]

MEMPROF_DETAIL_REPLACEMENT void* operator new(std::size_t bytes) {
  return memprof::detail::new_tracked(bytes, memprof::detail::default_alignment);
}
MEMPROF_DETAIL_REPLACEMENT void* operator new[](std::size_t bytes) {
  return memprof::detail::new_tracked(bytes, memprof::detail::default_alignment);
}
MEMPROF_DETAIL_REPLACEMENT void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return memprof::detail::new_aligned(bytes, memprof::detail::to_size(alignment));
}
MEMPROF_DETAIL_REPLACEMENT void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return memprof::detail::new_aligned(bytes, memprof::detail::to_size(alignment));
}
MEMPROF_DETAIL_REPLACEMENT void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return memprof::detail::new_tracked_or_null(bytes, memprof::detail::default_alignment);
}
MEMPROF_DETAIL_REPLACEMENT void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return memprof::detail::new_tracked_or_null(bytes, memprof::detail::default_alignment);
}
MEMPROF_DETAIL_REPLACEMENT void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return memprof::detail::new_aligned_or_null(bytes, memprof::detail::to_size(alignment));
}
MEMPROF_DETAIL_REPLACEMENT void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return memprof::detail::new_aligned_or_null(bytes, memprof::detail::to_size(alignment));
}

MEMPROF_DETAIL_REPLACEMENT void operator delete(void* address) noexcept { memprof::detail::delete_tracked(address); }
MEMPROF_DETAIL_REPLACEMENT void operator delete[](void* address) noexcept { memprof::detail::delete_tracked(address); }
MEMPROF_DETAIL_REPLACEMENT void operator delete(void* address, std::size_t bytes) noexcept {
  memprof::detail::delete_tracked(address, bytes);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete[](void* address, std::size_t bytes) noexcept {
  memprof::detail::delete_tracked(address, bytes);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete(void* address, std::align_val_t alignment) noexcept {
  memprof::detail::delete_aligned(address, memprof::detail::to_size(alignment));
}
MEMPROF_DETAIL_REPLACEMENT void operator delete[](void* address, std::align_val_t alignment) noexcept {
  memprof::detail::delete_aligned(address, memprof::detail::to_size(alignment));
}
MEMPROF_DETAIL_REPLACEMENT void operator delete(void* address, std::size_t bytes, std::align_val_t alignment) noexcept {
  memprof::detail::delete_aligned(address, memprof::detail::to_size(alignment), bytes);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete[](void* address, std::size_t bytes, std::align_val_t alignment) noexcept {
  memprof::detail::delete_aligned(address, memprof::detail::to_size(alignment), bytes);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete(void* address, const std::nothrow_t&) noexcept {
  memprof::detail::delete_tracked(address);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete[](void* address, const std::nothrow_t&) noexcept {
  memprof::detail::delete_tracked(address);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete(void* address, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  memprof::detail::delete_aligned(address, memprof::detail::to_size(alignment));
}
MEMPROF_DETAIL_REPLACEMENT void operator delete[](void* address, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  memprof::detail::delete_aligned(address, memprof::detail::to_size(alignment));
}

#undef MEMPROF_DETAIL_REPLACEMENT

#endif  // MEMPROF_ENABLED
