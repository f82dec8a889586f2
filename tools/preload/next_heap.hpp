#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <malloc.h>

namespace memprof_preload {

/// The allocator that the program would have without this library: the C library's, or one that it brings as a shared library. It
/// is looked up at the first call. Should the loader allocate for that, the blocks come from a small store, and are never freed.
struct next_heap {
  [[nodiscard]] static void* allocate(std::size_t bytes) noexcept { return is_found() ? malloc_(bytes) : take(16, bytes); }
  [[nodiscard]] static void* allocate_zeroed(std::size_t count, std::size_t each) noexcept {
    return is_found() ? calloc_(count, each) : take(16, count * each);
  }
  [[nodiscard]] static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    return is_found() ? memalign_(alignment, bytes) : take(alignment, bytes);
  }
  [[nodiscard]] static void* reallocate(void* address, std::size_t bytes) noexcept {
    if (!is_stored(address)) return is_found() ? realloc_(address, bytes) : nullptr;
    void* const moved = allocate(bytes);
    const std::size_t left = static_cast<std::size_t>(store_ + sizeof store_ - static_cast<unsigned char*>(address));
    if (moved != nullptr) std::memcpy(moved, address, bytes < left ? bytes : left);
    return moved;
  }
  static void release(void* address) noexcept {
    if (!is_stored(address) && is_found()) free_(address);
  }
  [[nodiscard]] static std::size_t usable_bytes(void* address) noexcept {
    return usable_ == nullptr || is_stored(address) ? 0 : usable_(address);
  }

 private:
  enum class search : int { not_begun, running, ended };

  [[nodiscard, gnu::always_inline]] static bool is_found() noexcept {
    // Acquire pairs with the release in `find`.
    return state_.load(std::memory_order_acquire) == search::ended || find();
  }

  /// False while it runs. The first call comes from the loader, before there is a second thread.
  [[gnu::cold, gnu::noinline]] static bool find() noexcept {
    if (state_.load(std::memory_order_relaxed) == search::running) return false;
    state_.store(search::running, std::memory_order_relaxed);
    look_up(malloc_, "malloc");
    look_up(calloc_, "calloc");
    look_up(realloc_, "realloc");
    look_up(memalign_, "memalign");
    look_up(free_, "free");
    look_up(usable_, "malloc_usable_size");
    state_.store(search::ended, std::memory_order_release);
    return true;
  }

  template <class Function>
  static void look_up(Function*& found, const char* name) noexcept {
    void* const symbol = ::dlsym(RTLD_NEXT, name);
    std::memcpy(&found, &symbol, sizeof symbol);
  }

  [[nodiscard]] static bool is_stored(const void* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(store_) < sizeof store_;
  }
  [[nodiscard, gnu::cold, gnu::noinline]] static void* take(std::size_t alignment, std::size_t bytes) noexcept {
    const std::size_t begin = (stored_ + alignment - 1) & ~(alignment - 1);
    if (bytes > sizeof store_ - begin) return nullptr;
    stored_ = begin + bytes;
    return store_ + begin;
  }

  inline static constinit std::atomic<search> state_{search::not_begun};
  inline static constinit decltype(&::malloc) malloc_ = nullptr;
  inline static constinit decltype(&::calloc) calloc_ = nullptr;
  inline static constinit decltype(&::realloc) realloc_ = nullptr;
  inline static constinit decltype(&::memalign) memalign_ = nullptr;
  inline static constinit decltype(&::free) free_ = nullptr;
  inline static constinit decltype(&::malloc_usable_size) usable_ = nullptr;
  alignas(4096) inline static constinit unsigned char store_[8192] = {};
  inline static constinit std::size_t stored_ = 0;
};

}  // namespace memprof_preload
