#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace memprof::inline MEMPROF_ABI::detail {

/// Base class of objects that libtorch frees itself. Uses `malloc`, because nothing hides such a free from a tracked heap.
struct memory_from_malloc {
  // Neither is inlined: GCC 12 warns about a mismatched pair if it inlines only one of them.
  [[nodiscard, gnu::noinline]] static void* operator new(std::size_t bytes) {
    void* const address = std::malloc(bytes);
    if (address == nullptr) throw std::bad_alloc{};
    return address;
  }
  [[gnu::noinline]] static void operator delete(void* address) noexcept { std::free(address); }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
