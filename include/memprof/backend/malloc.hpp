#pragma once

/// @file
/// Replaces `malloc` and its whole family, `calloc` to `operator delete`, with functions that record each block in the memory
/// space `cpu`, with the bytes that the program requested. So C libraries and allocators over `malloc` are recorded, and what the
/// C library itself takes. Include it in exactly one .cpp of the executable, in place of <memprof/backend/new_delete.hpp>.
///
/// Memory comes from glibc's allocator, whatever other one the program links; other C libraries and sanitizers, which have an
/// allocator of their own, are refused. What is requested by `mmap` is not recorded.
///
/// Recording begins with a capture, not with the process: a block from before counts as an unmatched free when it is freed.
/// `memprof run` records from the first call on.
///
/// `realloc` is a free and an allocation. While no capture is active, each call costs about a nanosecond more than the plain one.
/// With `MEMPROF_ENABLED=0` nothing is replaced.

#include <memprof/backend/malloc_family.hpp>
#include <memprof/config.hpp>

#if MEMPROF_ENABLED

#ifdef MEMPROF_DETAIL_HEAP
#error "include <memprof/backend/malloc.hpp> in place of <memprof/backend/new_delete.hpp>, not after it"
#endif

#include <cstddef>
#include <cstdlib>

#include <malloc.h>
#if defined(__clang__) && __has_include(<mm_malloc.h>)
#include <mm_malloc.h>  // declares posix_memalign without noexcept, which clang forgives only before this definition
#endif

#if !defined(__GLIBC__)
#error "<memprof/backend/malloc.hpp> needs glibc; use <memprof/backend/new_delete.hpp>"
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#error "a sanitizer has an allocator of its own; leave out <memprof/backend/malloc.hpp> where one is used"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#error "a sanitizer has an allocator of its own; leave out <memprof/backend/malloc.hpp> where one is used"
#endif
#endif

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming): glibc's names
extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;
void __libc_free(void*) noexcept;
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)

namespace memprof::inline MEMPROF_ABI::detail {

/// The allocator of glibc, below `malloc`.
struct glibc_heap {
  [[nodiscard]] static void* allocate(std::size_t bytes) noexcept { return __libc_malloc(bytes); }
  [[nodiscard]] static void* allocate_zeroed(std::size_t count, std::size_t each) noexcept { return __libc_calloc(count, each); }
  [[nodiscard]] static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    return __libc_memalign(alignment, bytes);
  }
  [[nodiscard]] static void* reallocate(void* address, std::size_t bytes) noexcept { return __libc_realloc(address, bytes); }
  static void release(void* address) noexcept { __libc_free(address); }
  [[nodiscard]] static std::size_t usable_bytes(void* address) noexcept { return ::malloc_usable_size(address); }
};

using recorded_malloc = malloc_family<glibc_heap>;

}  // namespace memprof::inline MEMPROF_ABI::detail

// Visible, so that the dynamic linker binds the libraries to them; see `MEMPROF_DETAIL_REPLACEMENT` for the other attribute.
#define MEMPROF_DETAIL_FUNCTION extern "C" [[gnu::visibility("default"), gnu::noinline]]

MEMPROF_DETAIL_FUNCTION void* malloc(std::size_t bytes) noexcept { return memprof::detail::recorded_malloc::allocate(bytes); }
MEMPROF_DETAIL_FUNCTION void* calloc(std::size_t count, std::size_t each) noexcept {
  return memprof::detail::recorded_malloc::allocate_zeroed(count, each);
}
MEMPROF_DETAIL_FUNCTION void* realloc(void* address, std::size_t bytes) noexcept {
  return memprof::detail::recorded_malloc::reallocate(address, bytes);
}
MEMPROF_DETAIL_FUNCTION void* reallocarray(void* address, std::size_t count, std::size_t each) noexcept {
  return memprof::detail::recorded_malloc::reallocate_array(address, count, each);
}
MEMPROF_DETAIL_FUNCTION int posix_memalign(void** address, std::size_t alignment, std::size_t bytes) noexcept {
  return memprof::detail::recorded_malloc::allocate_aligned(address, alignment, bytes);
}
MEMPROF_DETAIL_FUNCTION void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return memprof::detail::recorded_malloc::allocate_aligned(alignment, bytes);
}
MEMPROF_DETAIL_FUNCTION void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return memprof::detail::recorded_malloc::allocate_aligned(alignment, bytes);
}
MEMPROF_DETAIL_FUNCTION void* valloc(std::size_t bytes) noexcept {
  return memprof::detail::recorded_malloc::allocate_on_page(bytes);
}
MEMPROF_DETAIL_FUNCTION void* pvalloc(std::size_t bytes) noexcept {
  return memprof::detail::recorded_malloc::allocate_pages(bytes);
}
MEMPROF_DETAIL_FUNCTION void free(void* address) noexcept { memprof::detail::recorded_malloc::release(address); }
MEMPROF_DETAIL_FUNCTION void free_sized(void* address, std::size_t) noexcept {
  memprof::detail::recorded_malloc::release(address);
}
MEMPROF_DETAIL_FUNCTION void free_aligned_sized(void* address, std::size_t, std::size_t) noexcept {
  memprof::detail::recorded_malloc::release(address);
}

#undef MEMPROF_DETAIL_FUNCTION

#define MEMPROF_DETAIL_HEAP glibc_heap

#include <memprof/backend/new_delete.hpp>

#endif  // MEMPROF_ENABLED
