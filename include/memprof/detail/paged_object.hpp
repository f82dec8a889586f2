#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/pages.hpp>

#include <new>

namespace memprof::inline MEMPROF_ABI::detail {

/// An object on pages of its own; null if the system has no memory for it. `destroy_paged` ends it.
template <class T, class... Arguments>
[[nodiscard]] T* make_paged(const Arguments&... arguments) noexcept {
  void* const pages = map_pages(sizeof(T));
  return pages == nullptr ? nullptr : new (pages) T(arguments...);
}

/// Does nothing for null.
template <class T>
void destroy_paged(T* object) noexcept {
  if (object == nullptr) return;
  object->~T();
  unmap_pages(object, sizeof(T));
}

}  // namespace memprof::inline MEMPROF_ABI::detail
