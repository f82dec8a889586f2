#pragma once

#include <memprof/memprof.hpp>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace memprof::detail {

/// Base of what libtorch frees on its own: from `malloc`, because nothing hides that free from a tracked heap.
struct memory_from_malloc {
  [[nodiscard]] static void* operator new(std::size_t bytes) {
    void* const address = std::malloc(bytes);
    if (address == nullptr) throw std::bad_alloc{};
    return address;
  }
  static void operator delete(void* address) noexcept { std::free(address); }
};

}  // namespace memprof::detail
