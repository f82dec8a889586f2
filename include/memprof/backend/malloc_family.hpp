#pragma once

/// @file
/// The functions of `malloc`'s family over a heap that does not record, with each block recorded once. Whoever exports them under
/// their C names decides which heap that is: backend/malloc.hpp takes the C library's.

#include <memprof/backend/heap_events.hpp>
#include <memprof/config.hpp>

#if MEMPROF_ENABLED

#include <memprof/detail/errno_guard.hpp>
#include <memprof/record/event_ring.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <unistd.h>

namespace memprof::inline MEMPROF_ABI::detail {

/// Withdraws the calling thread's last event if that is the free of this block and no drain has taken it. False if it is too
/// late.
[[nodiscard, gnu::cold, gnu::noinline]] inline bool withdraw_free(const void* address) noexcept {
  const errno_guard kept;
  thread_slot& self = abi_1::this_thread;
  if (!self.has_ring() || self.doing().load(std::memory_order_relaxed) != activity::idle) return false;
  const control_guard no_drain;
  event_ring& ring = *self.ring;
  event* const end = ring.cursor.load(std::memory_order_relaxed);
  if (end == ring.tail) return false;
  event* const last = end - 1;
  if (last->kind != event_kind::deallocate || last->address != reinterpret_cast<std::uintptr_t>(address)) return false;
  ring.cursor.store(last, std::memory_order_relaxed);
  ring.slots->published.store(last, std::memory_order_release);  // as in `publish`
  return true;
}

/// `Heap` has static functions `allocate`, `allocate_zeroed`, `allocate_aligned`, `reallocate`, `release` and `usable_bytes`,
/// which behave like `malloc`, `calloc`, `memalign`, `realloc`, `free` and `malloc_usable_size`. What allocates is inlined into
/// the function with the C name: `hook_returns_to`.
template <class Heap>
struct malloc_family {
  [[nodiscard, gnu::always_inline]] static void* allocate(std::size_t bytes) noexcept {
    return recorded(Heap::allocate(bytes), bytes);
  }

  [[nodiscard, gnu::always_inline]] static void* allocate_zeroed(std::size_t count, std::size_t each) noexcept {
    return recorded(Heap::allocate_zeroed(count, each), count * each);  // null if the product overflows
  }

  [[gnu::always_inline]] static void release(void* address) noexcept {
    if (address == nullptr) return;
    record_heap_event(event_kind::deallocate, address, 0);
    Heap::release(address);
  }

  /// Recorded as a free before the call and an allocation after it, so that no other thread gets the address in between. If the
  /// heap refuses, the block is as it was.
  [[nodiscard, gnu::always_inline]] static void* reallocate(void* address, std::size_t bytes) noexcept {
    if (address == nullptr) return allocate(bytes);
    if (bytes > most_bytes) return Heap::reallocate(address, bytes);  // which fails
    record_heap_event(event_kind::deallocate, address, 0);
    void* const moved = Heap::reallocate(address, bytes);
    if (moved == nullptr && bytes != 0) [[unlikely]]
      undo_free(address, hook_returns_to());
    return recorded(moved, bytes);
  }

  [[nodiscard, gnu::always_inline]] static void* reallocate_array(void* address, std::size_t count, std::size_t each) noexcept {
    if (each != 0 && count > std::numeric_limits<std::size_t>::max() / each) return refuse();
    return reallocate(address, count * each);
  }

  [[nodiscard, gnu::always_inline]] static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    return recorded(Heap::allocate_aligned(alignment, bytes), bytes);
  }

  /// `posix_memalign`, which leaves `errno` alone.
  [[nodiscard, gnu::always_inline]] static int allocate_aligned(void** found, std::size_t alignment, std::size_t bytes) noexcept {
    if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
    const errno_guard kept;
    void* const address = allocate_aligned(alignment, bytes);
    if (address == nullptr) return ENOMEM;
    *found = address;
    return 0;
  }

  [[nodiscard, gnu::always_inline]] static void* allocate_on_page(std::size_t bytes) noexcept {
    return allocate_aligned(page(), bytes);
  }

  /// `pvalloc`: whole pages, which is what the program asked for.
  [[nodiscard, gnu::always_inline]] static void* allocate_pages(std::size_t bytes) noexcept {
    if (bytes > most_bytes) return refuse();
    return allocate_on_page((bytes + page() - 1) / page() * page());
  }

 private:
  /// No heap has a larger block: Linux gives addresses from there on only to those who name one.
  static constexpr std::uint64_t most_bytes = sizeof(void*) > 4 ? std::uint64_t{1} << 48 : std::uint64_t{1} << 31;

  [[nodiscard]] static std::size_t page() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

  /// Undoes the free of a block that the heap could not change.
  [[gnu::cold, gnu::noinline]] static void undo_free(void* address, const void* returns_to) noexcept {
    if (withdraw_free(address)) return;
    record_heap_event(event_kind::allocate, address, Heap::usable_bytes(address), returns_to);
    // Another thread has drained this one's ring meanwhile, and nobody knows any more how much of the block was asked for.
    registry& shared = abi_1::process_registry;
    const bool is_recorded = shared.active_capture.load(std::memory_order_relaxed) != 0 &&
                             abi_1::this_thread.doing().load(std::memory_order_relaxed) == activity::idle;
    if (is_recorded) shared.dropped_events.fetch_add(1, std::memory_order_relaxed);
  }

  [[nodiscard]] static void* refuse() noexcept {
    errno = ENOMEM;
    return nullptr;
  }

  [[gnu::always_inline]] static void* recorded(void* address, std::size_t bytes) noexcept {
    if (address != nullptr) [[likely]]
      record_heap_event(event_kind::allocate, address, bytes);
    return address;
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
