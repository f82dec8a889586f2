#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

namespace memprof::detail {

/// Zeroed memory straight from the system, so that no hook of ours, and no allocator we may be watching, ever sees it.
/// Returns a null pointer where there is none. The system hands out pages when they are first touched.
[[nodiscard]] inline void* map_pages(std::size_t bytes) noexcept {
#if defined(__unix__) || defined(__APPLE__)
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
#else
  return std::calloc(1, bytes);
#endif
}

/// Gives back what `map_pages` returned for the same number of bytes; a null pointer is allowed.
inline void unmap_pages(void* pages, std::size_t bytes) noexcept {
  if (pages == nullptr) return;
#if defined(__unix__) || defined(__APPLE__)
  ::munmap(pages, bytes);
#else
  (void)bytes;
  std::free(pages);
#endif
}

}  // namespace memprof::detail
