#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace memprof_preload {

/// `mmap` and its like as the program would have them without this library: of the C library, or of one that is preloaded after
/// this one. Until they have been looked up, the kernel's.
struct next_map {
  /// Called once, before the program's constructors.
  static void find() noexcept {
    look_up(map_, "mmap");
    look_up(unmap_, "munmap");
    look_up(remap_, "mremap");
  }

  [[nodiscard]] static void* map(void* address, std::size_t bytes, int protection, int flags, int file, ::off_t offset) noexcept {
    const auto next = map_.load(std::memory_order_relaxed);
    if (next != nullptr) return next(address, bytes, protection, flags, file, offset);
    return as_pointer(::syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
  }
  [[nodiscard]] static int unmap(void* address, std::size_t bytes) noexcept {
    const auto next = unmap_.load(std::memory_order_relaxed);
    return next != nullptr ? next(address, bytes) : static_cast<int>(::syscall(SYS_munmap, address, bytes));
  }
  /// `wanted` is for MREMAP_FIXED.
  [[nodiscard]] static void* remap(void* address, std::size_t old_bytes, std::size_t bytes, int flags, void* wanted) noexcept {
    const auto next = remap_.load(std::memory_order_relaxed);
    if (next != nullptr) return next(address, old_bytes, bytes, flags, wanted);
    return as_pointer(::syscall(SYS_mremap, address, old_bytes, bytes, flags, wanted));
  }

 private:
  using map_function = void*(void*, std::size_t, int, int, int, ::off_t) noexcept;
  using unmap_function = int(void*, std::size_t) noexcept;
  using remap_function = void*(void*, std::size_t, std::size_t, int, ...) noexcept;

  [[nodiscard]] static void* as_pointer(long result) noexcept {
    return result == -1 ? MAP_FAILED : reinterpret_cast<void*>(result);  // NOLINT(performance-no-int-to-ptr)
  }

  template <class Function>
  static void look_up(std::atomic<Function*>& found, const char* name) noexcept {
    void* const symbol = ::dlsym(RTLD_NEXT, name);
    Function* function = nullptr;
    std::memcpy(&function, &symbol, sizeof symbol);
    found.store(function, std::memory_order_relaxed);  // no other thread yet
  }

  inline static constinit std::atomic<map_function*> map_{nullptr};
  inline static constinit std::atomic<unmap_function*> unmap_{nullptr};
  inline static constinit std::atomic<remap_function*> remap_{nullptr};
};

}  // namespace memprof_preload
