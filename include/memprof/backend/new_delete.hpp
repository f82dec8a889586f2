#pragma once

/// @file
/// Replaces all forms of the global `operator new` and `operator delete` with ones that record in the memory space `cpu` and take
/// memory from `malloc`. Include it in exactly one .cpp: replacements cannot be inline, so a second include is a "multiple
/// definition" error of the linker. <memprof/backend/malloc.hpp> records `malloc` as well; include that instead, not both.
///
/// Valgrind's tools substitute their own `operator new` for these unless run with
/// `--soname-synonyms=somalloc=nouserintercepts`.
///
/// Bytes are as the program requested them. While no capture is active, each call costs one load more than the plain one. With
/// `MEMPROF_ENABLED=0` nothing is replaced.

#include <memprof/backend/heap_events.hpp>
#include <memprof/config.hpp>

#if MEMPROF_ENABLED

#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

/// Where the operators take memory from; backend/malloc.hpp, which records `malloc` itself, sets what lies below it.
#ifndef MEMPROF_DETAIL_HEAP
#define MEMPROF_DETAIL_HEAP c_heap
#endif

namespace memprof::inline MEMPROF_ABI::detail {

/// The program's `malloc`, whatever that is.
struct c_heap {
  [[nodiscard]] static void* allocate(std::size_t bytes) noexcept { return std::malloc(bytes); }
  [[nodiscard]] static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    void* address = nullptr;
    return ::posix_memalign(&address, alignment, bytes) == 0 ? address : nullptr;
  }
  static void release(void* address) noexcept { std::free(address); }
};

/// A block of any alignment, with the loop over new-handlers that the standard requires; null if no handler is left.
template <class Heap>
[[nodiscard, gnu::cold, gnu::noinline]] void* heap_allocate(std::size_t bytes, std::size_t alignment) {
  for (;;) {
    const std::size_t wanted = bytes == 0 ? 1 : bytes;
    void* const address =
        alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__ ? Heap::allocate(wanted) : Heap::allocate_aligned(alignment, wanted);
    if (address != nullptr) [[likely]]
      return address;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) return nullptr;
    handler();
  }
}

// What allocates is inlined into the operators: `hook_returns_to`.

template <class Heap>
[[nodiscard, gnu::always_inline]] inline void* new_tracked(std::size_t bytes, std::size_t alignment) {
  // The usual case first: no loop, and no variable whose address is taken.
  void* address = alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__ && bytes != 0 ? Heap::allocate(bytes) : nullptr;
  if (address == nullptr) [[unlikely]]
    address = heap_allocate<Heap>(bytes, alignment);
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

template <class Heap>
[[nodiscard, gnu::always_inline]] inline void* new_tracked_or_null(std::size_t bytes, std::size_t alignment) noexcept {
  void* address = nullptr;
#if defined(__cpp_exceptions)
  try {
    address = heap_allocate<Heap>(bytes, alignment);
  } catch (...) {  // of a new-handler
    return nullptr;
  }
#else
  address = heap_allocate<Heap>(bytes, alignment);
#endif
  if (address != nullptr) record_heap_event(event_kind::allocate, address, bytes);
  return address;
}

template <class Heap>
void delete_tracked(void* address, std::size_t bytes = 0) noexcept {
  if (address == nullptr) return;
  record_heap_event(event_kind::deallocate, address, bytes);
  Heap::release(address);
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

template <class Heap>
[[nodiscard, gnu::always_inline]] inline void* new_aligned(std::size_t bytes, std::size_t alignment) {
  void* const address = new_tracked<Heap>(bytes, alignment);
  note_alignment(alignment, false);
  return address;
}

template <class Heap>
[[nodiscard, gnu::always_inline]] inline void* new_aligned_or_null(std::size_t bytes, std::size_t alignment) noexcept {
  void* const address = new_tracked_or_null<Heap>(bytes, alignment);
  if (address != nullptr) note_alignment(alignment, false);
  return address;
}

template <class Heap>
void delete_aligned(void* address, std::size_t alignment, std::size_t bytes = 0) noexcept {
  if (address != nullptr) note_alignment(alignment, true);
  delete_tracked<Heap>(address, bytes);
}

using global_heap = MEMPROF_DETAIL_HEAP;

inline constexpr std::size_t default_alignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
[[nodiscard]] constexpr std::size_t to_size(std::align_val_t alignment) noexcept { return static_cast<std::size_t>(alignment); }

}  // namespace memprof::inline MEMPROF_ABI::detail

/// Defined so that the linker's first error names the cause where this header is in two .cpp files.
extern "C" void memprof_new_delete_belongs_in_exactly_one_cpp_file();
extern "C" void memprof_new_delete_belongs_in_exactly_one_cpp_file() {}

// The compiler must not see through these: it would pair the inlined `malloc` with a `delete` elsewhere and warn.
#define MEMPROF_DETAIL_REPLACEMENT [[gnu::noinline]]

MEMPROF_DETAIL_REPLACEMENT void* operator new(std::size_t bytes) {
  return memprof::detail::new_tracked<memprof::detail::global_heap>(bytes, memprof::detail::default_alignment);
}
MEMPROF_DETAIL_REPLACEMENT void* operator new[](std::size_t bytes) {
  return memprof::detail::new_tracked<memprof::detail::global_heap>(bytes, memprof::detail::default_alignment);
}
MEMPROF_DETAIL_REPLACEMENT void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return memprof::detail::new_aligned<memprof::detail::global_heap>(bytes, memprof::detail::to_size(alignment));
}
MEMPROF_DETAIL_REPLACEMENT void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return memprof::detail::new_aligned<memprof::detail::global_heap>(bytes, memprof::detail::to_size(alignment));
}
MEMPROF_DETAIL_REPLACEMENT void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return memprof::detail::new_tracked_or_null<memprof::detail::global_heap>(bytes, memprof::detail::default_alignment);
}
MEMPROF_DETAIL_REPLACEMENT void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return memprof::detail::new_tracked_or_null<memprof::detail::global_heap>(bytes, memprof::detail::default_alignment);
}
MEMPROF_DETAIL_REPLACEMENT void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return memprof::detail::new_aligned_or_null<memprof::detail::global_heap>(bytes, memprof::detail::to_size(alignment));
}
MEMPROF_DETAIL_REPLACEMENT void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return memprof::detail::new_aligned_or_null<memprof::detail::global_heap>(bytes, memprof::detail::to_size(alignment));
}

MEMPROF_DETAIL_REPLACEMENT void operator delete(void* address) noexcept {
  memprof::detail::delete_tracked<memprof::detail::global_heap>(address);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete[](void* address) noexcept {
  memprof::detail::delete_tracked<memprof::detail::global_heap>(address);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete(void* address, std::size_t bytes) noexcept {
  memprof::detail::delete_tracked<memprof::detail::global_heap>(address, bytes);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete[](void* address, std::size_t bytes) noexcept {
  memprof::detail::delete_tracked<memprof::detail::global_heap>(address, bytes);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete(void* address, std::align_val_t alignment) noexcept {
  memprof::detail::delete_aligned<memprof::detail::global_heap>(address, memprof::detail::to_size(alignment));
}
MEMPROF_DETAIL_REPLACEMENT void operator delete[](void* address, std::align_val_t alignment) noexcept {
  memprof::detail::delete_aligned<memprof::detail::global_heap>(address, memprof::detail::to_size(alignment));
}
MEMPROF_DETAIL_REPLACEMENT void operator delete(void* address, std::size_t bytes, std::align_val_t alignment) noexcept {
  memprof::detail::delete_aligned<memprof::detail::global_heap>(address, memprof::detail::to_size(alignment), bytes);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete[](void* address, std::size_t bytes, std::align_val_t alignment) noexcept {
  memprof::detail::delete_aligned<memprof::detail::global_heap>(address, memprof::detail::to_size(alignment), bytes);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete(void* address, const std::nothrow_t&) noexcept {
  memprof::detail::delete_tracked<memprof::detail::global_heap>(address);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete[](void* address, const std::nothrow_t&) noexcept {
  memprof::detail::delete_tracked<memprof::detail::global_heap>(address);
}
MEMPROF_DETAIL_REPLACEMENT void operator delete(void* address, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  memprof::detail::delete_aligned<memprof::detail::global_heap>(address, memprof::detail::to_size(alignment));
}
MEMPROF_DETAIL_REPLACEMENT void operator delete[](void* address, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  memprof::detail::delete_aligned<memprof::detail::global_heap>(address, memprof::detail::to_size(alignment));
}

#undef MEMPROF_DETAIL_REPLACEMENT

#endif  // MEMPROF_ENABLED
