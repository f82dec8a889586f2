// memprof in one header, written by ./dev single-header. Do not edit: change the files under include/.
// MIT License
//
// Copyright (c) 2026 memprof contributors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
// SOFTWARE.
#pragma once

// ---- <memprof/version.hpp>
// The one place the version is written: CMake and the packages parse these three lines.
#define MEMPROF_VERSION_MAJOR 0
#define MEMPROF_VERSION_MINOR 1
#define MEMPROF_VERSION_PATCH 0

#define MEMPROF_DETAIL_QUOTE(text) #text
#define MEMPROF_DETAIL_VERSION_STRING(major, minor, patch) \
  MEMPROF_DETAIL_QUOTE(major) "." MEMPROF_DETAIL_QUOTE(minor) "." MEMPROF_DETAIL_QUOTE(patch)

namespace memprof {

/// The library's version, "major.minor.patch".
inline constexpr const char* version_string =
    MEMPROF_DETAIL_VERSION_STRING(MEMPROF_VERSION_MAJOR, MEMPROF_VERSION_MINOR, MEMPROF_VERSION_PATCH);

}  // namespace memprof

#undef MEMPROF_DETAIL_VERSION_STRING
#undef MEMPROF_DETAIL_QUOTE

// ---- <memprof/config.hpp>
#if __cplusplus < 202002L
#error "memprof needs C++20: compile with -std=c++20 or later (CMake: link memprof::memprof, which asks for it)"
#include <the compiler stops here>  // a file that is missing ends the compilation: no page of errors follows
#endif

/// @file
/// Every macro a user may set. Set them for the whole program (`target_compile_definitions`), before any include.

/// `MEMPROF_ENABLED`: 1 (default) records; 0 turns every call into an empty inline function of another inline namespace, so
/// that the compiler leaves no instruction behind. Translation units with different values may be linked together.
#ifndef MEMPROF_ENABLED
#define MEMPROF_ENABLED 1
#endif

// ---- <memprof/detail/futex_lock.hpp>
#include <atomic>
#include <cstdint>

namespace memprof::detail {

/// A lock of one word whose waiters sleep. It is constant-initialised, may be reset in a forked child, and needs no `<mutex>`.
class futex_lock {
 public:
  void lock() noexcept {
    std::uint32_t expected = 0;
    // Acquire pairs with the release in `unlock`.
    if (word_.compare_exchange_strong(expected, 1, std::memory_order_acquire, std::memory_order_relaxed)) return;
    lock_slow();
  }

  /// Takes it if it is free; never waits.
  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t expected = 0;
    // Acquire pairs with the release in `unlock`.
    return word_.compare_exchange_strong(expected, 1, std::memory_order_acquire, std::memory_order_relaxed);
  }

  void unlock() noexcept {
    // Release pairs with the acquire in `lock`; 2 says that somebody may be asleep.
    if (word_.exchange(0, std::memory_order_release) == 2) word_.notify_one();
  }

  /// Makes it free whatever it was. Only for a child after `fork`, where no other thread exists.
  void reset() noexcept { word_.store(0, std::memory_order_relaxed); }

 private:
  [[gnu::cold, gnu::noinline]] void lock_slow() noexcept {
    for (int spin = 0; spin < 100; ++spin) {
      // Looking before trying leaves the word in the holder's cache.
      if (word_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    while (word_.exchange(2, std::memory_order_acquire) != 0) word_.wait(2, std::memory_order_relaxed);
  }

  std::atomic<std::uint32_t> word_{0};
};

/// Says that a lock is held already.
struct adopt_lock {};

/// Holds a lock until the end of the scope.
template <class Lock>
class [[nodiscard]] lock_guard {
 public:
  explicit lock_guard(Lock& lock) noexcept : lock_(lock) { lock_.lock(); }
  lock_guard(Lock& lock, adopt_lock) noexcept : lock_(lock) {}
  lock_guard(const lock_guard&) = delete;
  lock_guard& operator=(const lock_guard&) = delete;
  ~lock_guard() { lock_.unlock(); }

 private:
  Lock& lock_;
};

}  // namespace memprof::detail

// ---- <memprof/detail/pages.hpp>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

namespace memprof::detail {

/// While it lives, `map_pages` gives the thread that made it at most so many bytes: for whoever folds what a stranger may have
/// written.
class page_budget {
 public:
  explicit page_budget(std::size_t bytes) noexcept : left_(bytes), outer_(of_this_thread) { of_this_thread = this; }
  page_budget(const page_budget&) = delete;
  page_budget& operator=(const page_budget&) = delete;
  ~page_budget() { of_this_thread = outer_; }

  /// Whether somebody wanted more.
  [[nodiscard]] bool is_exhausted() const noexcept { return is_exhausted_; }

  /// For `map_pages` and `unmap_pages`.
  [[nodiscard]] static bool take(std::size_t bytes) noexcept {
    page_budget* const budget = of_this_thread;
    if (budget == nullptr) return true;
    if (bytes > budget->left_) {
      budget->is_exhausted_ = true;
      return false;
    }
    budget->left_ -= bytes;
    return true;
  }
  static void give_back(std::size_t bytes) noexcept {
    if (of_this_thread != nullptr) of_this_thread->left_ += bytes;
  }

 private:
  [[gnu::tls_model("initial-exec")]] inline static constinit thread_local page_budget* of_this_thread = nullptr;

  std::size_t left_;
  page_budget* outer_;
  bool is_exhausted_ = false;
};

/// Zeroed memory straight from the system, so that no hook of ours, and no allocator we may be watching, ever sees it.
/// Returns a null pointer where there is none. The system hands out pages when they are first touched.
[[nodiscard]] inline void* map_pages(std::size_t bytes) noexcept {
#if defined(__unix__) || defined(__APPLE__)
  if (!page_budget::take(bytes)) return nullptr;
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages != MAP_FAILED) return pages;
  page_budget::give_back(bytes);
  return nullptr;
#else
  return std::calloc(1, bytes);
#endif
}

/// Gives back what `map_pages` returned for the same number of bytes; a null pointer is allowed.
inline void unmap_pages(void* pages, std::size_t bytes) noexcept {
  if (pages == nullptr) return;
#if defined(__unix__) || defined(__APPLE__)
  ::munmap(pages, bytes);
  page_budget::give_back(bytes);
#else
  (void)bytes;
  std::free(pages);
#endif
}

}  // namespace memprof::detail

// ---- <memprof/detail/page_array.hpp>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

namespace memprof::detail {

/// The part of a `page_array` that does not depend on its elements, so that it is compiled once and not for each of them.
class page_storage {
 public:
  page_storage() = default;
  page_storage(page_storage&& other) noexcept { swap(other); }
  page_storage& operator=(page_storage&& other) noexcept {
    swap(other);
    return *this;
  }
  ~page_storage() { unmap_pages(data_, capacity_bytes_); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return capacity_bytes_; }

 protected:
  /// Makes room for `count` elements of `element_bytes`; false if the system has none.
  [[nodiscard]] bool reserve_elements(std::size_t count, std::size_t element_bytes) noexcept {
    if (count > std::numeric_limits<std::size_t>::max() / 2 / element_bytes) return false;
    if (count * element_bytes <= capacity_bytes_) return true;
    std::size_t wanted = capacity_bytes_ == 0 ? (4096 + element_bytes - 1) / element_bytes * element_bytes : capacity_bytes_;
    while (wanted < count * element_bytes) wanted *= 2;
    void* const data = map_pages(wanted);
    if (data == nullptr) return false;
    if (size_ != 0) std::memcpy(data, data_, size_ * element_bytes);
    unmap_pages(data_, capacity_bytes_);
    data_ = data;
    capacity_bytes_ = wanted;
    return true;
  }

  /// Sets the size; new elements are zero. False, and nothing changed, if the system has no memory.
  [[nodiscard]] bool resize_elements(std::size_t count, std::size_t element_bytes) noexcept {
    if (!reserve_elements(count, element_bytes)) return false;
    if (count > size_) {
      std::memset(static_cast<char*>(data_) + size_ * element_bytes, 0, (count - size_) * element_bytes);
    }
    size_ = count;
    return true;
  }

  void swap(page_storage& other) noexcept {
    void* const data = data_;
    const std::size_t size = size_;
    const std::size_t capacity_bytes = capacity_bytes_;
    data_ = other.data_;
    size_ = other.size_;
    capacity_bytes_ = other.capacity_bytes_;
    other.data_ = data;
    other.size_ = size;
    other.capacity_bytes_ = capacity_bytes;
  }

  void* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_bytes_ = 0;
};

/// A growing array of trivial elements in pages of its own: what `std::vector` is to users, for memory that must stay
/// invisible to the hooks. New elements are zero. Every operation that grows reports failure instead of throwing.
template <class T>
class page_array : public page_storage {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  [[nodiscard]] T* data() noexcept { return static_cast<T*>(data_); }
  [[nodiscard]] const T* data() const noexcept { return static_cast<const T*>(data_); }
  [[nodiscard]] T& operator[](std::size_t index) noexcept { return data()[index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept { return data()[index]; }
  [[nodiscard]] T* begin() noexcept { return data(); }
  [[nodiscard]] T* end() noexcept { return data() + size_; }
  [[nodiscard]] const T* begin() const noexcept { return data(); }
  [[nodiscard]] const T* end() const noexcept { return data() + size_; }
  [[nodiscard]] T& back() noexcept { return data()[size_ - 1]; }

  /// Makes room for `count` elements; false if the system has none.
  [[nodiscard]] bool reserve(std::size_t count) noexcept { return reserve_elements(count, sizeof(T)); }

  /// Sets the size; new elements are zero. False, and nothing changed, if the system has no memory.
  [[nodiscard]] bool resize(std::size_t count) noexcept { return resize_elements(count, sizeof(T)); }

  [[nodiscard]] bool push_back(const T& value) noexcept {
    const T copy = value;  // `value` may lie in the pages that growing gives back
    if (!reserve(size_ + 1)) return false;
    data()[size_++] = copy;
    return true;
  }

  void pop_back() noexcept { --size_; }
  void erase(std::size_t index) noexcept { std::memmove(data() + index, data() + index + 1, (--size_ - index) * sizeof(T)); }
  void clear() noexcept { size_ = 0; }
  /// Leaves the first `count` elements, if there are more.
  void truncate(std::size_t count) noexcept { size_ = count < size_ ? count : size_; }
};

}  // namespace memprof::detail

// ---- <memprof/record/phantom_addresses.hpp>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

namespace memprof {

/// Hands out addresses that no memory stands behind: unique among those in use, aligned, never readable or writable.
///
/// They come from one range of the address space that is reserved without access, so a touch faults and the range costs no
/// memory. A freed address serves the next request of the same size and alignment. Constant time; thread-safe; own memory grows
/// with the greatest number of blocks that were free at once.
class phantom_addresses {
 public:
  /// Every address is a multiple of this, as those of device allocators are, and of what the caller asks for.
  static constexpr std::size_t least_alignment = 64;

  /// Reserves as much of the address space as the system allows, up to 64 TiB. Without any, `take` fails.
  phantom_addresses() noexcept {
#if defined(__unix__) || defined(__APPLE__)
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    for (unsigned bits = 46; bits >= 36; --bits) {
      const std::size_t bytes = std::size_t{1} << bits;
      void* const range = ::mmap(nullptr, bytes, PROT_NONE, flags, -1, 0);
      if (range == MAP_FAILED) continue;
      first_ = next_ = reinterpret_cast<std::uintptr_t>(range);
      last_ = first_ + bytes;
      break;
    }
#endif
  }
  phantom_addresses(const phantom_addresses&) = delete;
  phantom_addresses& operator=(const phantom_addresses&) = delete;
  ~phantom_addresses() {
#if defined(__unix__) || defined(__APPLE__)
    if (first_ != 0) ::munmap(reinterpret_cast<void*>(first_), last_ - first_);
#endif
  }

  /// False if the system had no room to reserve.
  [[nodiscard]] bool is_usable() const noexcept { return first_ != 0; }

  /// Whether an address lies in the reserved range. Safe in a signal handler.
  [[nodiscard]] bool contains(const void* address) const noexcept {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    return value >= first_ && value < last_;
  }

  /// An address for `bytes` bytes; null if the range or the profiler's memory is used up. `alignment` is a power of two.
  [[nodiscard]] void* take(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes > last_ - first_ || alignment > last_ - first_) return nullptr;
    const shape wanted = shape_of(bytes, alignment);
    const detail::lock_guard guard{lock_};
    const std::size_t list = find_list(wanted);
    if (list != no_list && lists_[list].head != 0) {
      const std::uint32_t node = lists_[list].head;
      lists_[list].head = nodes_[node].next;
      nodes_[node].next = unused_;
      unused_ = node;
      return reinterpret_cast<void*>(nodes_[node].address);
    }
    const std::uintptr_t aligned = (next_ + wanted.alignment - 1) & ~(wanted.alignment - 1);
    if (aligned < next_ || aligned > last_ || wanted.bytes > last_ - aligned) return nullptr;
    next_ = aligned + wanted.bytes;
    return reinterpret_cast<void*>(aligned);
  }

  /// Gives back what `take` returned for the same size and alignment.
  void give_back(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    const shape rounded = shape_of(bytes, alignment);
    const detail::lock_guard guard{lock_};
    // Without memory for the list the address is never used again, which is safe: the range is far larger than what is live.
    const std::size_t list = make_list(rounded);
    if (list == no_list) return;
    std::uint32_t node = unused_;
    if (node != 0) {
      unused_ = nodes_[node].next;
    } else {
      if (nodes_.empty() && !nodes_.push_back({})) return;  // entry 0 ends lists
      if (!nodes_.push_back({})) return;
      node = static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    nodes_[node] = {reinterpret_cast<std::uintptr_t>(address), lists_[list].head};
    lists_[list].head = node;
  }

  /// Bytes taken from the system for lists; the reserved range takes none.
  [[nodiscard]] std::size_t bytes() const noexcept { return lists_.bytes() + nodes_.bytes(); }

  /// Makes the lock free whatever it was. Only for a child after `fork`.
  void reset_lock() noexcept { lock_.reset(); }

 private:
  struct shape {
    std::size_t bytes;
    std::size_t alignment;
  };
  /// The freed addresses of one shape.
  struct free_list {
    std::size_t bytes;  // 0: this slot of the table is empty
    std::size_t alignment;
    std::uint32_t head;
  };
  struct free_node {
    std::uintptr_t address;
    std::uint32_t next;
  };
  static constexpr std::size_t no_list = ~std::size_t{0};

  [[nodiscard]] static shape shape_of(std::size_t bytes, std::size_t alignment) noexcept {
    const std::size_t rounded = (bytes + least_alignment - 1) & ~(least_alignment - 1);
    return {rounded == 0 ? least_alignment : rounded, alignment < least_alignment ? least_alignment : alignment};
  }

  [[nodiscard]] std::size_t first_slot(const shape& wanted) const noexcept {
    const std::uint64_t key = wanted.bytes * 64 + static_cast<unsigned>(std::countr_zero(wanted.alignment));
    return std::size_t{(key * 0x9E3779B97F4A7C15U) >> 20} & (lists_.size() - 1);
  }

  /// The slot of the shape's list, or the empty slot where it would be; `no_list` if there is no table.
  [[nodiscard]] std::size_t slot_of(const shape& wanted) const noexcept {
    if (lists_.empty()) return no_list;
    std::size_t slot = first_slot(wanted);
    while (lists_[slot].bytes != 0 && (lists_[slot].bytes != wanted.bytes || lists_[slot].alignment != wanted.alignment)) {
      slot = (slot + 1) & (lists_.size() - 1);
    }
    return slot;
  }

  [[nodiscard]] std::size_t find_list(const shape& wanted) const noexcept {
    const std::size_t slot = slot_of(wanted);
    return slot != no_list && lists_[slot].bytes != 0 ? slot : no_list;
  }

  [[nodiscard]] std::size_t make_list(const shape& wanted) noexcept {
    const std::size_t known = find_list(wanted);
    if (known != no_list) return known;
    if (2 * (list_count_ + 1) > lists_.size() && !grow_lists()) return no_list;
    const std::size_t slot = slot_of(wanted);
    lists_[slot] = {wanted.bytes, wanted.alignment, 0};
    ++list_count_;
    return slot;
  }

  [[nodiscard]] bool grow_lists() noexcept {
    detail::page_array<free_list> larger;
    if (!larger.resize(lists_.empty() ? 256 : 2 * lists_.size())) return false;
    const detail::page_array<free_list> old{std::exchange(lists_, std::move(larger))};
    for (const free_list& list : old) {
      if (list.bytes != 0) lists_[slot_of({list.bytes, list.alignment})] = list;
    }
    return true;
  }

  std::uintptr_t first_ = 0;
  std::uintptr_t last_ = 0;
  std::uintptr_t next_ = 0;
  detail::futex_lock lock_;
  detail::page_array<free_list> lists_;
  std::size_t list_count_ = 0;
  detail::page_array<free_node> nodes_;
  std::uint32_t unused_ = 0;  ///< nodes whose address was taken again
};

}  // namespace memprof

// ---- <memprof/record/clock.hpp>
#include <atomic>
#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/// @file
/// The two clocks of the event path: stamps, which order events between threads, and nanoseconds, which people read.

namespace memprof {

/// Nanoseconds of the system's monotonic clock.
[[nodiscard]] inline std::int64_t monotonic_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Nanoseconds since 1970.
[[nodiscard]] inline std::int64_t unix_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Where stamps come from. One object serves all threads whose events are merged.
///
/// If a call on one thread starts after a call on another returned, its stamp is greater. `rdtscp` gives this where the time
/// stamp counter runs at one rate on all cores: it waits for the loads before it, as a bare `rdtsc` does not (one inversion in
/// 2,000,000 hand-offs was measured). Elsewhere a shared counter that follows the monotonic clock gives it, more slowly.
struct stamp_source {
  enum class kind : std::uint32_t { unknown, time_stamp_counter, shared_counter };

  std::atomic<kind> chosen{kind::unknown};
  std::atomic<std::uint64_t> counter{0};

  /// The next stamp; never 0.
  [[nodiscard]] std::uint64_t next() noexcept {
#if defined(__x86_64__)
    // Relaxed: the choice is a constant of the machine, so any thread may make it again.
    if (chosen.load(std::memory_order_relaxed) == kind::time_stamp_counter) [[likely]] {
      unsigned processor;
      return __builtin_ia32_rdtscp(&processor);  // the built-in: its header costs a third of a second to compile
    }
#endif
    return next_slow();
  }

 private:
  [[gnu::cold, gnu::noinline]] std::uint64_t next_slow() noexcept {
#if defined(__x86_64__)
    if (chosen.load(std::memory_order_relaxed) == kind::unknown) {
      unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
      const bool has_rdtscp = __get_cpuid(0x80000001U, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 27)) != 0;
      const bool is_invariant = __get_cpuid(0x80000007U, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 8)) != 0;
      chosen.store(has_rdtscp && is_invariant ? kind::time_stamp_counter : kind::shared_counter, std::memory_order_relaxed);
      return next();
    }
#endif
    // Strictly increasing: two calls in order never get equal stamps, however coarse the clock is.
    std::uint64_t last = counter.load(std::memory_order_relaxed);
    for (;;) {
      const auto now = static_cast<std::uint64_t>(monotonic_ns());
      const std::uint64_t stamp = now > last ? now : last + 1;
      // Acquire and release pair with the same exchange on other threads: a stamp carries what happened before it.
      if (counter.compare_exchange_weak(last, stamp, std::memory_order_acq_rel, std::memory_order_relaxed)) return stamp;
    }
  }
};

}  // namespace memprof

// ---- <memprof/detail/thread_claim.hpp>
#include <cerrno>
#include <new>

#include <pthread.h>

namespace memprof::detail {

/// A claim of one thread that ends with the thread, however it ends: by return, `pthread_exit`, cancellation or the bare system
/// call, and after its last destructor. A robust mutex that its owner never unlocks: the kernel marks it when the thread is gone.
///
/// The object must stay in memory until then. Not for signal handlers.
class thread_claim {
 public:
  constexpr thread_claim() noexcept = default;
  thread_claim(const thread_claim&) = delete;
  thread_claim& operator=(const thread_claim&) = delete;

  /// Makes the calling thread the owner. False if a thread that lives has it, this one included.
  [[nodiscard]] bool take() noexcept {
    if (!is_made_) make();
    const int result = ::pthread_mutex_trylock(&mutex_);
    if (result == EOWNERDEAD) return ::pthread_mutex_consistent(&mutex_) == 0;
    return result == 0;
  }

  /// Ends the calling thread's claim before the thread ends.
  void give_up() noexcept { ::pthread_mutex_unlock(&mutex_); }

  /// Whether a living thread has it. False and true are both possible while its owner ends.
  [[nodiscard]] bool is_held() noexcept {
    if (!take()) return true;
    give_up();
    return false;
  }

  /// Makes it nobody's. Only for a child after `fork`, where the owners do not exist.
  void reset() noexcept { is_made_ = false; }

 private:
  void make() noexcept {
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    ::pthread_mutex_init(&mutex_, &attributes);
    ::pthread_mutexattr_destroy(&attributes);
    is_made_ = true;
  }

  pthread_mutex_t mutex_{};
  bool is_made_ = false;
};

}  // namespace memprof::detail

// ---- <memprof/trace/event.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace memprof {

/// What an event says; the comment names the fields it uses beside `stamp`.
enum class event_kind : std::uint8_t {
  allocate = 1,         ///< address, bytes, space, tag
  deallocate,           ///< address, bytes as the caller gave them (0: not given), space
  annotate,             ///< address, space, tag, label: an interned `name\x1fshape\x1fdtype[\x1frequires_grad]`, 0 for none
  scope_begin,          ///< label: the operation's name; address: `scope_address(number, number of the one around it)`; tag
  scope_end,            ///< label: as in its `scope_begin`; address: `scope_address(number, its thread, if that is another)`
  thread_begin,         ///< address: number of the thread whose events follow: no operation is open; bytes: its id in the
                        ///< system; label: its name
  allocate_on_cores,    ///< address: as `address_on_cores` makes it; bytes on each core; label: packed `core_range`; space, tag
  deallocate_on_cores,  ///< address, bytes (0: not given), label, space: as in its `allocate_on_cores`
  deallocate_circular_buffers,  ///< label: packed `core_range`; all circular buffers on any of these cores; space
  reserve,                ///< address, bytes, space, label: a `stream_and_pool` or 0: an allocator took a range from the device
  release,                ///< address, bytes (0: not given), space, label: it gave one back
  allocate_on_stream,     ///< as `allocate`, with the label of a `stream_and_pool`
  deallocate_on_stream,   ///< as `deallocate`, with the label of its `allocate_on_stream`; tag 1: streams may still use
                          ///< the block, until its `complete_deallocation`
  out_of_memory,          ///< bytes: asked for, address: bytes free on the device, space: it had no memory for a block
  segment_end,            ///< label: the name of the segment that ends
  clock_reading,          ///< address: nanoseconds since the capture began, when the clock of the stamps showed `stamp`
  lost_events,            ///< so far; address: dropped ones; bytes: those of signal handlers; tag: 1 if there are others
                          ///< of which nobody knows how many
  capture_end,            ///< the last event
  gap,                    ///< bytes: events that are missing here, at least
  deallocate_range,       ///< address, bytes, space: every block that begins there; tag 1: every block of the space
  complete_deallocation,  ///< address, bytes, space: no stream uses the freed block any more
  checkpoint,             ///< label: its name, 0 for a periodic one: what is live now is to be kept
};

/// The names of `event_kind`, in the order of its values; the first is that of no kind.
inline constexpr std::array<std::string_view, 23> event_kind_names{"unknown",
                                                                   "allocate",
                                                                   "deallocate",
                                                                   "annotate",
                                                                   "scope_begin",
                                                                   "scope_end",
                                                                   "thread_begin",
                                                                   "allocate_on_cores",
                                                                   "deallocate_on_cores",
                                                                   "deallocate_circular_buffers",
                                                                   "reserve",
                                                                   "release",
                                                                   "allocate_on_stream",
                                                                   "deallocate_on_stream",
                                                                   "out_of_memory",
                                                                   "segment_end",
                                                                   "clock_reading",
                                                                   "lost_events",
                                                                   "capture_end",
                                                                   "gap",
                                                                   "deallocate_range",
                                                                   "complete_deallocation",
                                                                   "checkpoint"};
static_assert(event_kind_names.size() == static_cast<std::size_t>(event_kind::checkpoint) + 1);

/// The name of a kind as files spell it.
[[nodiscard]] constexpr std::string_view to_string(event_kind value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return event_kind_names[index < event_kind_names.size() ? index : 0];
}

/// The ring of events that no thread recorded: those about the capture itself.
inline constexpr std::uint32_t no_ring_id = 0;

/// Whether the kind's address is one of memory.
[[nodiscard]] constexpr bool has_address(event_kind kind) noexcept {
  return (kind >= event_kind::allocate && kind <= event_kind::annotate) ||
         (kind >= event_kind::allocate_on_cores && kind < event_kind::out_of_memory) || kind == event_kind::complete_deallocation;
}

/// The id of the memory space `cpu`: hooks of the C++ heap need no look-up.
inline constexpr std::uint8_t cpu_space = 0;

/// The address of a `scope_begin` or `scope_end`: an operation's number, counted on its thread from 1, and another number.
[[nodiscard]] constexpr std::uint64_t scope_address(std::uint32_t number, std::uint32_t other) noexcept {
  return std::uint64_t{other} << 32 | number;
}

/// The id of no memory space: `annotate` with it asks all of them.
inline constexpr std::uint8_t any_space = 255;

/// One thing that happened to memory: the only form in which sources speak to the ledger.
///
/// `stamp` is a clock reading that orders events of different threads; 0 says "directly after the previous event of the same
/// thread". `tag` is 0 or a category's value plus one; in `allocate_on_cores` its upper byte is a `buffer_kind`. `space` and
/// `label` are ids of interned names, unless the kind says otherwise.
struct event {
  std::uint64_t stamp;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint32_t label;
  event_kind kind;
  std::uint8_t space;
  std::uint16_t tag;
};

static_assert(sizeof(event) == 32 && std::is_trivially_copyable_v<event>);

}  // namespace memprof

// ---- <memprof/trace/label.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace memprof {

/// The id of an interned name; 0 is no name. Events carry labels, never text.
using label = std::uint32_t;

/// Stands for every name that came when a process had too many: the last label that a block's annotation can have. No table has
/// a text for it.
inline constexpr label other_names = (label{1} << 24) - 1;

/// Stands between the parts of a name that has several, such as a stream and a pool.
inline constexpr char name_separator = '\x1f';

/// How many names a table may take in, and how many bytes of pages for their text.
struct label_limits {
  std::size_t names = other_names - 1;
  std::size_t text_bytes = ~std::size_t{0};
};

/// Names and their ids. Equal text has one id, unless it was appended, and the text of an id stays where it is for the table's
/// life.
///
/// Not synchronised: the registry's table is used under the registry's lock. Memory grows with the number of different names.
class label_table {
 public:
  label_table() = default;
  label_table(const label_table&) = delete;
  label_table& operator=(const label_table&) = delete;
  ~label_table() {
    while (chunks_ != nullptr) {
      chunk* const next = chunks_->next;
      detail::unmap_pages(chunks_, chunks_->bytes);
      chunks_ = next;
    }
  }

  /// Names are cut to this many bytes, so that each fits into a piece of a trace.
  static constexpr std::size_t max_name_bytes = std::size_t{32} * 1024;

  /// The id of `text`, interned if it is new; 0 if the system has no memory for it, `other_names` if it is new and the table has
  /// as much as it may.
  [[nodiscard]] label intern(std::string_view text, const label_limits& most = {}) noexcept {
    if (text.size() > max_name_bytes) text = text.substr(0, max_name_bytes);
    const bool is_full = entries_.size() >= most.names || chunk_bytes_ >= most.text_bytes;
    if (2 * (entries_.size() + 1) > slots_.size() && !is_full && !grow()) return 0;
    const std::uint32_t hash = hash_of(text);
    std::size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
      const entry& known = entries_[slots_[slot] - 1];
      if (known.hash == hash && is_text(known.text, known.size, text)) return slots_[slot];
    }
    if (is_full) return other_names;
    const char* const copy = store(text);
    if (copy == nullptr || !entries_.push_back({copy, static_cast<std::uint32_t>(text.size()), hash})) return 0;
    return slots_[slot] = static_cast<label>(entries_.size());
  }

  /// Adds a text under the next id, whether it is known or not: for tables that follow another one. False if the system has no
  /// memory for it.
  bool append(std::string_view text) noexcept {
    const char* const copy = store(text);
    return copy != nullptr && entries_.push_back({copy, static_cast<std::uint32_t>(text.size()), 0});
  }

  /// The text of an id of this table; empty for 0 and for ids it never gave.
  [[nodiscard]] std::string_view text(label id) const noexcept {
    if (id == 0 || id > entries_.size()) return {};
    const std::size_t size = entries_[id - 1].size;  // exactly std::size_t: any other type costs that check
    return {entries_[id - 1].text, size};
  }

  /// How many names there are: their ids are 1 to that.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return entries_.bytes() + slots_.bytes() + chunk_bytes_; }

  /// The hash that `intern` uses (32-bit FNV-1a), for caches in front of the table.
  [[nodiscard]] static constexpr std::uint32_t hash_of(std::string_view text) noexcept {
    std::uint32_t hash = 2166136261U;
    for (const char character : text) hash = (hash ^ static_cast<unsigned char>(character)) * 16777619U;
    return hash;
  }

  /// Whether the bytes are those of `text`. `std::string_view`'s own operator costs every unit its iterators' concepts.
  [[nodiscard]] static bool is_text(const char* bytes, std::uint32_t size, std::string_view text) noexcept {
    return size == text.size() && (size == 0 || std::memcmp(bytes, text.data(), size) == 0);
  }

 private:
  struct entry {
    const char* text;
    std::uint32_t size;
    std::uint32_t hash;
  };
  struct chunk {
    chunk* next;
    std::size_t bytes;
  };

  [[nodiscard]] bool grow() noexcept {
    detail::page_array<label> slots;
    if (!slots.resize(slots_.empty() ? 512 : 2 * slots_.size())) return false;
    for (std::size_t index = 0; index < entries_.size(); ++index) {
      std::size_t slot = entries_[index].hash & (slots.size() - 1);
      while (slots[slot] != 0) slot = (slot + 1) & (slots.size() - 1);
      slots[slot] = static_cast<label>(index + 1);
    }
    slots_ = std::move(slots);
    return true;
  }

  [[nodiscard]] const char* store(std::string_view text) noexcept {
    if (text.size() > free_) {
      const std::size_t wanted = sizeof(chunk) + text.size();
      const std::size_t bytes = wanted > default_chunk_bytes ? wanted : default_chunk_bytes;
      void* const pages = detail::map_pages(bytes);
      if (pages == nullptr) return nullptr;
      chunks_ = new (pages) chunk{chunks_, bytes};
      chunk_bytes_ += bytes;
      next_ = static_cast<char*>(pages) + sizeof(chunk);
      free_ = bytes - sizeof(chunk);
    }
    char* const copy = next_;
    if (!text.empty()) std::memcpy(copy, text.data(), text.size());
    next_ += text.size();
    free_ -= text.size();
    return copy;
  }

  static constexpr std::size_t default_chunk_bytes = 16384;

  detail::page_array<entry> entries_;
  detail::page_array<label> slots_;
  chunk* chunks_ = nullptr;
  std::size_t chunk_bytes_ = 0;
  char* next_ = nullptr;
  std::size_t free_ = 0;
};

/// The texts of ids, whoever keeps them. As long as its source does not move.
class name_view {
 public:
  template <class Names>
  name_view(const Names& source) noexcept  // implicit: it is what is asked for names
      : source_(&source),
        text_([](const void* names, label id) noexcept { return static_cast<const Names*>(names)->text(id); }) {}

  /// The text of an id; empty for 0 and for one that is not known.
  [[nodiscard]] std::string_view text(label id) const noexcept { return text_(source_, id); }

 private:
  const void* source_;
  std::string_view (*text_)(const void*, label) noexcept;
};

}  // namespace memprof

// ---- <memprof/record/event_ring.hpp>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memprof {

/// Whether a thread is inside the profiler. Everything but `idle` keeps its hooks from recording.
enum class activity : std::uint32_t {
  idle,
  unattached,  ///< of no thread: the state of the ring that stands for "none yet"
  recording,   ///< an event is being written: only a signal handler can interrupt here
  busy,        ///< the profiler works and allocates nothing that a hook sees, so any event now is a signal handler's
  internal,    ///< the profiler works for the user and may allocate: its own allocations are invisible
  nested,      ///< a tracked resource asks its upstream: what that takes from `operator new` is counted already
};

/// An order word that nobody ever holds: a thread with it stamps its next event. See record/event_order.hpp.
inline constexpr std::uint64_t order_unclaimed = ~std::uint64_t{2};

/// The slots of a ring and what a reader of their pages alone needs to find the events in them.
struct ring_slots {
  std::atomic<event*> published;  ///< one past the last published event
  event* first;                   ///< address of the first slot
  std::uint64_t first_number;     ///< how many events the ring held before the one in the first slot
  std::uint32_t ring;             ///< `event_ring::id`
  std::uint32_t capacity;
  std::uint32_t check;         ///< `live_ring_header::check_of`; set for slots in a trace file
  std::uint32_t file_capture;  ///< number of the capture whose trace file had a place for them, or none left; 0: of another
  std::uint64_t is_in_file;    ///< 1 while they lie in a file's pages, which a child after `fork` shares with its parent
  std::uint64_t unused[2];

  [[nodiscard]] static constexpr std::size_t bytes_for(std::uint32_t capacity) noexcept {
    return sizeof(ring_slots) + capacity * sizeof(event);
  }
};
static_assert(sizeof(ring_slots) == 64);

/// The slots of rings that have none: of no capacity, so that whoever records next gets others. Recognized by that, not by
/// its address, as each library may have its own.
inline constinit ring_slots no_slots{};

/// The space in which one thread records, and the state of its recording path. One producer fills the slots from the beginning,
/// and when they are full has them emptied and starts again: no index ever wraps. A ring outlives its thread, so that nobody ever
/// reads a thread's own memory, and then serves another.
struct event_ring {
  // Written by the producer.
  event* cursor = nullptr;                      ///< where the next event goes
  std::atomic<event*> limit{nullptr};           ///< end of the slots; null sends the producer's next event the slow way
  std::uint64_t order_word = order_unclaimed;   ///< the order word under which this thread may leave stamps out
  std::atomic<activity> doing{activity::idle};  ///< read by the thread that grants an order word
  std::uint32_t id = 0;                         ///< from 1; names the ring in the ledger and in the order word
  ring_slots* slots = nullptr;

  // Everything below is used under the registry's lock.
  alignas(64) event* tail = nullptr;  ///< first event that was not drained
  event* drain_limit = nullptr;       ///< how far the drain that is running goes
  std::uint64_t last_stamp = 0;       ///< of the last drained event that had one: the place of those without
  std::uint64_t drained = 0;          ///< events that the active capture got from it
  std::uint32_t capture = 0;          ///< the capture for which its thread has announced itself
  std::uint32_t thread = 0;           ///< number of its thread, counted over the process; from 1
  event_ring* next = nullptr;
  detail::thread_claim owner;  ///< held by its thread until that is gone, however it ends

  /// Ids of names that this ring's threads used lately, found by hash; only its producer reads and writes them.
  struct cached_label {
    const char* text;
    std::uint32_t size;
    label id;
  };
  static constexpr std::size_t cached_labels = 64;
  cached_label label_cache[cached_labels] = {};

  /// Operations of this ring's thread that ended before one within them; only the producer uses them.
  struct early_end {
    std::uint32_t number;  ///< 0: unused
    std::uint32_t outer;
    label outer_name;
  };
  static constexpr std::size_t max_early_ends = 16;
  early_end early_ends[max_early_ends] = {};

  event_ring() = default;
  constexpr explicit event_ring(activity forever) noexcept : doing(forever) {}

  [[nodiscard]] std::size_t bytes() const noexcept { return sizeof(event_ring) + ring_slots::bytes_for(slots->capacity); }
};

/// The ring of threads that have none yet. Never written.
inline constinit event_ring no_ring{activity::unattached};

/// What a thread itself holds of the recording path.
struct thread_slot {
  event_ring* ring = &no_ring;                               ///< never null
  std::atomic<activity> doing_without_ring{activity::idle};  ///< in place of the ring's while there is none
  std::uint32_t last_scope = 0;       ///< number of the operation that this thread opened last; they count from 1
  std::uint32_t innermost_scope = 0;  ///< number of the innermost that is open; 0: none
  label innermost_name = 0;           ///< name of the innermost that the program itself named; 0: none

  [[nodiscard]] bool has_ring() const noexcept { return ring->doing.load(std::memory_order_relaxed) != activity::unattached; }
  [[nodiscard]] std::atomic<activity>& doing() noexcept { return has_ring() ? ring->doing : doing_without_ring; }
};

}  // namespace memprof

// ---- <memprof/record/hidden_blocks.hpp>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace memprof {

/// Heap blocks of the profiler's own that the program may free: a profile that was returned to it. Their frees are no more the
/// program's events than their allocations were.
///
/// Thread-safe. While it is empty, as it nearly always is, asking costs one load. A thread that calls `add` or `remove` must not
/// be interrupted by a signal handler that does: it would wait for the thread's own lock.
class hidden_blocks {
 public:
  hidden_blocks() noexcept = default;
  hidden_blocks(const hidden_blocks&) = delete;
  hidden_blocks& operator=(const hidden_blocks&) = delete;

  /// Adds a block. Without memory for it, its free will count as unmatched.
  void add(std::uintptr_t address) noexcept {
    const detail::lock_guard guard{lock_};
    if (2 * (count_ + 1) > slots_.size() && !grow()) return;
    slots_[free_slot(slots_, address)] = address;
    ++count_;
    const std::uint64_t hash = hash_of(address);
    // Relaxed, here and below: a thread that frees a block was handed it by one that came from here.
    filter_[word_of(hash)].fetch_or(bit_of(hash), std::memory_order_relaxed);
  }

  /// Whether a block may be one of them. Costs one load, and takes no lock.
  [[nodiscard]] bool may_hold(std::uintptr_t address) const noexcept {
    const std::uint64_t hash = hash_of(address);
    return (filter_[word_of(hash)].load(std::memory_order_relaxed) & bit_of(hash)) != 0;
  }

  /// Takes a block away; false if it is none of them.
  [[nodiscard]] bool remove(std::uintptr_t address) noexcept {
    if (!may_hold(address)) [[likely]]
      return false;
    return remove_found(address);
  }

  /// Forgets all of them: those that were freed while nobody recorded would stand for blocks of the program.
  void clear() noexcept {
    const detail::lock_guard guard{lock_};
    slots_ = {};
    count_ = 0;
    clear_filter();
  }

  /// Makes the lock free whatever it was. Only for a child after `fork`.
  void reset_lock() noexcept { lock_.reset(); }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return slots_.bytes(); }

 private:
  static constexpr std::size_t filter_words = 32;

  [[nodiscard]] static std::uint64_t hash_of(std::uintptr_t address) noexcept { return address * 0x9E3779B97F4A7C15U; }
  [[nodiscard]] static std::size_t word_of(std::uint64_t hash) noexcept { return (hash >> 40) % filter_words; }
  [[nodiscard]] static std::uint64_t bit_of(std::uint64_t hash) noexcept { return std::uint64_t{1} << (hash >> 58); }
  [[nodiscard]] static std::size_t home_of(const detail::page_array<std::uintptr_t>& slots, std::uintptr_t address) noexcept {
    return std::size_t{hash_of(address) >> 20} & (slots.size() - 1);
  }
  [[nodiscard]] static std::size_t free_slot(const detail::page_array<std::uintptr_t>& slots, std::uintptr_t address) noexcept {
    std::size_t slot = home_of(slots, address);
    while (slots[slot] != 0) slot = (slot + 1) & (slots.size() - 1);
    return slot;
  }

  [[nodiscard]] bool grow() noexcept {
    detail::page_array<std::uintptr_t> larger;
    if (!larger.resize(slots_.empty() ? 512 : 2 * slots_.size())) return false;
    for (const std::uintptr_t address : slots_) {
      if (address != 0) larger[free_slot(larger, address)] = address;
    }
    slots_ = std::move(larger);
    return true;
  }

  [[gnu::cold, gnu::noinline]] bool remove_found(std::uintptr_t address) noexcept {
    const detail::lock_guard guard{lock_};
    if (slots_.empty()) return false;
    std::size_t slot = home_of(slots_, address);
    while (slots_[slot] != address) {
      if (slots_[slot] == 0) return false;
      slot = (slot + 1) & (slots_.size() - 1);
    }
    close_gap(slot);
    if (--count_ == 0) clear_filter();
    return true;
  }

  void clear_filter() noexcept {
    for (auto& word : filter_) word.store(0, std::memory_order_relaxed);
  }

  /// Empties a slot and moves those behind it that a search would no longer find.
  void close_gap(std::size_t gap) noexcept {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t slot = (gap + 1) & mask; slots_[slot] != 0; slot = (slot + 1) & mask) {
      const std::size_t home = home_of(slots_, slots_[slot]);
      if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
      slots_[gap] = slots_[slot];
      gap = slot;
    }
    slots_[gap] = 0;
  }

  std::atomic<std::uint64_t> filter_[filter_words] = {};
  detail::futex_lock lock_;
  detail::page_array<std::uintptr_t> slots_;  ///< open addressing; 0: free
  std::size_t count_ = 0;
};

}  // namespace memprof

// ---- <memprof/record/own_file.hpp>
#include <cstdint>

#include <sys/stat.h>
#include <unistd.h>

namespace memprof::detail {

/// A file that the profiler has opened in a process whose program may close every number, as daemons do, and get the same number
/// for a file of its own: that must be neither written nor closed.
struct own_file {
  int number = -1;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  [[nodiscard]] static own_file of(int number) noexcept {
    struct stat status {};
    if (number < 0 || ::fstat(number, &status) != 0) return {};
    return {number, std::uint64_t{status.st_dev}, std::uint64_t{status.st_ino}};
  }

  /// Whether the number still stands for the file. Costs a system call.
  [[nodiscard]] bool is_there() const noexcept {
    const own_file now = of(number);
    return now.number >= 0 && now.device == device && now.inode == inode;
  }

  void close() noexcept {
    if (is_there()) ::close(number);
    number = -1;
  }
};

}  // namespace memprof::detail

// ---- <memprof/trace/crc32c.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memprof::detail {

using crc32c_tables = std::array<std::array<std::uint32_t, 256>, 4>;

[[nodiscard]] constexpr crc32c_tables make_crc32c_tables() noexcept {
  crc32c_tables made{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82F63B78U : crc >> 1;
    made[0][byte] = crc;
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    for (std::size_t step = 1; step < 4; ++step) {
      made[step][byte] = made[0][made[step - 1][byte] & 0xFF] ^ made[step - 1][byte] >> 8;
    }
  }
  return made;
}

/// CRC-32C (Castagnoli: reflected polynomial 0x82F63B78, initial value and final exclusive-or all ones), as in iSCSI, ext4 and
/// SCTP: RFC 3720, appendix B.4.
class crc32c {
 public:
  /// The checksum of bytes whose first part has the checksum `before`; 0 for none before.
  [[nodiscard]] static std::uint32_t extend(std::uint32_t before, const void* bytes, std::size_t size) noexcept {
    const auto* const data = static_cast<const unsigned char*>(bytes);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return ~extend_by_instruction(~before, data, size);
#endif
    return ~extend_by_table(~before, data, size);
  }

  /// The same without the processor's help, for tests.
  [[nodiscard]] static std::uint32_t extend_portably(std::uint32_t before, const void* bytes, std::size_t size) noexcept {
    return ~extend_by_table(~before, static_cast<const unsigned char*>(bytes), size);
  }

 private:
#if defined(__x86_64__)
  [[nodiscard, gnu::target("sse4.2")]] static std::uint32_t extend_by_instruction(std::uint32_t crc, const unsigned char* data,
                                                                                  std::size_t size) noexcept {
    std::uint64_t wide = crc;
    for (; size >= 8; size -= 8, data += 8) {
      std::uint64_t word;
      std::memcpy(&word, data, 8);
      wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = static_cast<std::uint32_t>(wide);
    for (; size != 0; --size) crc = __builtin_ia32_crc32qi(crc, *data++);
    return crc;
  }
#endif

  [[nodiscard]] static std::uint32_t extend_by_table(std::uint32_t crc, const unsigned char* data, std::size_t size) noexcept {
    static constexpr crc32c_tables tables = make_crc32c_tables();
    for (; size >= 4; size -= 4, data += 4) {
      std::uint32_t word;
      std::memcpy(&word, data, 4);
      crc ^= word;
      crc = tables[3][crc & 0xFF] ^ tables[2][crc >> 8 & 0xFF] ^ tables[1][crc >> 16 & 0xFF] ^ tables[0][crc >> 24];
    }
    for (; size != 0; --size) crc = tables[0][(crc ^ *data++) & 0xFF] ^ crc >> 8;
    return crc;
  }
};

}  // namespace memprof::detail

// ---- <memprof/trace/file_layout.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

/// @file
/// The fixed parts of a trace file, as docs/trace_format.md describes them. All numbers are little-endian.

namespace memprof::detail {

inline constexpr std::string_view trace_magic{"\x89MEMTRC\n", 8};
inline constexpr std::uint16_t trace_file_version = 1;
inline constexpr std::uint16_t trace_file_revision = 1;

template <class Number>
void put_little_endian(unsigned char* out, Number value) noexcept {
  for (std::size_t byte = 0; byte < sizeof value; ++byte) out[byte] = static_cast<unsigned char>(value >> (8 * byte));
}
template <class Number>
[[nodiscard]] Number get_little_endian(const unsigned char* in) noexcept {
  Number value = 0;
  for (std::size_t byte = 0; byte < sizeof value; ++byte)
    value = static_cast<Number>(value | static_cast<Number>(in[byte]) << (8 * byte));
  return value;
}

/// What has become of the file.
enum class trace_file_state : std::uint32_t {
  complete = 0,
  live = 1,     ///< a capture writes it, or its process has ended without ending the capture
  stopped = 2,  ///< writing it failed
};

struct trace_file_header {
  static constexpr std::size_t size = 64;
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};

  std::uint16_t version = trace_file_version;    ///< a reader of another one cannot read the file
  std::uint16_t revision = trace_file_revision;  ///< a reader of an older one can
  std::uint64_t first_chunk = size;              ///< offset
  std::uint64_t chunks = 0;                      ///< `unknown` in a live file
  std::uint64_t bytes = 0;                       ///< of the file; likewise
  trace_file_state state = trace_file_state::complete;
  std::uint32_t error = 0;         ///< `errno` of what stopped the writing
  std::uint32_t live_area = 0;     ///< its offset; 0: there is none
  std::uint32_t first_number = 0;  ///< of the first chunk: those before it are gone
  std::uint64_t more_chunks = 0;   ///< offset at which the chunks go on, where they do not follow each other; 0: they all do

  bool operator==(const trace_file_header&) const = default;

  [[nodiscard]] std::array<unsigned char, size> encode() const noexcept {
    std::array<unsigned char, size> out{};
    std::memcpy(out.data(), trace_magic.data(), trace_magic.size());
    put_little_endian(&out[8], version);
    put_little_endian(&out[10], revision);
    put_little_endian(&out[12], static_cast<std::uint32_t>(first_chunk));
    put_little_endian(&out[16], chunks);
    put_little_endian(&out[24], bytes);
    put_little_endian(&out[32], static_cast<std::uint32_t>(state));
    put_little_endian(&out[36], error);
    put_little_endian(&out[40], live_area);
    put_little_endian(&out[44], first_number);
    put_little_endian(&out[48], more_chunks);
    put_little_endian(&out[56], static_cast<std::uint32_t>(first_chunk >> 32));
    put_little_endian(&out[size - 4], crc32c::extend(0, out.data(), size - 4));
    return out;
  }
  /// False if the checksum is another one. The magic number is not looked at.
  [[nodiscard]] bool decode(const std::array<unsigned char, size>& in) noexcept {
    version = get_little_endian<std::uint16_t>(&in[8]);
    revision = get_little_endian<std::uint16_t>(&in[10]);
    first_chunk = get_little_endian<std::uint32_t>(&in[12]) | std::uint64_t{get_little_endian<std::uint32_t>(&in[56])} << 32;
    chunks = get_little_endian<std::uint64_t>(&in[16]);
    bytes = get_little_endian<std::uint64_t>(&in[24]);
    state = static_cast<trace_file_state>(get_little_endian<std::uint32_t>(&in[32]));
    error = get_little_endian<std::uint32_t>(&in[36]);
    live_area = get_little_endian<std::uint32_t>(&in[40]);
    first_number = get_little_endian<std::uint32_t>(&in[44]);
    more_chunks = get_little_endian<std::uint64_t>(&in[48]);
    return get_little_endian<std::uint32_t>(&in[size - 4]) == crc32c::extend(0, in.data(), size - 4);
  }
};

struct chunk_header {
  static constexpr std::size_t size = 24;
  static constexpr std::uint32_t magic = 0x4B4E4843;  // "CHNK"
  /// Longer ones are damage, so that a flipped bit costs no memory.
  static constexpr std::uint32_t max_bytes = std::uint32_t{16} << 20;

  std::uint32_t bytes = 0;    ///< that follow
  std::uint32_t number = 0;   ///< from 0
  std::uint32_t packing = 0;  ///< `not_packed`, `packed_with_zstd` or `begins_generation`
  std::uint32_t checksum = 0;

  [[nodiscard]] std::array<unsigned char, size> encode() const noexcept {
    std::array<unsigned char, size> out{};
    put_little_endian(&out[0], magic);
    put_little_endian(&out[4], bytes);
    put_little_endian(&out[8], number);
    put_little_endian(&out[12], packing);
    put_little_endian(&out[16], checksum);
    put_little_endian(&out[20], crc32c::extend(0, out.data(), 20));
    return out;
  }
  [[nodiscard]] bool decode(const std::array<unsigned char, size>& in) noexcept {
    bytes = get_little_endian<std::uint32_t>(&in[4]);
    number = get_little_endian<std::uint32_t>(&in[8]);
    packing = get_little_endian<std::uint32_t>(&in[12]);
    checksum = get_little_endian<std::uint32_t>(&in[16]);
    return get_little_endian<std::uint32_t>(in.data()) == magic &&
           get_little_endian<std::uint32_t>(&in[20]) == crc32c::extend(0, in.data(), 20);
  }
};

inline constexpr std::uint32_t not_packed = 0;
inline constexpr std::uint32_t packed_with_zstd = 1;
/// Not packed, and no chunk of its own: a part of what was known before the chunk of that number, for whoever begins to read
/// there.
inline constexpr std::uint32_t begins_generation = 0x100;
/// No payload is packed more densely: what a file costs to read is in proportion to its size.
inline constexpr std::size_t max_packing_ratio = 256;

template <std::size_t Size>
[[nodiscard]] std::string_view as_text(const std::array<unsigned char, Size>& bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), Size};
}

/// The part of a live file that its process has mapped: chunks that are not written yet, and the rings of threads.
struct live_area_header {
  static constexpr std::size_t size = 64;
  static constexpr std::uint32_t magic = 0x4556494C;  // "LIVE"
  static constexpr std::uint32_t max_buffers = 128;
  static constexpr std::uint64_t max_bytes_of_buffers = std::uint64_t{64} << 20;
  static constexpr std::uint32_t max_places = 1024;

  /// Offsets from the area's begin of what changes while the file is live.
  static constexpr std::size_t rings_outside = 64;  ///< 8 bytes: how many rings have no place here
  static constexpr std::size_t given_places = 72;   ///< 8 bytes: how many places are rings'; these come first
  static constexpr std::size_t buffer_states = 128;

  std::uint32_t buffers = 0;
  std::uint32_t buffer_bytes = 0;
  std::uint32_t places = 0;
  std::uint32_t place_bytes = 0;
  std::uint64_t first_buffer = 0;  ///< offset in the file
  std::uint64_t first_place = 0;   ///< likewise

  [[nodiscard]] std::array<unsigned char, size> encode() const noexcept {
    std::array<unsigned char, size> out{};
    put_little_endian(&out[0], magic);
    put_little_endian(&out[4], buffers);
    put_little_endian(&out[8], buffer_bytes);
    put_little_endian(&out[12], places);
    put_little_endian(&out[16], place_bytes);
    put_little_endian(&out[24], first_buffer);
    put_little_endian(&out[32], first_place);
    put_little_endian(&out[size - 4], crc32c::extend(0, out.data(), size - 4));
    return out;
  }
  /// False if these bytes begin no area, or one whose parts are impossibly large.
  [[nodiscard]] bool decode(const std::array<unsigned char, size>& in) noexcept {
    buffers = get_little_endian<std::uint32_t>(&in[4]);
    buffer_bytes = get_little_endian<std::uint32_t>(&in[8]);
    places = get_little_endian<std::uint32_t>(&in[12]);
    place_bytes = get_little_endian<std::uint32_t>(&in[16]);
    first_buffer = get_little_endian<std::uint64_t>(&in[24]);
    first_place = get_little_endian<std::uint64_t>(&in[32]);
    return get_little_endian<std::uint32_t>(in.data()) == magic &&
           get_little_endian<std::uint32_t>(&in[size - 4]) == crc32c::extend(0, in.data(), size - 4) && buffers <= max_buffers &&
           std::uint64_t{buffers} * buffer_bytes <= max_bytes_of_buffers && places <= max_places;
  }
};

/// What the live area says of each of its buffers. A single store of `commit` makes more of the chunk valid.
struct live_buffer_state {
  static constexpr std::size_t size = 16;

  std::uint64_t number = 0;  ///< of the chunk, plus one; 0: the buffer was never used
  std::uint64_t commit = 0;  ///< low half: bytes of the payload that are whole; high half: `check_of`; 0: none yet

  /// The checksum of the payload, such that it tells a wrong number too.
  [[nodiscard]] static constexpr std::uint32_t check_of(std::uint32_t checksum, std::uint64_t number) noexcept {
    return checksum ^ static_cast<std::uint32_t>(number);
  }
  [[nodiscard]] static constexpr std::uint64_t commit_of(std::uint32_t bytes, std::uint32_t checksum,
                                                         std::uint64_t number) noexcept {
    return bytes | std::uint64_t{check_of(checksum, number)} << 32;
  }
};

/// What is before the events in each place of a ring: `ring_slots` (record/event_ring.hpp) as it is in memory.
struct live_ring_header {
  static constexpr std::size_t size = 64;

  std::uint64_t published = 0;     ///< address of what follows the last event; 0: the place was never used
  std::uint64_t first = 0;         ///< address of the first event
  std::uint64_t first_number = 0;  ///< how many events of the ring there were before it
  std::uint32_t ring = 0;
  std::uint32_t capacity = 0;
  std::uint32_t check = 0;  ///< CRC-32C of the 8 bytes of `first` and the 8 of `ring` and `capacity`

  void decode(const unsigned char* in) noexcept {
    published = get_little_endian<std::uint64_t>(in);
    first = get_little_endian<std::uint64_t>(in + 8);
    first_number = get_little_endian<std::uint64_t>(in + 16);
    ring = get_little_endian<std::uint32_t>(in + 24);
    capacity = get_little_endian<std::uint32_t>(in + 28);
    check = get_little_endian<std::uint32_t>(in + 32);
  }
  [[nodiscard]] static std::uint32_t check_of(std::uint64_t first, std::uint32_t ring, std::uint32_t capacity) noexcept {
    std::array<unsigned char, 16> bytes{};
    put_little_endian(&bytes[0], first);
    put_little_endian(&bytes[8], ring);
    put_little_endian(&bytes[12], capacity);
    return crc32c::extend(0, bytes.data(), bytes.size());
  }
};

}  // namespace memprof::detail

// ---- <memprof/record/ring_places.hpp>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

namespace memprof {

/// The pages of the active capture's trace file that are mapped, and the places for rings in them. Used under the registry's
/// lock, but for what says otherwise.
struct ring_places {
  static_assert(sizeof(ring_slots) == detail::live_ring_header::size);

  unsigned char* mapping = nullptr;  ///< of the file from its begin
  std::size_t mapping_bytes = 0;

  unsigned char* first = nullptr;  ///< place
  std::size_t place_bytes = 0;
  std::uint32_t capacity = 0;  ///< events that a place holds
  std::uint32_t count = 0;     ///< of places in the mapping
  std::uint32_t given = 0;
  std::uint32_t spare = 0;                 ///< so many are made ready at a time: threads may come faster than a disk gives room
  std::uint32_t capture = 0;               ///< the number of the capture
  std::atomic<std::uint32_t> reserved{0};  ///< places for which the file has room on its disk; the file's writer sets it
  std::atomic<bool> is_short{false};       ///< more should be
  std::atomic<std::uint32_t>* wake_word = nullptr;  ///< counts up when the file's writer has something to do
  std::atomic<std::uint64_t>* given_in_file = nullptr;
  std::atomic<std::uint64_t>* rings_outside = nullptr;  ///< in the file: rings without a place

  /// Whether there is a place for a ring of so many events.
  [[nodiscard]] bool has_place(std::uint32_t events) const noexcept {
    // Acquire pairs with the release of who reserved it.
    return events == capacity && given < reserved.load(std::memory_order_acquire);
  }

  /// Empty slots for the ring of that id, which has given the capture `drained` events; call it only after `has_place`.
  [[nodiscard]] ring_slots* take(std::uint32_t ring, std::uint64_t drained) noexcept {
    unsigned char* const place = first + given++ * place_bytes;
    const std::uint32_t ready = reserved.load(std::memory_order_relaxed);
    if (ready < count && given + spare / 2 >= ready) {
      is_short.store(true, std::memory_order_relaxed);
      wake_word->fetch_add(1, std::memory_order_release);
      wake_word->notify_one();
    }
    auto* const slots = new (place) ring_slots{};
    slots->first = reinterpret_cast<event*>(slots + 1);
    slots->first_number = drained;
    slots->ring = ring;
    slots->capacity = capacity;
    slots->check = detail::live_ring_header::check_of(reinterpret_cast<std::uintptr_t>(slots->first), ring, capacity);
    slots->file_capture = capture;
    slots->is_in_file = 1;
    // Last: it makes the place count. Release, so that who reads the file sees the rest.
    slots->published.store(slots->first, std::memory_order_release);
    given_in_file->store(given, std::memory_order_release);
    return slots;
  }

  /// Whether these slots lie in the mapping.
  [[nodiscard]] bool holds(const ring_slots* slots) const noexcept {
    const auto* const position = reinterpret_cast<const unsigned char*>(slots);
    return position >= first && position < first + count * place_bytes;
  }

  /// Parts a ring in the mapping from the file: its slots become pages of the process's own, empty and at the same addresses, so
  /// that it does no harm if its thread is about to write there. False if the system has no memory for it.
  bool detach(event_ring& ring) noexcept {
    ring_slots& slots = *ring.slots;
    event* const first_slot = slots.first;
    const std::uint64_t first_number = slots.first_number;
    const std::uint32_t id = slots.ring;
    void* const place = &slots;
    if (::mmap(place, place_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      return false;
    slots.first = first_slot;
    slots.first_number = first_number;
    slots.ring = id;
    slots.capacity = capacity;
    slots.file_capture = capture;
    // Its thread stores the cursor before it publishes. Either it has published since the pages are new, or does so later, or is
    // not writing at all.
    event* unknown = nullptr;
    (void)slots.published.compare_exchange_strong(unknown, ring.cursor, std::memory_order_release, std::memory_order_relaxed);
    ring.tail = slots.published.load(std::memory_order_relaxed);
    return true;
  }

  /// Parts all rings from the file. False if one could not be.
  bool detach_all(event_ring* rings) noexcept {
    bool are_detached = true;
    for (event_ring* ring = rings; ring != nullptr; ring = ring->next) {
      if (holds(ring->slots) && !detach(*ring)) are_detached = false;
    }
    return are_detached;
  }

  /// Gives the pages back that are no ring's.
  void unmap() noexcept {
    if (mapping == nullptr) return;
    unsigned char* const unused = first + given * place_bytes;
    ::munmap(mapping, static_cast<std::size_t>(first - mapping));
    if (unused != mapping + mapping_bytes) ::munmap(unused, static_cast<std::size_t>(mapping + mapping_bytes - unused));
    mapping = nullptr;
  }
};

/// What a child after `fork` does with rings that lie in a file of its parent's: they lose their slots, and get others from
/// whoever records next. It needs no memory, so it cannot fail. Returns by how many bytes the rings became smaller.
inline std::uint64_t leave_file_to_parent(event_ring* rings) noexcept {
  std::uint64_t bytes = 0;
  for (event_ring* ring = rings; ring != nullptr; ring = ring->next) {
    if (ring->slots->is_in_file == 0) continue;
    bytes += ring->bytes();
    ring->slots = &no_slots;
    ring->tail = ring->cursor = nullptr;
    bytes -= ring->bytes();
  }
  return bytes;
}

}  // namespace memprof

// ---- <memprof/trace/memory_name.hpp>
#include <cstddef>
#include <string_view>

/// @file
/// In which memory a space lies. Spaces of one memory compete for its bytes: what they hold at the same moment counts.

namespace memprof {

/// The name of the memory of the processor: that of `cpu` and of every `memory_resource`, unless another is asked for.
inline constexpr std::string_view host_memory_name = "host";

/// Stands for `host_memory_name` where a memory is a label. Memories of other names are labels of the trace, and 0 is that of a
/// space which has a memory to itself.
inline constexpr label host_memory = other_names + 1;

namespace detail {

/// Whether a name is that of a device as PyTorch writes it: "cuda:0".
[[nodiscard]] constexpr bool is_device_name(std::string_view name) noexcept {
  std::size_t digits = name.size();
  while (digits != 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  return digits != name.size() && digits > 1 && name[digits - 1] == ':';
}

}  // namespace detail
}  // namespace memprof

// ---- <memprof/record/registry.hpp>
#include <atomic>
#include <cstdint>
#include <new>
#include <string_view>
#include <type_traits>

namespace memprof {

struct fact_table;

}  // namespace memprof

namespace memprof::abi_1 {

/// Everything that the parts of one process share: exactly one object per process, whatever shared libraries it is made of
/// and with whatever macros they were compiled. It is never destroyed.
///
/// Its layout is frozen: a change of any type in it needs a new `abi_N` namespace and a new `layout_version`, so that two
/// versions of the library in one process do not read each other's words.
struct registry {
  static constexpr std::uint32_t current_layout_version = 1;
  static constexpr std::uint32_t max_spaces = any_space;

  std::uint32_t layout_version = current_layout_version;
  std::uint32_t capture_count = 0;

  // What every event reads. Both words change seldom, so they stay in every core's cache.
  alignas(64) std::atomic<std::uint32_t> active_capture{0};  ///< number of the active capture, from 1; 0: none
  std::atomic<std::uint32_t> no_dispatch{0};                 ///< the same if its `run_mode` is `no_dispatch`
  std::atomic<std::uint64_t> order_word{0};                  ///< see record/event_order.hpp
  stamp_source stamps;

  alignas(64) detail::futex_lock lock;
  std::atomic<event_ring*> rings{nullptr};
  std::uint32_t ring_count = 0;
  std::uint32_t ring_capacity = 1024;       ///< events in rings that are made or emptied from now on
  std::atomic<bool> drop_when_full{false};  ///< `overflow::drop`; changed under the lock
  std::atomic<std::uint64_t> dropped_events{0};
  std::atomic<std::uint64_t> reentrant_events{0};
  std::uint64_t ring_bytes = 0;
  std::uint32_t thread_count = 0;  ///< threads that ever recorded
  bool has_fork_handlers = false;

  /// The thread that holds the lock over a `fork`, and its process: what fork handlers of the program record must not wait for
  /// the lock. Null otherwise. Read by any thread to find out whether it is the one.
  std::atomic<const thread_slot*> forking{nullptr};
  std::int64_t forking_process = 0;

  // How often the order word changed hands; tests and `stats` read them.
  std::uint64_t drains = 0;
  std::uint64_t order_epoch = 0;
  std::uint64_t lone_ring = 0;  ///< id of the ring that was alone in the last drain
  std::uint32_t grants = 0;
  std::atomic<std::uint32_t> revocations{0};
  bool can_grant = false;  ///< whether the system has `membarrier`

  /// Empties all rings in order into the active capture. Called under the lock; null while there is no capture.
  void (*drain)(registry&) noexcept = nullptr;
  /// Gives the active capture an event of no thread, which comes after all that was drained. Called likewise.
  void (*put_event)(registry&, const event&) noexcept = nullptr;
  /// Tell the active capture of a new name, a new memory space, and facts. Called under the lock; null likewise.
  void (*define_name)(registry&, label) noexcept = nullptr;
  void (*define_space)(registry&, std::uint8_t) noexcept = nullptr;
  void (*add_facts)(registry&, const fact_table&) = nullptr;
  detail::futex_lock backend_lock;    ///< serialises the calls of a capture's backends; taken before `lock`, never within
  void* capture = nullptr;            ///< the active or last capture; its type is known to `drain`'s module
  event_ring** drain_heap = nullptr;  ///< scratch of the drain: `ring_count` entries
  std::uint32_t drain_heap_capacity = 0;
  ring_places* places = nullptr;  ///< where rings lie while the active capture has a trace file with mapped pages; else null
  detail::own_file trace_file;    ///< that file, as long as it is open, mapped or not

  /// Addresses of blocks that do not exist; null before the first capture with `run_mode::no_dispatch`.
  std::atomic<phantom_addresses*> phantom{nullptr};

  /// The profiler's own blocks that the program may free; null before the first.
  std::atomic<hidden_blocks*> hidden{nullptr};

  label_table* labels = nullptr;
  label space_names[max_spaces + 1] = {};
  label space_memories[max_spaces + 1] = {host_memory};  ///< by id; 0: the space has a memory to itself
  std::uint32_t space_count = 0;
};
static_assert(std::is_trivially_destructible_v<registry>, "programs record until their last instruction");

/// The process's registry: one object, whatever parts define it, because its symbol is visible even under `-fvisibility=hidden`
/// and the dynamic linker binds all parts to the first definition it finds.
///
/// An executable that uses memprof and loads a plugin that does too must export the symbol. The CMake target `memprof::memprof`
/// sees to that (memprof.dynamic-list), and the linker does where a shared library that it links uses memprof; elsewhere link the
/// executable with `-rdynamic`. This holds for GCC and clang. Without it the plugin has a registry of its own, whose events no
/// profile holds; `record/duplicate_registries.hpp` finds that out and says so. Plugins of an executable without memprof share
/// one registry if they are built with GCC, whose unique symbols hold under `RTLD_LOCAL`, or are loaded with `RTLD_GLOBAL`.
[[gnu::visibility("default")]] inline constinit registry process_registry{};

/// The calling thread's way into its ring. In static storage of the executable's first libraries, hence one instruction away; it
/// is small because a library that is loaded later takes it from a scarce reserve. Usable to the last instruction of the thread.
[[gnu::visibility("default")]] [[gnu::tls_model("initial-exec")]] inline constinit thread_local thread_slot this_thread{};

/// How many names a process has at most: one that makes names without end, with a number in each, still gets bounded memory.
inline constexpr label_limits most_names{65'536, std::size_t{8} << 20};

/// The id of `text`; 0 if the system has no memory, `other_names` if it is new and there are too many. Under the lock.
[[nodiscard]] inline label intern(registry& shared, std::string_view text) noexcept {
  if (shared.labels == nullptr) {
    void* const pages = detail::map_pages(sizeof(label_table));
    if (pages == nullptr) return 0;
    shared.labels = new (pages) label_table;
    shared.space_names[cpu_space] = shared.labels->intern("cpu");
    shared.space_count = 1;
  }
  const std::size_t known = shared.labels->size();
  const label id = shared.labels->intern(text, most_names);
  if (shared.labels->size() != known && shared.define_name != nullptr) shared.define_name(shared, id);
  return id;
}

}  // namespace memprof::abi_1

namespace memprof {

using abi_1::registry;

namespace detail {

/// The process's hidden blocks, made at the first call; null if the system has no memory.
[[nodiscard]] inline hidden_blocks* hidden_blocks_of(registry& shared) noexcept {
  hidden_blocks* known = shared.hidden.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  void* const pages = map_pages(sizeof(hidden_blocks));
  if (pages == nullptr) return nullptr;
  auto* const made = new (pages) hidden_blocks;
  // Release pairs with the acquire loads of those who ask.
  if (shared.hidden.compare_exchange_strong(known, made, std::memory_order_acq_rel, std::memory_order_acquire)) return made;
  unmap_pages(pages, sizeof(hidden_blocks));
  return known;
}

/// Holds the registry's lock until the end of the scope. The thread that forks holds it already.
class [[nodiscard]] registry_guard {
 public:
  explicit registry_guard(registry& shared) noexcept : shared_(shared) { lock(); }
  registry_guard(registry& shared, adopt_lock) noexcept : shared_(shared) {}
  registry_guard(const registry_guard&) = delete;
  registry_guard& operator=(const registry_guard&) = delete;
  ~registry_guard() {
    if (!is_forking(shared_)) shared_.lock.unlock();
  }

  /// Whether the calling thread is between the first and the last of its process's fork handlers.
  [[nodiscard]] static bool is_forking(const registry& shared) noexcept {
    // Relaxed: only the thread itself ever stores its own address here.
    return shared.forking.load(std::memory_order_relaxed) == &abi_1::this_thread;
  }

 private:
  void lock() noexcept {
    if (!is_forking(shared_)) shared_.lock.lock();
  }

  registry& shared_;
};

}  // namespace detail

}  // namespace memprof

// ---- <memprof/backend/no_dispatch.hpp>
#if MEMPROF_ENABLED

#include <cstddef>
#endif

/// @file
/// NO_DISPATCH: a run that records every allocation at its true size and lifetime and makes none, so that the peak of a step is
/// known before there is memory to hold it. `memory_resource` hands out reserved addresses; the program skips the work itself:
/// `if (memprof::dispatching()) multiply(a, b, c);`

namespace memprof {

#if MEMPROF_ENABLED
namespace detail {

/// An address that stands for `bytes` bytes which do not exist; null if none are left.
[[nodiscard]] inline void* take_reserved(std::size_t bytes, std::size_t alignment) noexcept {
  // Acquire pairs with the release in `prepare_no_dispatch`.
  phantom_addresses* const reserved = abi_1::process_registry.phantom.load(std::memory_order_acquire);
  return reserved == nullptr ? nullptr : reserved->take(bytes, alignment);
}

/// Gives a reserved address back; false if `address` is not one and belongs to the upstream. Blocks of a NO_DISPATCH capture may
/// be freed long after it.
[[nodiscard]] inline bool give_back_reserved(void* address, std::size_t bytes, std::size_t alignment) noexcept {
  phantom_addresses* const reserved = abi_1::process_registry.phantom.load(std::memory_order_acquire);
  if (reserved == nullptr || !reserved->contains(address)) [[likely]]
    return false;
  reserved->give_back(address, bytes, alignment);
  return true;
}

}  // namespace detail

inline namespace enabled {

/// Whether allocations are real, so that work on them must be done. False during a capture with `run_mode::no_dispatch`, in
/// which touching a block of a `memory_resource` ends the program with a message. One load.
[[nodiscard]] inline bool dispatching() noexcept {
  // Relaxed: the mode changes only in `begin_capture` and `end_capture`, which the program orders with its own work.
  return abi_1::process_registry.no_dispatch.load(std::memory_order_relaxed) == 0;
}

}  // namespace enabled
#else
inline namespace disabled {

[[nodiscard]] constexpr bool dispatching() noexcept { return true; }

}  // namespace disabled
#endif

}  // namespace memprof

// ---- <memprof/detail/errno_guard.hpp>
#include <cerrno>

namespace memprof::detail {

/// Puts errno back at the end of the scope. Allocations are recorded between a failed call and the look at its errno: by
/// destructors, and by signal handlers.
class [[nodiscard]] errno_guard {
 public:
  errno_guard() noexcept : before_(errno) {}
  errno_guard(const errno_guard&) = delete;
  errno_guard& operator=(const errno_guard&) = delete;
  ~errno_guard() { errno = before_; }

 private:
  int before_;
};

}  // namespace memprof::detail

// ---- <memprof/detail/process.hpp>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <sys/syscall.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace memprof::detail {

/// The number of the calling process: another one in a child after `fork`, also before its fork handlers have run.
[[nodiscard]] inline std::int64_t process_id() noexcept { return ::getpid(); }

/// The system's number of the calling thread.
[[nodiscard]] inline std::uint64_t thread_id() noexcept {
#if defined(__linux__)
  return static_cast<std::uint64_t>(::syscall(SYS_gettid));
#else
  return 0;
#endif
}

/// The name of the calling thread, as `pthread_setname_np` sets it; at first that of the program.
class thread_title {
 public:
  thread_title() noexcept {
#if defined(__linux__)
    ::prctl(PR_GET_NAME, text_, 0, 0, 0);
#endif
  }
  [[nodiscard]] std::string_view view() const noexcept { return {text_, std::strlen(text_)}; }

 private:
  char text_[17] = {};
};

}  // namespace memprof::detail

// ---- <memprof/detail/signal_guard.hpp>
#include <csignal>

namespace memprof::detail {

/// Holds back the signals of the calling thread until the end of the scope: their handlers run then. Those that a fault of the
/// thread itself raises are let through.
class [[nodiscard]] signal_guard {
 public:
  signal_guard() noexcept {
    sigset_t held;
    ::sigfillset(&held);
    constexpr int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    for (const int fault : faults) ::sigdelset(&held, fault);
    ::pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  signal_guard(const signal_guard&) = delete;
  signal_guard& operator=(const signal_guard&) = delete;
  ~signal_guard() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace memprof::detail

// ---- <memprof/record/event_order.hpp>
#include <atomic>
#include <cstdint>

#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/// @file
/// The order of events across threads, and who may leave stamps out.
///
/// Promise: the ledger sees every event once, in an order in which each takes effect at one instant between the start and the
/// end of its call. So a peak is the exact peak of an execution that could have happened, and no free overtakes its allocation.
///
/// Recording: an allocation is recorded after the upstream returned, a deallocation before the upstream is called. While an
/// event is being written, nobody else can therefore hold its block's address.
///
/// Stamps: if a call on thread B starts after a call on A returned, B's stamp is greater (`stamp_source`).
///
/// Draining (record/drain.hpp): read the clock into T, then all heads, then apply, merged by stamp, the events with stamp <= T.
/// An event with stamp <= T whose publication was not seen was still in its call at T; applied by the next drain it takes effect
/// after T, which is legal.
///
/// A stamp is most of an event's cost, and a lone thread needs none: its own ring is its order. The *order word* says who is
/// alone. It holds `none`, *epoch and ring id* of the only recording thread, `pending`, or `shared`.
///  - A thread that stamped once under the present word with its own id, and finds the word unchanged, writes 0: the event
///    takes the place after its predecessor in the ring.
///  - A thread that finds another's word (or `pending`) sets `shared`, then stamps. Under `shared` everybody stamps.
///  - The old owner's one event in flight at that moment began before the change, so a place among its earlier events is legal.
///    Any event of the old owner that depends on a stamped one saw `shared` first: the dependence carries the store.
///  - Only a drain gives the word back, when one ring was alone in two drains in a row. A thread that had read `shared` might
///    still be about to take its stamp, later than the new owner's first; if it then hands a block to the owner, the owner's
///    unstamped free would be placed before it. Hence the third value: set `pending`, make every core see it (`membarrier`), look
///    at every other thread's `doing` flag, which is set before the word is read and cleared after the event is published, and
///    only if all are idle exchange `pending` for a new epoch. Who starts later reads `pending` and sets `shared`.

namespace memprof {

/// Points at which a test may hold a thread to force an interleaving.
enum class path_step {
  word_read,
  slot_written,
  published,
  clock_read,
  head_read,
  heads_read,
  run_applied,
  pending_set,
  barrier_passed,
  threads_checked,
  recording_on
};

/// The schedule of production: no step waits for anything.
struct no_pauses {
  static constexpr void reach(path_step) noexcept {}
};

namespace detail {

inline constexpr std::uint64_t order_none = 0;
inline constexpr std::uint64_t order_shared = ~std::uint64_t{0};
inline constexpr std::uint64_t order_pending = ~std::uint64_t{1};
inline constexpr unsigned ring_id_bits = 24;

[[nodiscard]] inline std::uint64_t order_owner(std::uint64_t word) noexcept {
  return word >= order_pending ? 0 : word & ((std::uint64_t{1} << ring_id_bits) - 1);
}

[[nodiscard]] inline std::uint64_t next_order_word(registry& shared, std::uint32_t ring_id) noexcept {
  return ++shared.order_epoch << ring_id_bits | ring_id;
}

/// Asks the system for `membarrier`; without it the word is never given back and every event of a shared phase is stamped.
inline void prepare_order(registry& shared) noexcept {
#if defined(__linux__) && defined(SYS_membarrier)
  shared.can_grant = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
#else
  shared.can_grant = false;
#endif
}

/// After it, every thread of the process sees the stores before it, and its own earlier stores are seen.
inline bool process_barrier() noexcept {
#if defined(__linux__) && defined(SYS_membarrier)
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
#else
  return false;
#endif
}

/// The stamp for an event of a thread that may not leave it out, once the order word says that it stamps.
[[gnu::cold, gnu::noinline]] inline std::uint64_t claim_order(registry& shared, event_ring& ring, std::uint64_t word) noexcept {
  const std::uint32_t own_id = ring.id;
  for (;;) {
    if (word == order_shared) return shared.stamps.next();
    if (order_owner(word) == own_id) {
      ring.order_word = word;
      return shared.stamps.next();
    }
    // The very first owner needs no barrier: nobody has stamped yet. Its epoch, 0, is never given again.
    const std::uint64_t wanted = word == order_none ? std::uint64_t{own_id} : order_shared;
    // Release pairs with the acquire load of the word in `record`, so that who sees `shared` sees what led to it.
    if (shared.order_word.compare_exchange_weak(word, wanted, std::memory_order_acq_rel, std::memory_order_acquire)) {
      if (wanted == order_shared) shared.revocations.fetch_add(1, std::memory_order_relaxed);
      word = wanted;
    }
  }
}

/// Whether the ring's thread may be between reading the registry and publishing its event. Under the lock.
[[nodiscard]] inline bool is_in_flight(event_ring& ring) noexcept {
  // Acquire pairs with the release that clears `doing`: an event that was published before we looked is in its ring, and its
  // stamp is older than any that is taken from now on.
  if (ring.doing.load(std::memory_order_acquire) != activity::recording) return false;
  // A thread may end in a signal handler that interrupted it; what it was about to record never happened.
  return ring.owner.is_held();
}

/// Tries to give the word to the thread of `ring`; called by a drain, under the lock.
template <class Pauses>
void grant_order(registry& shared, const event_ring& ring) noexcept {
  std::uint64_t word = order_shared;
  if (!shared.order_word.compare_exchange_strong(word, order_pending, std::memory_order_acq_rel, std::memory_order_relaxed))
    return;
  Pauses::reach(path_step::pending_set);
  bool is_quiet = process_barrier();
  Pauses::reach(path_step::barrier_passed);
  // Relaxed suffices for the list: rings are added under the lock that we hold.
  for (event_ring* other = shared.rings.load(std::memory_order_relaxed); other != nullptr; other = other->next) {
    if (other != &ring && is_in_flight(*other)) is_quiet = false;
  }
  Pauses::reach(path_step::threads_checked);
  word = order_pending;
  const std::uint64_t wanted = is_quiet ? next_order_word(shared, ring.id) : order_shared;
  if (shared.order_word.compare_exchange_strong(word, wanted, std::memory_order_acq_rel, std::memory_order_relaxed) && is_quiet) {
    ++shared.grants;
  }
}

}  // namespace detail
}  // namespace memprof

// ---- <memprof/record/drain.hpp>
#include <atomic>
#include <cstdint>
#include <utility>

namespace memprof::detail {

/// What decides between the first pending events of two rings: its stamp, or its predecessor's if it has none.
[[nodiscard]] inline std::uint64_t pending_key(const event_ring& ring) noexcept {
  return ring.tail->stamp != 0 ? ring.tail->stamp : ring.last_stamp;
}

/// The end of the events in [first, last) that took place until `until`: those after it were recorded while the drain ran.
[[nodiscard]] inline event* trim_to(event* first, event* last, std::uint64_t until) noexcept {
  // Stamps grow within a ring, and an event without one goes with the last that has one, so only the newest are looked at.
  for (event* position = last; position != first; --position) {
    const std::uint64_t stamp = position[-1].stamp;
    if (stamp == 0) continue;
    if (stamp <= until) return last;
    last = position - 1;
  }
  return last;
}

/// Restores the heap (smallest key on top) after the key at `position` grew.
inline void sift_down(event_ring** heap, std::uint32_t count, std::uint32_t position) noexcept {
  event_ring* const moving = heap[position];
  const std::uint64_t key = pending_key(*moving);
  for (;;) {
    std::uint32_t child = 2 * position + 1;
    if (child >= count) break;
    if (child + 1 < count && pending_key(*heap[child + 1]) < pending_key(*heap[child])) ++child;
    if (pending_key(*heap[child]) >= key) break;
    heap[position] = heap[child];
    position = child;
  }
  heap[position] = moving;
}

/// Gives [tail, last) of a ring to the consumer.
template <class Consumer>
void apply_run(event_ring& ring, event* last, Consumer& consumer) noexcept {
  for (event* position = last; position != ring.tail; --position) {
    if (position[-1].stamp == 0) continue;
    ring.last_stamp = position[-1].stamp;
    break;
  }
  consumer.apply(ring.tail, last, ring.id);
  ring.drained += static_cast<std::uint64_t>(last - ring.tail);
  ring.tail = last;
}

/// The stretch that the top ring may give before another ring's turn comes.
[[nodiscard]] inline event* end_of_run(event_ring** heap, std::uint32_t count) noexcept {
  const event_ring& ring = *heap[0];
  if (count == 1) return ring.drain_limit;
  std::uint64_t until = pending_key(*heap[1]);
  if (count > 2 && pending_key(*heap[2]) < until) until = pending_key(*heap[2]);
  event* position = ring.tail + 1;
  while (position != ring.drain_limit && position->stamp <= until) ++position;  // 0 is below every stamp
  return position;
}

/// Empties all rings into `consumer.apply(first, last, ring_id)`, in the order that record/event_order.hpp promises. Under the
/// lock. Costs one clock reading, a look at every ring, and the merge.
template <class Pauses, class Consumer>
void drain_rings(registry& shared, Consumer& consumer) noexcept {
  ++shared.drains;
  const std::uint64_t until = shared.stamps.next();
#if defined(__x86_64__)
  __builtin_ia32_lfence();  // the heads must not be read before the clock
#endif
  Pauses::reach(path_step::clock_read);
  event_ring** const heap = shared.drain_heap;
  std::uint32_t count = 0;
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    // Acquire pairs with the release that publishes an event in `record`.
    event* const head = ring->slots->published.load(std::memory_order_acquire);
    Pauses::reach(path_step::head_read);
    ring->drain_limit = trim_to(ring->tail, head, until);
    if (ring->drain_limit != ring->tail) heap[count++] = ring;
  }
  Pauses::reach(path_step::heads_read);

  const event_ring* const lone = count == 1 ? heap[0] : nullptr;
  for (std::uint32_t position = count / 2; position-- > 0;) sift_down(heap, count, position);
  while (count != 0) {
    event_ring& ring = *heap[0];
    apply_run(ring, end_of_run(heap, count), consumer);
    Pauses::reach(path_step::run_applied);
    if (ring.tail == ring.drain_limit) heap[0] = heap[--count];
    if (count > 1) sift_down(heap, count, 0);
  }

  if (lone != nullptr && shared.can_grant && shared.lone_ring == lone->id &&
      shared.order_word.load(std::memory_order_relaxed) == order_shared) {
    grant_order<Pauses>(shared, *lone);
  }
  shared.lone_ring = lone != nullptr ? lone->id : 0;
}

/// Makes the heap large enough for one more ring; false if the system has no memory. Under the lock.
[[nodiscard]] inline bool reserve_drain_heap(registry& shared) noexcept {
  if (shared.ring_count < shared.drain_heap_capacity) return true;
  const std::uint32_t capacity = shared.drain_heap_capacity == 0 ? 512 : 2 * shared.drain_heap_capacity;
  void* const pages = map_pages(capacity * sizeof(event_ring*));
  if (pages == nullptr) return false;
  unmap_pages(shared.drain_heap, shared.drain_heap_capacity * sizeof(event_ring*));
  shared.drain_heap = static_cast<event_ring**>(pages);
  shared.drain_heap_capacity = capacity;
  return true;
}

}  // namespace memprof::detail

// ---- <memprof/record/recorder.hpp>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

/// @file
/// The producer's side of the event path. `record` is the hot path: no lock, no allocation, no system call, one 32-byte store
/// and one release store in the calling thread's own ring.

namespace memprof::detail {

/// Hides what this thread does from its own hooks until the end of the scope. Nests.
class [[nodiscard]] activity_guard {
 public:
  explicit activity_guard(activity doing) noexcept : activity_guard(abi_1::this_thread, doing) {}
  activity_guard(thread_slot& self, activity doing) noexcept
      : self_(self), before_(self.doing().load(std::memory_order_relaxed)) {
    self.doing().store(doing, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  activity_guard(const activity_guard&) = delete;
  activity_guard& operator=(const activity_guard&) = delete;
  ~activity_guard() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Release pairs with the acquire load in `is_in_flight`. The thread may have got a ring meanwhile.
    self_.doing().store(before_, std::memory_order_release);
  }

 private:
  thread_slot& self_;
  activity before_;
};

/// What is taken from the global `operator new` until the end of the scope belongs to the profiler, or to a block that is being
/// recorded as a whole: the hooks of `operator new` leave it out. Everything else is recorded.
class [[nodiscard]] recording_suppressor : activity_guard {
 public:
  recording_suppressor() noexcept : activity_guard(activity::nested) {}
};

/// The calling thread works for the profiler in a way that its own hooks may see. Signals wait meanwhile: what their handlers
/// allocate could not be distinguished from what the profiler does.
class [[nodiscard]] internal_guard {
 public:
  internal_guard() noexcept : hidden_(activity::internal) {}

 private:
  signal_guard signals_;  // first, so that waiting handlers run when the thread is outside again
  activity_guard hidden_;
};

/// The calling thread holds the registry's lock and allocates nothing that a hook sees. Events of a signal handler that
/// interrupts it are counted.
class [[nodiscard]] control_guard {
 public:
  control_guard() noexcept : control_guard(abi_1::process_registry) {}
  explicit control_guard(registry& shared) noexcept : hidden_(activity::busy), lock_(shared) {}

 private:
  activity_guard hidden_;
  registry_guard lock_;
};

/// Makes a drained ring ready for events from its first slot on. Under the lock, by its producer.
inline void rewind_ring(event_ring& ring) noexcept {
  ring_slots& slots = *ring.slots;
  const auto count = static_cast<std::uint64_t>(ring.cursor - slots.first);
  ring.tail = ring.cursor = slots.first;
  // Release pairs with the acquire load of a drain, which must not see old events before the new head. Before the number: a
  // reader of the pages of a process that was killed in between takes the ring for empty.
  slots.published.store(slots.first, std::memory_order_release);
  slots.first_number += count;
  // Relaxed: written under the lock, and read by its producer.
  ring.limit.store(slots.first + slots.capacity, std::memory_order_relaxed);
}

/// Slots in pages of their own, or null if the system has none.
[[nodiscard]] inline ring_slots* make_slots(std::uint32_t ring, std::uint32_t capacity) noexcept {
  void* const pages = map_pages(ring_slots::bytes_for(capacity));
  if (pages == nullptr) return nullptr;
  auto* const slots = new (pages) ring_slots{};
  slots->first = reinterpret_cast<event*>(slots + 1);
  slots->published.store(slots->first, std::memory_order_relaxed);
  slots->ring = ring;
  slots->capacity = capacity;
  return slots;
}

/// Slots in the trace file's pages if there is a place for them, else in pages of their own; null if the system has none. Under
/// the lock.
[[nodiscard]] inline ring_slots* place_slots(registry& shared, std::uint32_t ring, std::uint64_t drained) noexcept {
  ring_places* const places = shared.places;
  if (places != nullptr && places->has_place(shared.ring_capacity)) return places->take(ring, drained);
  ring_slots* const slots = make_slots(ring, shared.ring_capacity);
  if (slots == nullptr) return nullptr;
  slots->first_number = drained;
  if (places == nullptr) return slots;
  slots->file_capture = places->capture;
  places->rings_outside->fetch_add(1, std::memory_order_relaxed);
  return slots;
}

/// Whether the ring should get other slots: of another number, or in the active capture's file instead of elsewhere.
[[nodiscard]] inline bool has_old_slots(const registry& shared, const event_ring& ring) noexcept {
  const ring_slots& slots = *ring.slots;
  if (slots.capacity != shared.ring_capacity) return true;
  const ring_places* const places = shared.places;
  if (places == nullptr) return slots.is_in_file != 0;
  return slots.file_capture != places->capture || (!places->holds(&slots) && places->has_place(slots.capacity));
}

/// A ring with pages of its own, or null if the system has none. Under the lock.
[[nodiscard]] inline event_ring* make_ring(registry& shared) noexcept {
  if (!reserve_drain_heap(shared)) return nullptr;
  void* const ring_pages = map_pages(sizeof(event_ring));
  if (ring_pages == nullptr) return nullptr;
  ring_slots* const slots = place_slots(shared, shared.ring_count + 1, 0);
  if (slots == nullptr) {
    unmap_pages(ring_pages, sizeof(event_ring));
    return nullptr;
  }
  event_ring* const ring = new (ring_pages) event_ring;
  ring->slots = slots;
  ring->tail = ring->cursor = slots->first;
  ring->id = ++shared.ring_count;
  ring->next = shared.rings.load(std::memory_order_relaxed);
  shared.ring_bytes += ring->bytes();
  // Release pairs with whoever walks the list: the ring is complete.
  shared.rings.store(ring, std::memory_order_release);
  return ring;
}

/// Exchanges a drained ring's slots for as many, and where, as is asked for now. Keeps the old ones if there is no memory.
inline void replace_slots(registry& shared, event_ring& ring) noexcept {
  ring_slots* const slots = place_slots(shared, ring.id, ring.drained);
  if (slots == nullptr) return;
  shared.ring_bytes -= ring.bytes();
  const bool was_outside = shared.places != nullptr && ring.slots->file_capture == shared.places->capture;
  if (was_outside) shared.places->rings_outside->fetch_sub(1, std::memory_order_relaxed);
  if (ring.slots->capacity != 0) unmap_pages(ring.slots, ring_slots::bytes_for(ring.slots->capacity));
  ring.slots = slots;
  ring.tail = ring.cursor = slots->first;
  shared.ring_bytes += ring.bytes();
}

/// Empties the calling thread's ring, by draining all if `may_drain`. False if it could not be emptied. Under the lock.
inline bool empty_ring(registry& shared, event_ring& ring, bool may_drain) noexcept {
  if (shared.drain == nullptr) {
    ring.tail = ring.cursor;  // recorded while the last capture ended: they belong to none
  } else if (may_drain) {
    // Own events are older than the drain's clock reading, so one drain takes them all; the loop costs nothing and says so.
    while (ring.tail != ring.cursor) shared.drain(shared);
  }
  if (ring.tail != ring.cursor) return false;
  if (has_old_slots(shared, ring)) replace_slots(shared, ring);
  rewind_ring(ring);
  return true;
}

/// A ring whose thread is gone, now the calling thread's; null if there is none. One with room for more events is preferred:
/// short-lived threads then fill it one after the other, and need a drain only when it is full. Under the lock.
[[nodiscard]] inline event_ring* take_over_ring(registry& shared) noexcept {
  event_ring* full = nullptr;
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    if (!ring->owner.take()) continue;
    // Acquire: what its last thread wrote, of which this flag was the last.
    (void)ring->doing.load(std::memory_order_acquire);
    event* const published = ring->slots->published.load(std::memory_order_acquire);
    const bool has_room = ring->slots->first + ring->slots->capacity - published >= 2;
    if (has_room || full != nullptr) {
      if (full != nullptr) full->owner.give_up();
      return ring;
    }
    full = ring;
  }
  return full;
}

/// Gives the thread a ring that no living thread has; false if there is no memory. Under the lock.
[[nodiscard]] inline bool attach_ring(registry& shared, thread_slot& self) noexcept {
  event_ring* ring = take_over_ring(shared);
  if (ring == nullptr) {
    ring = make_ring(shared);
    if (ring == nullptr || !ring->owner.take()) return false;
  }
  // That thread may have been stopped anywhere, even between two of the stores that publish an event.
  ring->cursor = ring->slots->published.load(std::memory_order_relaxed);
  ring->limit.store(nullptr, std::memory_order_relaxed);
  ring->order_word = order_unclaimed;  // a thread new to a ring stamps its first event
  ring->capture = 0;
  ring->thread = ++shared.thread_count;
  for (event_ring::early_end& early : ring->early_ends) early = {};
  ring->doing.store(self.doing_without_ring.load(std::memory_order_relaxed), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  self.ring = ring;
  return true;
}

/// Lets go of the thread's ring before the thread ends; its events stay until they are drained.
inline void detach_ring(registry& shared, thread_slot& self) noexcept {
  if (!self.has_ring()) return;
  const registry_guard guard{shared};
  event_ring& ring = *self.ring;
  self.doing_without_ring.store(ring.doing.load(std::memory_order_relaxed), std::memory_order_relaxed);
  self.ring = &no_ring;
  ring.doing.store(activity::idle, std::memory_order_release);
  ring.owner.give_up();
}

/// What `make_room` did.
enum class room : std::uint8_t { none, made, made_for_new_thread };

/// Makes room for the thread's next event: gives it a ring, or empties that. Under the lock.
[[nodiscard]] inline room make_room(registry& shared, thread_slot& self) noexcept {
  if (registry_guard::is_forking(shared) && shared.forking_process != process_id())
    return room::none;  // the capture is the parent's
  if (!self.has_ring() && !attach_ring(shared, self)) return room::none;
  event_ring& ring = *self.ring;
  const bool is_announced = ring.capture == shared.capture_count;
  if (!is_announced) ring.order_word = order_unclaimed;  // its first event says when it was
  event* const end = ring.slots->first + ring.slots->capacity;
  const bool may_drain = !shared.drop_when_full.load(std::memory_order_relaxed) || !is_announced;
  if ((end - ring.cursor < 2 || has_old_slots(shared, ring)) && !empty_ring(shared, ring, may_drain)) return room::none;
  if (ring.slots->capacity == 0) return room::none;  // a child after `fork`, for which the system has no memory
  // While the thread forks, each of its events comes here: in the child its slots may lie in the parent's file.
  ring.limit.store(registry_guard::is_forking(shared) ? ring.cursor + 1 : ring.slots->first + ring.slots->capacity,
                   std::memory_order_relaxed);
  ring.capture = shared.capture_count;
  return is_announced ? room::made : room::made_for_new_thread;
}

/// The last fields of an event as the word that they are in memory.
[[nodiscard, gnu::always_inline]] inline std::uint64_t rest_of(const event& described) noexcept {
  // By shifts: compilers put fields into a word one after the other, and cannot take the constants out of a loop.
  return described.label | std::uint64_t{static_cast<std::uint8_t>(described.kind)} << 32 | std::uint64_t{described.space} << 40 |
         std::uint64_t{described.tag} << 48;
}
static_assert(std::endian::native == std::endian::little && offsetof(event, label) == 24 && offsetof(event, kind) == 28 &&
              offsetof(event, space) == 29 && offsetof(event, tag) == 30);

/// Writes the event behind the ring's last and publishes it.
template <class Pauses>
[[gnu::always_inline]] inline void publish(event_ring& ring, event* slot, std::uint64_t stamp, std::uint64_t address,
                                           std::uint64_t bytes, std::uint64_t rest) noexcept {
  slot->stamp = stamp;
  slot->address = address;
  slot->bytes = bytes;
  __builtin_memcpy(&slot->label, &rest, sizeof rest);
  Pauses::reach(path_step::slot_written);
  ring.cursor = slot + 1;
  // Release pairs with the acquire load of the head in a drain.
  ring.slots->published.store(slot + 1, std::memory_order_release);
  Pauses::reach(path_step::published);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Release pairs with the acquire load in `is_in_flight`.
  ring.doing.store(activity::idle, std::memory_order_release);
}

/// Goes on with an event that needs a stamp: several threads record, or this one has not yet shown that it is alone.
template <class Pauses>
[[gnu::noinline]] void record_stamped(registry& shared, event_ring& ring, std::uint64_t address, std::uint64_t bytes,
                                      std::uint64_t rest, std::uint64_t word) noexcept {
  const std::uint64_t stamp = word == order_shared ? shared.stamps.next() : claim_order(shared, ring, word);
  publish<Pauses>(ring, ring.cursor, stamp, address, bytes, rest);
}

template <class Pauses>
void record_words(registry& shared, thread_slot& self, std::uint64_t address, std::uint64_t bytes, std::uint64_t rest) noexcept;

/// The first event of a thread in a capture, or one that finds its ring full.
template <class Pauses>
[[gnu::cold, gnu::noinline]] void record_without_room(registry& shared, thread_slot& self, std::uint64_t address,
                                                      std::uint64_t bytes, std::uint64_t rest) noexcept {
  const errno_guard kept;  // locks and pages ask the system
  room found = room::none;
  label thread_name = 0;
  {
    const activity_guard guard{self, activity::busy};
    const bool may_wait = !shared.drop_when_full.load(std::memory_order_relaxed) || !self.has_ring() ||
                          self.ring->limit.load(std::memory_order_relaxed) == nullptr;
    // A thread that asked to drop must not wait, and while the lock is held nobody can say whether its ring was emptied.
    if (may_wait) {
      const registry_guard lock{shared};
      found = make_room(shared, self);
      if (found == room::made_for_new_thread) thread_name = abi_1::intern(shared, thread_title{}.view());
    } else if (registry_guard::is_forking(shared) || shared.lock.try_lock()) {
      const registry_guard lock{shared, adopt_lock{}};
      found = make_room(shared, self);
    }
  }
  if (found == room::none) {
    shared.dropped_events.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (found == room::made_for_new_thread) {
    record_words<Pauses>(shared, self, self.ring->thread, thread_id(),
                         rest_of({0, 0, 0, thread_name, event_kind::thread_begin, any_space, 0}));
  }
  record_words<Pauses>(shared, self, address, bytes, rest);
}

/// Somebody allocates while this thread is inside the profiler: the profiler itself, the upstream of a tracked resource, or a
/// signal handler. Only the last is a loss.
[[gnu::cold, gnu::noinline]] inline void note_reentrant(registry& shared, activity doing) noexcept {
  if (doing == activity::internal || doing == activity::nested) return;
  shared.reentrant_events.fetch_add(1, std::memory_order_relaxed);
}

/// Whether the calling thread is outside the profiler. If not, it may hold the registry's lock already, and who asks is a signal
/// handler that interrupted it: it must not wait for that lock.
[[nodiscard]] inline bool is_outside(thread_slot& self) noexcept {
  const activity doing = self.doing().load(std::memory_order_relaxed);
  return doing == activity::idle || doing == activity::nested;
}

/// An event of a thread that has no ring, or is inside the profiler. A tracked resource below another one speaks for a space of
/// its own.
template <class Pauses>
[[gnu::cold, gnu::noinline]] void record_inside(registry& shared, thread_slot& self, std::uint64_t address, std::uint64_t bytes,
                                                std::uint64_t rest) noexcept {
  const activity doing = self.doing().load(std::memory_order_relaxed);
  if (doing != activity::nested && doing != activity::idle) return note_reentrant(shared, doing);
  const activity_guard outside{self, activity::idle};
  if (!self.has_ring()) return record_without_room<Pauses>(shared, self, address, bytes, rest);
  record_words<Pauses>(shared, self, address, bytes, rest);
}

/// A thread that is alone still stamps one event in so many, so that timelines know when things happened.
inline constexpr std::uintptr_t stamp_interval = 64;

/// Records one event of a thread that is not inside the profiler; its stamp is set here. The arguments stay in registers, and
/// whatever leaves the usual path is a call in tail position, so that this path saves none and has no stack frame.
template <class Pauses>
[[gnu::always_inline]] inline void record_idle(registry& shared, thread_slot& self, std::uint64_t address, std::uint64_t bytes,
                                               std::uint64_t rest) noexcept {
  event_ring& ring = *self.ring;
  // Set before the word is read: `is_in_flight` relies on it. The store may still wait in this core's buffer when the word is
  // read; the asking side's process-wide barrier takes care of that, so that nothing here has to.
  ring.doing.store(activity::recording, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  event* const slot = ring.cursor;
  // Relaxed: the barrier in `start_recording` makes a new limit seen. Below it also if that is null.
  if (slot >= ring.limit.load(std::memory_order_relaxed)) [[unlikely]] {
    ring.doing.store(activity::idle, std::memory_order_relaxed);
    return record_without_room<Pauses>(shared, self, address, bytes, rest);
  }
  // Acquire pairs with the exchange in `claim_order`: an event that depends on another thread's stamped one sees `shared`.
  const std::uint64_t word = shared.order_word.load(std::memory_order_acquire);
  Pauses::reach(path_step::word_read);
  if (word != ring.order_word) [[unlikely]]
    return record_stamped<Pauses>(shared, ring, address, bytes, rest, word);
  if (reinterpret_cast<std::uintptr_t>(slot) % (stamp_interval * sizeof(event)) == 0) [[unlikely]]
    return record_stamped<Pauses>(shared, ring, address, bytes, rest, order_shared);
  publish<Pauses>(ring, slot, 0, address, bytes, rest);
}

/// Records one event; its stamp is set here.
template <class Pauses>
[[gnu::always_inline]] inline void record_words(registry& shared, thread_slot& self, std::uint64_t address, std::uint64_t bytes,
                                                std::uint64_t rest) noexcept {
  if (self.ring->doing.load(std::memory_order_relaxed) != activity::idle) [[unlikely]]
    return record_inside<Pauses>(shared, self, address, bytes, rest);
  record_idle<Pauses>(shared, self, address, bytes, rest);
}

/// Records one event; its stamp is set here. For the process, call `memprof::detail::record_event`.
template <class Pauses>
[[gnu::always_inline]] inline void record(registry& shared, thread_slot& self, const event& described) noexcept {
  record_words<Pauses>(shared, self, described.address, described.bytes, rest_of(described));
}

/// Records one event of the calling thread if a capture is active.
[[gnu::always_inline]] inline void record_event(const event& described) noexcept {
  registry& shared = abi_1::process_registry;
  // Relaxed: whether a call that overlaps `begin_capture` or `end_capture` is part of the capture is open anyway.
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  record<no_pauses>(shared, abi_1::this_thread, described);
}

}  // namespace memprof::detail

// ---- <memprof/record/find_label.hpp>
#include <cstdint>
#include <string_view>

namespace memprof::detail {

/// The id of a name that this thread's cache does not hold. Takes the registry's lock.
[[nodiscard, gnu::cold, gnu::noinline]] inline label find_uncached_label(std::string_view name, std::uint32_t hash) noexcept {
  registry& shared = abi_1::process_registry;
  thread_slot& self = abi_1::this_thread;
  const control_guard control;
  const label id = abi_1::intern(shared, name);
  if (self.has_ring() && id != 0) {
    const std::string_view kept = shared.labels->text(id);
    self.ring->label_cache[hash % event_ring::cached_labels] = {kept.data(), static_cast<std::uint32_t>(kept.size()), id};
  }
  return id;
}

/// The id of a name, through this thread's cache of names. A miss takes the registry's lock.
[[nodiscard]] inline label find_label(std::string_view name) noexcept {
  const thread_slot& self = abi_1::this_thread;
  const std::uint32_t hash = label_table::hash_of(name);
  // Where the thread has no ring yet, nothing is found.
  const event_ring::cached_label& cached = self.ring->label_cache[hash % event_ring::cached_labels];
  if (cached.id != 0 && label_table::is_text(cached.text, cached.size, name)) [[likely]]
    return cached.id;
  return find_uncached_label(name, hash);
}

}  // namespace memprof::detail

// ---- <memprof/detail/error.hpp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace memprof {

/// Wrong use or bad input. `what()` says what was wrong, where, and what to do. Thrown by control calls, never by recording.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

// The two definitions of `raise` stand in differently named inline namespaces: in a program whose translation units are partly
// built with -fno-exceptions, the linker would otherwise keep one of them for all, and a caught error would become an abort.
#if defined(__cpp_exceptions)

inline namespace with_exceptions {

/// Throws `memprof::error`. Out of line, so that the callers' good path stays small.
[[noreturn, gnu::cold, gnu::noinline]] inline void raise(const std::string& text) { throw error(text); }

}  // namespace with_exceptions

#else

inline namespace without_exceptions {

/// Prints the text of what would be a `memprof::error` on stderr and aborts: there is no other way out under -fno-exceptions.
[[noreturn, gnu::cold, gnu::noinline]] inline void raise(const std::string& text) {
  std::fprintf(stderr, "memprof: %s\n", text.c_str());
  std::abort();
}

}  // namespace without_exceptions

#endif

}  // namespace detail
}  // namespace memprof

// ---- <memprof/trace/space_id.hpp>
#include <cstdint>

namespace memprof {

/// A memory space by its number, which is that of one process or one trace: see `memory_space`, `trace_writer::space`.
struct space_id {
  std::uint8_t value = 0;

  bool operator==(const space_id&) const = default;
};

}  // namespace memprof

// ---- <memprof/record/memory_space.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof {

namespace detail {

/// Makes a space of that name in that memory. Under the registry's lock.
[[nodiscard]] inline std::uint8_t add_space(registry& shared, label name, label memory) noexcept {
  shared.space_names[shared.space_count] = name;
  shared.space_memories[shared.space_count] = memory;
  const auto id = static_cast<std::uint8_t>(shared.space_count++);
  if (shared.define_space != nullptr) shared.define_space(shared, id);
  return id;
}

/// The id of the memory space of that name, a new one if there is none; `any_space` if there are too many or the system has no
/// memory. The last id is that of the others. `memory` counts if the space is new. Under the registry's lock.
[[nodiscard]] inline std::uint8_t id_of_space(registry& shared, std::string_view name, std::string_view memory = {}) noexcept {
  const label wanted = abi_1::intern(shared, name);
  for (std::uint32_t id = 0; id < shared.space_count; ++id) {
    if (shared.space_names[id] == wanted) return static_cast<std::uint8_t>(id);
  }
  if (wanted == 0 || wanted == other_names || shared.space_count >= registry::max_spaces - 1) return any_space;
  if (memory.empty() || memory == name) return add_space(shared, wanted, 0);
  if (memory == host_memory_name) return add_space(shared, wanted, host_memory);
  const label named = abi_1::intern(shared, memory);
  return add_space(shared, wanted, named == other_names ? 0 : named);
}

/// The id of the space that stands for all others; `any_space` if the system had no memory for the first name of all. Likewise.
[[nodiscard]] inline std::uint8_t id_of_other_spaces(registry& shared) noexcept {
  constexpr std::uint8_t last = registry::max_spaces - 1;
  if (shared.space_count == 0) return any_space;
  if (shared.space_names[last] == other_names) return last;
  shared.space_names[last] = other_names;
  if (shared.define_space != nullptr) shared.define_space(shared, last);
  return last;
}

[[noreturn, gnu::cold]] inline void raise_too_many_spaces(std::string_view name) {
  raise("memory_space: cannot add '" + std::string{name} + "': a process has at most " +
        std::to_string(registry::max_spaces - 1) + " named memory spaces; give blocks of the same kind the same space");
}

}  // namespace detail

/// A named kind of memory whose blocks are counted together: `cpu`, `cuda:0`, `dram`. A name is one space in the whole process.
class memory_space {
 public:
  /// The space of that name; from the 255th different name on one that stands for all others. Takes a lock: make it once, not for
  /// each event.
  ///
  /// `memory` names the memory in which it lies together with other spaces: profiles tell their joint peak. Empty, or the name of
  /// the space: it has a memory to itself. `host_memory_name` is that of `cpu`. It counts where the space is new in the process.
  explicit memory_space(std::string_view name, std::string_view memory = {}) noexcept {
    const detail::control_guard control;
    id_ = detail::id_of_space(abi_1::process_registry, name, memory);
    if (id_ == any_space) id_ = detail::id_of_other_spaces(abi_1::process_registry);
  }

  [[nodiscard]] std::uint8_t id() const noexcept { return id_; }
  operator space_id() const noexcept { return {id_}; }  // implicit: it is what writers of events take
  bool operator==(const memory_space&) const = default;

 private:
  std::uint8_t id_ = 0;
};

}  // namespace memprof

// ---- <memprof/trace/open_operation.hpp>
#include <cstdint>

namespace memprof {

/// An operation that was begun and not ended: what its end needs, perhaps on another thread.
struct open_operation {
  std::uint32_t number = 0;  ///< counts the operations of its thread, from 1; 0: none was begun
  std::uint32_t thread = 0;  ///< number of that thread; 0 if it could not record
  std::uint32_t outer = 0;   ///< number of the operation around it
  label name = 0;
  label outer_name = 0;  ///< the name that backends see around it
};

}  // namespace memprof

// ---- <memprof/record/operation_events.hpp>
#include <cstdint>

namespace memprof::detail {

/// Records that an operation begins on this thread, whose innermost it becomes. Outside the profiler, while a capture is active.
[[gnu::always_inline]] inline void begin_operation(open_operation& begun, thread_slot& self, label name,
                                                   std::uint16_t tag) noexcept {
  begun.number = ++self.last_scope;
  begun.outer = self.innermost_scope;
  begun.name = name;
  begun.outer_name = self.innermost_name;
  self.innermost_scope = begun.number;
  record<no_pauses>(abi_1::process_registry, self,
                    {0, scope_address(begun.number, begun.outer), 0, name, event_kind::scope_begin, any_space, tag});
  begun.thread = self.ring->thread;
}

/// Notes that an operation ended on its own thread while one within it is still open. The oldest of many is forgotten: that
/// thread's innermost may then be one that has ended, which costs nobody but the names that backends ask for.
[[gnu::cold, gnu::noinline]] inline void note_early_end(event_ring& ring, const open_operation& ended) noexcept {
  ring.early_ends[ended.number % event_ring::max_early_ends] = {ended.number, ended.outer, ended.outer_name};
}

/// Makes the operation around `ended` the thread's innermost, or the next one outward that has not ended.
inline void leave_innermost(thread_slot& self, const open_operation& ended) noexcept {
  self.innermost_scope = ended.outer;
  self.innermost_name = ended.outer_name;
  while (self.innermost_scope != 0) {
    event_ring::early_end& early = self.ring->early_ends[self.innermost_scope % event_ring::max_early_ends];
    if (early.number != self.innermost_scope) [[likely]]
      return;
    self.innermost_scope = early.outer;
    self.innermost_name = early.outer_name;
    early = {};
  }
}

/// Ends it, on whatever thread.
[[gnu::always_inline]] inline void end_operation(const open_operation& ended, bool is_recorded) noexcept {
  thread_slot& self = abi_1::this_thread;
  std::uint64_t address = ended.number;
  if (self.ring->thread != ended.thread) [[unlikely]] {
    address = scope_address(ended.number, ended.thread);
  } else if (self.innermost_scope == ended.number) [[likely]] {
    leave_innermost(self, ended);
  } else if (self.has_ring()) {
    note_early_end(*self.ring, ended);
  }
  if (is_recorded) {
    record<no_pauses>(abi_1::process_registry, self, {0, address, 0, ended.name, event_kind::scope_end, any_space, 0});
  }
}

}  // namespace memprof::detail

// ---- <memprof/record/segment_end.hpp>
#include <cstdint>
#include <string_view>

namespace memprof::detail {

/// Records the end of a segment of capture `number`, or of whichever is active for 0, or a checkpoint. False if that is not
/// active.
///
/// An event like any other, in the calling thread's ring: its stamp gives it its place among those of all threads, and it needs
/// no lock. Only where full rings drop events it goes another way, since this one must not be dropped.
inline bool record_moment(std::uint32_t number, event_kind kind, std::string_view name) noexcept {
  registry& shared = abi_1::process_registry;
  thread_slot& self = abi_1::this_thread;
  const std::uint32_t active = shared.active_capture.load(std::memory_order_relaxed);
  if (active == 0 || (number != 0 && active != number)) return false;
  if (!is_outside(self)) {
    note_reentrant(shared, activity::busy);
    return true;
  }
  event moment{0, 0, 0, find_label(name), kind, any_space, 0};
  if (!shared.drop_when_full.load(std::memory_order_relaxed)) {
    if (self.has_ring()) self.ring->order_word = order_unclaimed;  // so that it gets a stamp
    record<no_pauses>(shared, self, moment);
    return true;
  }
  const control_guard control{shared};
  if (shared.drain == nullptr) return false;
  shared.drain(shared);
  moment.stamp = shared.stamps.next();
  shared.put_event(shared, moment);
  return true;
}

inline bool record_segment_end(std::uint32_t number, std::string_view name) noexcept {
  return record_moment(number, event_kind::segment_end, name);
}

}  // namespace memprof::detail

// ---- <memprof/record/stream_and_pool.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace memprof {

/// A stream of a device and the pool from which an allocator serves it: blocks carry one so that the profile says which
/// stream and which pool held how much (`space_profile::streams`). By default it is none.
class stream_and_pool {
 public:
  constexpr stream_and_pool() = default;
  /// The stream and the pool of these names, of which some 60 characters each are kept. Takes a lock, and nothing from
  /// `operator new`: make it once for each stream and pool, not for each event. It is none if the system has no memory.
  explicit stream_and_pool(std::string_view stream, std::string_view pool = {}) noexcept {
    constexpr std::size_t longest = 62;
    std::array<char, 2 * longest + 1> text{};
    char* end = std::copy_n(stream.data(), std::min(stream.size(), longest), text.data());
    *end++ = name_separator;
    end = std::copy_n(pool.data(), std::min(pool.size(), longest), end);
    const detail::control_guard control;
    name_ = abi_1::intern(abi_1::process_registry, {text.data(), static_cast<std::size_t>(end - text.data())});
  }

  /// Both names as one; 0 for none.
  [[nodiscard]] constexpr label name() const noexcept { return name_; }
  bool operator==(const stream_and_pool&) const = default;

 private:
  label name_ = 0;
};

}  // namespace memprof

// ---- <memprof/trace/category.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof {

/// What a block holds, in the words of the field.
enum class category : std::uint8_t {
  other,
  parameter,
  gradient,
  optimizer_state,
  activation,
  temporary,
  input,
  kv_cache,
};

/// The names of `category`, in the order of its values.
inline constexpr std::array<std::string_view, 8> category_names{"other",      "parameter", "gradient", "optimizer_state",
                                                                "activation", "temporary", "input",    "kv_cache"};

/// The name of a category as reports and files spell it.
[[nodiscard]] constexpr std::string_view to_string(category value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < category_names.size() ? category_names[index] : category_names[0];
}

/// A category or none: as much of `std::optional<category>` as is needed, for a tenth of what that costs every unit to compile.
class optional_category {
 public:
  constexpr optional_category() noexcept = default;
  /// Implicit, so that a category can be passed where one may be left out.
  constexpr optional_category(category kind) noexcept : tag_(static_cast<std::uint16_t>(static_cast<unsigned>(kind) + 1U)) {}

  [[nodiscard]] constexpr bool has_value() const noexcept { return tag_ != 0; }
  [[nodiscard]] constexpr category value_or(category fallback) const noexcept {
    return tag_ == 0 ? fallback : static_cast<category>(tag_ - 1U);
  }
  /// As events carry it: 0, or the category's value plus one.
  [[nodiscard]] constexpr std::uint16_t tag() const noexcept { return tag_; }

  bool operator==(const optional_category&) const = default;

 private:
  std::uint16_t tag_ = 0;
};

/// The category of that name, or none.
[[nodiscard]] constexpr optional_category category_from_string(std::string_view name) noexcept {
  for (std::size_t index = 0; index < category_names.size(); ++index) {
    if (category_names[index] == name) return static_cast<category>(index);
  }
  return {};
}

}  // namespace memprof

// ---- <memprof/trace/requires_grad.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof {

/// Whether autograd computes a gradient for a tensor (PyTorch's `requires_grad`); `unknown` where nobody said.
enum class requires_grad : std::uint8_t { unknown, no, yes };

/// The names of `requires_grad`, in the order of its values.
inline constexpr std::array<std::string_view, 3> requires_grad_names{"unknown", "false", "true"};

/// The name of a value as reports and files spell it.
[[nodiscard]] constexpr std::string_view to_string(requires_grad value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < requires_grad_names.size() ? requires_grad_names[index] : requires_grad_names[0];
}

/// The value of that name; `unknown` for any other text.
[[nodiscard]] constexpr requires_grad requires_grad_from_string(std::string_view name) noexcept {
  if (name == to_string(requires_grad::no)) return requires_grad::no;
  return name == to_string(requires_grad::yes) ? requires_grad::yes : requires_grad::unknown;
}

}  // namespace memprof

// ---- <memprof/trace/annotation.hpp>
#include <algorithm>
#include <cstddef>
#include <string_view>

namespace memprof {

/// What a block is, for reports. Every field may be left out.
struct annotation {
  std::string_view name{};   ///< "transformer.h.0.attn.c_attn.weight"
  std::string_view shape{};  ///< "[768, 2304]"
  std::string_view dtype{};  ///< "float32"
  optional_category category{};
  memprof::requires_grad requires_grad = memprof::requires_grad::unknown;
};

namespace detail {

/// The text of an annotation as names of a trace have it: name, shape and dtype with `name_separator` between, and requires_grad
/// behind, if that is known. Takes nothing from `operator new`.
class annotation_text {
 public:
  /// Whether there is nothing to say but perhaps a category.
  [[nodiscard]] static bool is_empty(const annotation& source) noexcept {
    return source.name.empty() && source.shape.empty() && source.dtype.empty() && !is_graded(source);
  }

  explicit annotation_text(const annotation& source) noexcept {
    const std::size_t longest = source.name.size() + source.shape.size() + source.dtype.size() + 64;
    if (longest > sizeof near_ && far_.resize(longest)) text_ = far_.data();
    append(source.name);
    append({&name_separator, 1});
    append(source.shape);
    append({&name_separator, 1});
    append(source.dtype);
    if (!is_graded(source)) return;
    append({&name_separator, 1});
    append(to_string(source.requires_grad));
  }
  annotation_text(const annotation_text&) = delete;
  annotation_text& operator=(const annotation_text&) = delete;

  [[nodiscard]] std::string_view view() const noexcept { return {text_, size_}; }

 private:
  [[nodiscard]] static bool is_graded(const annotation& source) noexcept {
    return source.requires_grad != requires_grad::unknown;
  }

  /// Cuts what does not fit: the system had no pages for it.
  void append(std::string_view part) noexcept {
    const std::size_t room = (far_.empty() ? sizeof near_ : far_.size()) - size_;
    const std::size_t count = std::min(part.size(), room);
    std::copy_n(part.data(), count, text_ + size_);
    size_ += count;
  }

  char near_[512];
  page_array<char> far_;
  char* text_ = near_;
  std::size_t size_ = 0;
};

}  // namespace detail
}  // namespace memprof

// ---- <memprof/trace/block_address.hpp>
#include <cstdint>

namespace memprof {

/// Where a block begins: in this process, in another one, or in the memory of a device.
struct block_address {
  std::uint64_t value;

  constexpr block_address(std::uint64_t address) noexcept : value(address) {}                        // implicit
  block_address(const void* address) noexcept : value(reinterpret_cast<std::uintptr_t>(address)) {}  // implicit
  bool operator==(const block_address&) const = default;
};

}  // namespace memprof

// ---- <memprof/trace/core_range.hpp>
#include <cstdint>

/// @file
/// Words for memory that every core of a device has of its own.

namespace memprof {

/// What a block on the cores of a device is for. Circular buffers pass data between the kernels of one program and go with it.
enum class buffer_kind : std::uint8_t { buffer, circular_buffer };

/// A rectangle of a device's cores; both corners belong to it.
struct core_range {
  std::uint8_t x0;
  std::uint8_t y0;
  std::uint8_t x1;  ///< at least `x0`
  std::uint8_t y1;  ///< at least `y0`

  [[nodiscard]] constexpr bool is_valid() const noexcept { return x0 <= x1 && y0 <= y1; }
  /// How many cores it has, from 1 to 65,536.
  [[nodiscard]] constexpr std::uint32_t count() const noexcept { return (x1 - x0 + 1U) * (y1 - y0 + 1U); }
  [[nodiscard]] constexpr bool overlaps(const core_range& other) const noexcept {
    return x0 <= other.x1 && other.x0 <= x1 && y0 <= other.y1 && other.y0 <= y1;
  }

  /// As an event carries it in `label`.
  [[nodiscard]] constexpr std::uint32_t packed() const noexcept {
    return std::uint32_t{x0} | std::uint32_t{y0} << 8 | std::uint32_t{x1} << 16 | std::uint32_t{y1} << 24;
  }
  /// The inverse of `packed`; not valid if an event said so.
  [[nodiscard]] static constexpr core_range unpacked(std::uint32_t word) noexcept {
    return {static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> 8), static_cast<std::uint8_t>(word >> 16),
            static_cast<std::uint8_t>(word >> 24)};
  }

  bool operator==(const core_range&) const = default;
};

/// All cores that any device can have: for frees, where it means "wherever they are".
inline constexpr core_range any_core{0, 0, 255, 255};

/// The address that identifies a block on cores: the upper 16 bits also hold, inverted, the first core.
///
/// Each core has its own memory, so that blocks on disjoint cores share addresses, and programs that split their work do just
/// that. Inverted, because then it is no address of an ordinary block: one that is freed by the wrong function is counted as
/// unmatched instead of being missing on the whole device and live on its cores. Its own inverse.
[[nodiscard]] constexpr std::uint64_t address_on_cores(std::uint64_t address, const core_range& cores) noexcept {
  const std::uint64_t first_core = std::uint64_t{cores.x0} | std::uint64_t{cores.y0} << 8;
  return address ^ (~first_core << 48);
}

}  // namespace memprof

// ---- <memprof/trace/fact_table.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

/// @file
/// What a source knows that is not memory over time: rows of named tables. They are typed where they are made and where they are
/// read, and opaque in between.

namespace memprof {

/// One value of a row.
using fact_value = std::variant<std::int64_t, double, std::string>;

struct fact_table {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::vector<fact_value>> rows;  ///< each has a value for each column

  bool operator==(const fact_table&) const = default;
};

/// What a table may have, so that a row fits into a chunk of a trace.
inline constexpr std::size_t max_fact_columns = 32;
inline constexpr std::size_t max_fact_tables = 1024;  ///< of a trace: others are left out
inline constexpr std::size_t max_fact_text = 4096;    ///< bytes of a text, and of the table's name
inline constexpr std::size_t max_fact_column_name = 256;

/// The table with what is too long cut, and each row with as many values as there are columns: those that it lacks are 0.
[[nodiscard]] inline fact_table fitted(fact_table table) {
  const auto cut = [](std::string& text, std::size_t size) {
    if (text.size() > size) text.resize(size);
  };
  cut(table.name, max_fact_text);
  if (table.columns.size() > max_fact_columns) table.columns.resize(max_fact_columns);
  for (std::string& column : table.columns) cut(column, max_fact_column_name);
  if (table.columns.empty()) table.rows.clear();
  for (std::vector<fact_value>& row : table.rows) {
    row.resize(table.columns.size());
    for (fact_value& value : row) {
      if (auto* const text = std::get_if<std::string>(&value)) cut(*text, max_fact_text);
    }
  }
  return table;
}

/// A struct that is a row of a table: `table` is its name, and `columns(row, visit)` calls `visit(name, field)` for each field,
/// all of which are integers, `double` or `std::string`.
///
/// @code
/// struct loaded_library {
///   std::string path;
///   std::int64_t bytes = 0;
///
///   static constexpr std::string_view table = "loaded_libraries";
///   template <class Row, class Visitor>
///   static void columns(Row& row, Visitor&& visit) {
///     visit("path", row.path);
///     visit("bytes", row.bytes);
///   }
/// };
/// @endcode
template <class T>
concept fact = std::is_convertible_v<decltype(T::table), std::string_view> && requires(T& row) {
  T::columns(row, [](std::string_view, auto&) {});
};

namespace detail {

/// The alternative of `fact_value` that holds a field of that type.
template <class Field>
using fact_alternative = std::conditional_t<std::is_same_v<Field, std::string>, std::string,
                                            std::conditional_t<std::is_floating_point_v<Field>, double, std::int64_t>>;

}  // namespace detail

/// The rows as a table.
template <fact T>
[[nodiscard]] fact_table to_table(const std::vector<T>& rows) {
  fact_table table;
  table.name = T::table;
  T model{};
  T::columns(model, [&](std::string_view name, const auto&) { table.columns.emplace_back(name); });
  for (const T& row : rows) {
    std::vector<fact_value>& values = table.rows.emplace_back();
    T::columns(row, [&]<class Field>(std::string_view, const Field& field) {
      values.emplace_back(static_cast<detail::fact_alternative<Field>>(field));
    });
  }
  return table;
}

/// The rows of `T`'s table among `tables`; none if it is not there. Columns are found by name, and one that is missing or of
/// another type leaves its field as it is by default.
template <fact T>
[[nodiscard]] std::vector<T> rows_of(const std::vector<fact_table>& tables) {
  std::vector<T> rows;
  for (const fact_table& table : tables) {
    if (table.name != T::table) continue;
    for (const std::vector<fact_value>& values : table.rows) {
      T::columns(rows.emplace_back(), [&]<class Field>(std::string_view name, Field& field) {
        for (std::size_t column = 0; column < table.columns.size() && column < values.size(); ++column) {
          if (table.columns[column] != name) continue;
          if (const auto* value = std::get_if<detail::fact_alternative<Field>>(&values[column]))
            field = static_cast<Field>(*value);
        }
      });
    }
  }
  return rows;
}

}  // namespace memprof

// ---- <memprof/trace/event_writer.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof {

/// To whom sources report what happens to memory: `event_sink` records it in this process, `trace_writer` puts it into a trace. A
/// source written against this concept serves live captures, files and tests.
///
/// The order of calls is the contract that makes peaks exact: report an allocation after it happened, a deallocation before.
template <class T>
concept event_writer = requires(T writer, space_id space, block_address address, std::size_t bytes, optional_category category,
                                const annotation& description, typename T::open_operation_type& open, fact_table facts,
                                std::string_view name) {
  { writer.space(name) } -> std::convertible_to<space_id>;
  writer.allocate(space, address, bytes, category);
  writer.deallocate(space, address, bytes);
  writer.annotate(address, description);
  { writer.begin_operation(name, category) } -> std::same_as<typename T::open_operation_type>;
  writer.end_operation(open);
  writer.end_segment(name);
  writer.add_facts(facts);
};

}  // namespace memprof

// ---- <memprof/record/event_sink.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof {

namespace detail {

[[gnu::always_inline]] inline void record_allocation(std::uint8_t space, const void* address, std::size_t bytes,
                                                     std::uint16_t tag = 0) noexcept {
  record_event({0, reinterpret_cast<std::uintptr_t>(address), bytes, 0, event_kind::allocate, space, tag});
}

[[gnu::always_inline]] inline void record_deallocation(std::uint8_t space, const void* address, std::size_t bytes) noexcept {
  record_event({0, reinterpret_cast<std::uintptr_t>(address), bytes, 0, event_kind::deallocate, space, 0});
}

/// Whether a capture is active and the calling thread outside the profiler. A signal handler that interrupts it must not wait for
/// the lock that the thread may hold; what it asks for is counted instead.
[[nodiscard]] inline bool may_control() noexcept {
  registry& shared = abi_1::process_registry;
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) return false;
  thread_slot& self = abi_1::this_thread;
  if (is_outside(self)) return true;
  note_reentrant(shared, self.doing().load(std::memory_order_relaxed));
  return false;
}

}  // namespace detail

/// The writer of events of this process: where backends report to. Every call may be made from any thread and records nothing
/// while no capture is active.
///
/// A call is safe in a signal handler, except as the first of its thread. A handler that interrupts the recording of another
/// event, or a short control call (`snapshot`, `annotate`, the making of a space), is counted in the profile (`reentrant_events`)
/// and not recorded; longer ones (`begin_capture`, the making of a profile) hold signals back until they are done. No call
/// changes errno.
///
/// The order of calls is the contract that makes peaks exact: report an allocation after it happened, a deallocation before. An
/// allocation at a null address has failed, and is only counted.
class event_sink {
 public:
  using open_operation_type = open_operation;

  /// The space of that name. Takes a lock: ask once, not for each event.
  [[nodiscard]] memory_space space(std::string_view name, std::string_view memory = {}) const noexcept {
    return memory_space{name, memory};
  }

  /// `space` is the kind of memory, made once: `const memprof::memory_space dram{"dram"}`. Cost: that of one event. `contents`
  /// overrides the category of the operation that is open on this thread.
  void allocate(space_id space, block_address address, std::size_t bytes, optional_category contents = {}) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::allocate, space.value, contents.tag()});
  }
  /// `bytes`, if given, is compared with what was allocated.
  void deallocate(space_id space, block_address address, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::deallocate, space.value, 0});
  }

  /// An allocator that keeps freed memory for later (PyTorch's caching allocator) took a range of addresses from the device: the
  /// profile tells it as reserved, beside what the program allocated of it. Cost: that of one event; accounting for it costs a
  /// step for each range that is held. `stream`: for which stream and pool.
  void reserve(space_id space, block_address address, std::size_t bytes, stream_and_pool stream = {}) const noexcept {
    detail::record_event({0, address.value, bytes, stream.name(), event_kind::reserve, space.value, 0});
  }
  /// The allocator gave a range back, which may be part of those it took, or several; 0: the one that began at `address`.
  void release(space_id space, block_address address, std::size_t bytes = 0, stream_and_pool stream = {}) const noexcept {
    detail::record_event({0, address.value, bytes, stream.name(), event_kind::release, space.value, 0});
  }

  /// An allocation for a stream, from a pool; else as `allocate`. The profile sums up the blocks of each in
  /// `space_profile::streams`.
  void allocate_on_stream(space_id space, block_address address, std::size_t bytes, stream_and_pool where,
                          optional_category contents = {}) const noexcept {
    detail::record_event({0, address.value, bytes, where.name(), event_kind::allocate_on_stream, space.value, contents.tag()});
  }
  /// The end of such a block, with the same stream and pool.
  void deallocate_on_stream(space_id space, block_address address, stream_and_pool where, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, where.name(), event_kind::deallocate_on_stream, space.value, 0});
  }
  /// The same of a block that streams may still use, as PyTorch's caching allocator frees it: it is not live any more, but stays
  /// active until `complete_deallocation` (`space_profile::active`).
  void request_deallocation(space_id space, block_address address, stream_and_pool where, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, where.name(), event_kind::deallocate_on_stream, space.value, 1});
  }
  /// No stream uses the block any more, whose deallocation was requested.
  void complete_deallocation(space_id space, block_address address, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::complete_deallocation, space.value, 0});
  }

  /// The end of every live block that begins in [address, address + bytes): a part of an arena is reset at once. It is not
  /// unusual that there is none. Cost: that of one event; accounting for it costs a pass over the live blocks of the space.
  /// Blocks on streams count as live in the rows of their streams, and as active, until they are deallocated one
  /// by one.
  void deallocate_range(space_id space, block_address address, std::size_t bytes) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::deallocate_range, space.value, 0});
  }
  /// The same of every live block of the space.
  void deallocate_all(space_id space) const noexcept {
    detail::record_event({0, 0, 0, 0, event_kind::deallocate_range, space.value, 1});
  }

  /// An allocation of `bytes` failed because the device had no memory for it, of which `device_free` bytes were left. The profile
  /// keeps the first 32 with the operation that asked (`space_profile::out_of_memory`).
  void out_of_memory(space_id space, std::size_t bytes, std::size_t device_free) const noexcept {
    detail::record_event({0, device_free, bytes, 0, event_kind::out_of_memory, space.value, 0});
  }

  /// A block of `bytes_per_core` on each of `cores`, in memory that every core has of its own (L1). The profile tells what lay on
  /// the busiest core (`space_profile::cores`); in the other numbers of the space the block has its bytes on all cores together.
  ///
  /// Blocks at one address are the same block if their first core (x0, y0) is the same, else they lie beside each other. So a set
  /// of several rectangles is recorded as a block for each, at the same address. A buffer whose allocator reserves the address on
  /// every core is recorded on all cores of the device. Cores of different devices belong to different spaces. To `annotate` the
  /// block, use its `address_on_cores`.
  ///
  /// Cost: that of one event; accounting for it costs a step for each core. Rectangles with exchanged corners are counted in
  /// `event_anomalies::rejected_events`, for the calls below too.
  void allocate_on_cores(space_id space, block_address address, std::size_t bytes_per_core, core_range cores,
                         buffer_kind kind = buffer_kind::buffer, optional_category contents = {}) const noexcept {
    const auto tag = static_cast<std::uint16_t>(contents.tag() | static_cast<unsigned>(kind) << 8);
    detail::record_event({0, address_on_cores(address.value, cores), bytes_per_core, cores.packed(),
                          event_kind::allocate_on_cores, space.value, tag});
  }
  /// The end of a block, with the same `cores`. `bytes_per_core`, if given, is compared with what was allocated.
  void deallocate_on_cores(space_id space, block_address address, core_range cores,
                           std::size_t bytes_per_core = 0) const noexcept {
    detail::record_event({0, address_on_cores(address.value, cores), bytes_per_core, cores.packed(),
                          event_kind::deallocate_on_cores, space.value, 0});
  }
  /// The end of every circular buffer that lies on any of `cores`, on its other cores too: where a program can start, the one
  /// before has ended as a whole. It is not unusual that there is none. Accounting for it costs a pass over the circular buffers.
  void deallocate_circular_buffers(space_id space, core_range cores = any_core) const noexcept {
    detail::record_event({0, 0, 0, cores.packed(), event_kind::deallocate_circular_buffers, space.value, 0});
  }

  /// Says what the live block at `address` is, in whatever memory space it lives: as the free function `annotate`.
  void annotate(block_address address, const annotation& description) const noexcept {
    if (!detail::may_control()) return;
    label text = 0;
    if (!detail::annotation_text::is_empty(description)) {
      const detail::control_guard control;
      text = abi_1::intern(abi_1::process_registry, detail::annotation_text{description}.view());
    }
    detail::record_event({0, address.value, 0, text, event_kind::annotate, any_space, description.category.tag()});
  }

  /// An operation begins on this thread, which `end_operation` ends, on whatever thread. `track_operation` is easier to use
  /// right.
  [[nodiscard]] open_operation begin_operation(std::string_view name, optional_category category = {}) const noexcept {
    open_operation begun;
    if (detail::may_control()) detail::begin_operation(begun, abi_1::this_thread, detail::find_label(name), category.tag());
    return begun;
  }
  void end_operation(const open_operation& ended) const noexcept {
    if (ended.number == 0) return;
    detail::end_operation(ended, abi_1::process_registry.active_capture.load(std::memory_order_relaxed) != 0);
  }

  // --- for sources that follow the calls of another library -------------------------------------------------------

  /// The number of the active capture, from 1; 0: none. Cost: one load.
  [[nodiscard]] std::uint32_t capture() const noexcept {
    // Relaxed: whether a call that overlaps a capture's begin or end is part of it is open anyway.
    return abi_1::process_registry.active_capture.load(std::memory_order_relaxed);
  }
  /// Whether operations of this thread may be recorded: not where a signal handler has interrupted the profiler, nor in what
  /// the profiler does itself.
  [[nodiscard]] bool is_thread_recordable() const noexcept { return detail::is_outside(abi_1::this_thread); }

  /// The id of a name, for the calls below. Through a cache of this thread; a miss takes a lock. 0 if the system has no memory.
  [[nodiscard]] label label_of(std::string_view name) const noexcept { return detail::find_label(name); }
  /// The text of such an id, which stays where it is. Takes a lock.
  [[nodiscard]] std::string_view text_of(label id) const noexcept {
    const detail::control_guard control;
    const label_table* const labels = abi_1::process_registry.labels;
    return labels == nullptr ? std::string_view{} : labels->text(id);
  }

  /// The same as `annotate`, of a text that is known: name, shape, dtype and `requires_grad` with `name_separator` between; 0:
  /// only the category is given. Cost: that of one event.
  void annotate(block_address address, optional_category contents, label text) const noexcept {
    detail::record_event({0, address.value, 0, text, event_kind::annotate, any_space, contents.tag()});
  }

  /// The same as `begin_operation`, where `capture()` is not 0 and `is_thread_recordable()`. Cost: that of one event.
  [[nodiscard]] open_operation begin_operation(label name, optional_category category) const noexcept {
    open_operation begun;
    detail::begin_operation(begun, abi_1::this_thread, name, category.tag());
    return begun;
  }
  /// Ends an operation that was begun in that capture: if it outlives the capture, it ends none of the next.
  void end_operation(const open_operation& ended, std::uint32_t begun_in) const noexcept {
    detail::end_operation(ended, capture() == begun_in);
  }

  /// The name of the innermost operation that the program itself has open on this thread; 0: none.
  [[nodiscard]] label innermost_name() const noexcept { return abi_1::this_thread.innermost_name; }
  /// The operation that was begun last on this thread is one that the program itself named.
  void set_innermost_name(label name) const noexcept { abi_1::this_thread.innermost_name = name; }

  /// Something happened that the source cannot tell as an event: the profile is not exact.
  void count_dropped_event() const noexcept { abi_1::process_registry.dropped_events.fetch_add(1, std::memory_order_relaxed); }

  // --- the capture ------------------------------------------------------------------------------------------------

  /// Ends the current segment, as `snapshot` does.
  void end_segment(std::string_view name) const noexcept { (void)detail::record_segment_end(0, name); }

  /// Adds rows to what the capture knows beside events, in place of those of the table's name that it had. Columns beyond 32 and
  /// text beyond 4,096 bytes are cut (`fitted`). Takes a lock.
  void add_facts(const fact_table& facts) const {
    if (!detail::may_control()) return;
    const detail::internal_guard hidden;
    registry& shared = abi_1::process_registry;
    const detail::registry_guard lock{shared};
    if (shared.add_facts != nullptr) shared.add_facts(shared, facts);
  }
};
static_assert(event_writer<event_sink>);

struct capture_options;

/// A source of events that a capture switches on and off: `attach` when it begins, with the capture's options, `detach` when it
/// ends. In between, and once more after `detach`, `report_facts` is asked for what the source knows beside events: it gives
/// whole tables to the writer's `add_facts`, or does nothing. No two calls of these are made at once, and none under the
/// profiler's lock. The object lives as long as the capture's profile can be read. A source that simulates says so with a `static
/// constexpr run_mode mode`: it becomes that of the profile.
template <class T>
concept backend = std::default_initializable<T> && requires(T source, event_sink& writer, const capture_options& options) {
  { T::name } -> std::convertible_to<std::string_view>;
  source.attach(writer, options);
  { source.detach(writer) }
  noexcept;
  source.report_facts(writer);
};

}  // namespace memprof

// ---- <memprof/backend/memory_resource.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#if __has_include(<memory_resource>)
#include <memory_resource>
#endif

#if MEMPROF_ENABLED
#endif

namespace memprof {

#if !__has_include(<memory_resource>)

namespace detail {
template <class...>
inline constexpr bool has_polymorphic_memory_resources = false;
}

/// Stands where the standard library has no polymorphic memory resources, and only says so if it is used.
class memory_resource {
 public:
  template <class... Arguments>
  explicit memory_resource(Arguments&&...) {
    static_assert(
        detail::has_polymorphic_memory_resources<Arguments...>,
        "memprof::memory_resource needs <memory_resource>, which libc++ has since version 16: use a newer one, libstdc++, "
        "or memprof::allocator");
  }
};

#elif MEMPROF_ENABLED
inline namespace enabled {

/// A `std::pmr::memory_resource` that records what passes through it and takes the memory from another.
///
/// During a capture with `run_mode::no_dispatch` it records and hands out reserved addresses: see `dispatching`.
///
/// Thread-safe if the upstream is. Bytes are those asked for, not what the upstream rounds them to. An allocation that the
/// upstream refuses is not recorded.
class memory_resource : public std::pmr::memory_resource {
 public:
  /// `upstream` must outlive the resource. `memory` is in which memory the space lies (`memory_space`); where it is empty, that
  /// is the host's, but for names as "cuda:0", which are a device's.
  explicit memory_resource(std::string_view space = "cpu", std::pmr::memory_resource* upstream = std::pmr::new_delete_resource(),
                           std::string_view memory = {})
      : space_(space, !memory.empty() || detail::is_device_name(space) ? memory : host_memory_name), upstream_(upstream) {}

  [[nodiscard]] std::pmr::memory_resource* upstream_resource() const noexcept { return upstream_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* const address = dispatching() ? allocate_upstream(bytes, alignment) : reserve(bytes, alignment);
    detail::record_allocation(space_.id(), address, bytes);
    return address;
  }

  void do_deallocate(void* address, std::size_t bytes, std::size_t alignment) override {
    detail::record_deallocation(space_.id(), address, bytes);
    if (detail::give_back_reserved(address, bytes, alignment)) return;
    const detail::recording_suppressor nested;
    upstream_->deallocate(address, bytes, alignment);
  }

  // Identity, which needs no run-time types: two resources may count in different spaces.
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  [[nodiscard]] void* allocate_upstream(std::size_t bytes, std::size_t alignment) {
    const detail::recording_suppressor nested;
    return upstream_->allocate(bytes, alignment);
  }

  [[nodiscard, gnu::cold, gnu::noinline]] void* reserve(std::size_t bytes, std::size_t alignment) const {
    void* const address = detail::take_reserved(bytes, alignment);
    if (address == nullptr) {
      detail::raise("memory_resource: no reserved addresses are left for " + std::to_string(bytes) +
                    " bytes; a NO_DISPATCH capture can have up to 64 TiB live, or what the limit on address space allows");
    }
    return address;
  }

  memory_space space_;
  std::pmr::memory_resource* upstream_;
};

}  // namespace enabled

#else
inline namespace disabled {

/// Passes everything on to its upstream.
class memory_resource : public std::pmr::memory_resource {
 public:
  explicit memory_resource(std::string_view = "cpu", std::pmr::memory_resource* upstream = std::pmr::new_delete_resource(),
                           std::string_view = {})
      : upstream_(upstream) {}

  [[nodiscard]] std::pmr::memory_resource* upstream_resource() const noexcept { return upstream_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override { return upstream_->allocate(bytes, alignment); }
  void do_deallocate(void* address, std::size_t bytes, std::size_t alignment) override {
    upstream_->deallocate(address, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  std::pmr::memory_resource* upstream_;
};

}  // namespace disabled
#endif

}  // namespace memprof

// ---- <memprof/backend/cpu.hpp>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

#if MEMPROF_ENABLED
#endif

namespace memprof {

namespace detail {

/// The global `operator new` and `operator delete` for any alignment.
struct plain_heap {
  [[nodiscard]] static void* allocate(std::size_t bytes, std::size_t alignment) {
    return alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__ ? ::operator new (bytes, std::align_val_t{alignment})
                                                        : ::operator new(bytes);
  }
  static void deallocate(void* address, std::size_t, std::size_t alignment) noexcept {
    if (alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
      ::operator delete (address, std::align_val_t{alignment});
    } else {
      ::operator delete(address);
    }
  }
};

#if MEMPROF_ENABLED
/// The same, recorded in the space `cpu`.
struct tracked_heap {
  [[nodiscard]] static void* allocate(std::size_t bytes, std::size_t alignment) {
    void* const address = allocate_hidden(bytes, alignment);
    record_allocation(cpu_space, address, bytes);
    return address;
  }
  static void deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    record_deallocation(cpu_space, address, bytes);
    const recording_suppressor nested;
    plain_heap::deallocate(address, bytes, alignment);
  }

 private:
  [[nodiscard]] static void* allocate_hidden(std::size_t bytes, std::size_t alignment) {
    const recording_suppressor nested;
    return plain_heap::allocate(bytes, alignment);
  }
};
#endif

/// A stateless standard allocator over a heap.
template <class T, class Heap>
class heap_allocator {
 public:
  using value_type = T;

  heap_allocator() noexcept = default;
  template <class Other>
  heap_allocator(const heap_allocator<Other, Heap>&) noexcept {}  // implicit, as the allocator requirements ask

  /// Throws `std::bad_array_new_length` if `count` objects have no size, `std::bad_alloc` if there is no memory.
  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) refuse_length();
    return static_cast<T*>(Heap::allocate(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* address, std::size_t count) noexcept { Heap::deallocate(address, count * sizeof(T), alignof(T)); }

  template <class Other>
  bool operator==(const heap_allocator<Other, Heap>&) const noexcept {
    return true;
  }

 private:
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse_length() {
#if defined(__cpp_exceptions)
    throw std::bad_array_new_length{};
#else
    std::abort();
#endif
  }
};

}  // namespace detail

/// A standard allocator whose blocks are recorded in the space `cpu`: `std::vector<float, memprof::allocator<float>>`. Takes
/// its memory from the global `operator new`; all of them are equal.
#if MEMPROF_ENABLED
template <class T>
using allocator = detail::heap_allocator<T, detail::tracked_heap>;
#else
template <class T>
using allocator = detail::heap_allocator<T, detail::plain_heap>;
#endif

}  // namespace memprof

// ---- <memprof/trace/run_mode.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof {

/// Whether the program really allocates (`normal`) or only records what it would allocate (`no_dispatch`).
enum class run_mode : std::uint8_t { normal, no_dispatch };

/// The names of `run_mode`, in the order of its values.
inline constexpr std::array<std::string_view, 2> run_mode_names{"normal", "no_dispatch"};

/// The name of a run mode as reports and files spell it.
[[nodiscard]] constexpr std::string_view to_string(run_mode value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < run_mode_names.size() ? run_mode_names[index] : run_mode_names[0];
}

}  // namespace memprof

// ---- <memprof/trace/capture_info.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof {

/// The process that was captured. What is not known is -1 or empty.
struct process_info {
  std::int64_t id = -1;
  std::string host;
  std::string command_line;      ///< its arguments, with spaces between
  std::int64_t rank = -1;        ///< among the processes of a launcher, from 0
  std::int64_t world_size = -1;  ///< how many those are
  std::int64_t local_rank = -1;  ///< among those on this host

  bool operator==(const process_info&) const = default;
};

/// The name of the segment that ends with the capture, unless another is given.
inline constexpr std::string_view end_segment_name = "END_TRACE";

/// The greatest `capture_info::largest_blocks`.
inline constexpr std::uint32_t max_largest_blocks = 4096;

/// What a trace says of itself: where and when it was made, and how much detail its profile has.
struct capture_info {
  std::string library_version;
  run_mode mode = run_mode::normal;
  std::string device;              ///< name of the device whose capacities limit spaces; empty: none was described
  std::int64_t begin_unix_ns = 0;  ///< wall clock at the capture's begin
  std::uint64_t begin_stamp = 0;
  std::uint32_t timeline_points = 4096;  ///< these as in `capture_options`
  std::uint32_t largest_blocks = 10;
  std::uint32_t owners_per_segment = 32;
  std::uint32_t kept_segments = 64;
  std::uint32_t segment_names = 64;
  std::uint32_t operations = 4096;
  process_info process;

  bool operator==(const capture_info&) const = default;
};

}  // namespace memprof

// ---- <memprof/profile/profile.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What a capture found out, as plain structs with integer bytes. Everything after the ledger (reports, files, analyses) is a
/// function of a `profile`. All byte counts are signed 64-bit; all times are nanoseconds since the capture began.
///
/// A struct's fields appear in JSON under the same names and in the same order (`profile/reflect.hpp`).

namespace memprof {

/// Bytes and blocks that belong to one owner: an operation's path (`append_operation`), empty for what was allocated outside
/// every operation, or a category's name.
struct owned_bytes {
  std::string owner;
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;

  bool operator==(const owned_bytes&) const = default;
};

/// One block that was live at a peak. `name`, `shape`, `dtype` and `requires_grad` are those of `annotate`, empty and unknown if
/// it was never called.
struct live_block {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::string operation;
  memprof::category category = category::other;
  std::string name;
  std::string shape;
  std::string dtype;
  memprof::requires_grad requires_grad = memprof::requires_grad::unknown;

  bool operator==(const live_block&) const = default;
};

/// What was live in one memory space at one moment. The rows of `by_operation`, with `remaining_*`, sum to `bytes`; so do
/// those of `by_category`. Rows are sorted by bytes, greatest first.
struct live_set {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::vector<owned_bytes> by_operation;
  std::int64_t remaining_bytes = 0;       ///< of operations beyond `capture_options::owners_per_segment`
  std::int64_t remaining_operations = 0;  ///< how many operations those are
  std::vector<owned_bytes> by_category;
  std::vector<live_block> largest_blocks;  ///< at most `capture_options::largest_blocks`

  bool operator==(const live_set&) const = default;
};

/// The stretch between two snapshots: a phase of training.
struct segment {
  std::string name;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t number = -1;  ///< among all segments of the capture, from 0; -1: not known
  std::int64_t step = -1;    ///< in which round of the repeating names it was, from 0; -1: not known

  bool operator==(const segment&) const = default;
};

/// One number over several segments, in the order of time. Their mean is `sum / count`, with the count of those segments.
struct value_summary {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t least = 0;
  std::int64_t greatest = 0;
  std::int64_t sum = 0;                ///< at most 2^63-1
  std::int64_t least_segment = -1;     ///< `segment::number` of the first with `least`
  std::int64_t greatest_segment = -1;  ///< the same of `greatest`

  bool operator==(const value_summary&) const = default;
};

/// The straight line that fits a number best over the steps, by least squares.
struct growth_line {
  double per_step = 0;  ///< its slope: bytes a step; 0 if all segments were in one step
  /// How much of the variation the line explains, 0 to 1; 1 if there is none. It means little below three segments.
  double r_squared = 0;

  bool operator==(const growth_line&) const = default;
};

/// All segments of one name, whether they are kept in full or not.
struct named_segments {
  std::string name;
  bool stands_for_others = false;  ///< the row of all names beyond `capture_options::segment_names`
  std::int64_t count = 0;
  std::int64_t kept = 0;  ///< how many of them `profile::segments` has
  std::int64_t first_number = -1;
  std::int64_t last_number = -1;
  value_summary duration_ns;

  bool operator==(const named_segments&) const = default;
};

/// All segments of one name in one memory space. The numbers are those of `segment_usage`; their sums over all names are the
/// space's totals.
struct named_segments_usage {
  std::string segment;  ///< the name
  value_summary segment_peak;
  value_summary live_at_peak;  ///< bytes live at the segment's peak, those of earlier segments included
  value_summary allocations;
  value_summary deallocations;
  value_summary segment_change;
  value_summary cumulative_current;
  value_summary allocation_count;
  value_summary deallocation_count;
  growth_line growth;  ///< of `cumulative_current`: how a leak shows

  bool operator==(const named_segments_usage&) const = default;
};

/// One memory space within one segment.
struct segment_usage {
  std::string segment;
  std::int64_t segment_peak = 0;        ///< greatest (live - live at the segment's start), at least 0
  std::int64_t allocations = 0;         ///< bytes allocated
  std::int64_t deallocations = 0;       ///< bytes freed
  std::int64_t segment_change = 0;      ///< allocations - deallocations
  std::int64_t cumulative_peak = 0;     ///< greatest live bytes from the capture's begin to this segment's end
  std::int64_t cumulative_current = 0;  ///< live bytes at this segment's end
  std::int64_t allocation_count = 0;
  std::int64_t deallocation_count = 0;
  std::int64_t peak_time_ns = 0;  ///< when `segment_peak` was first reached
  std::string peak_operation;     ///< path of the operation that reached it, empty if none was open
  live_set live_at_peak;

  bool operator==(const segment_usage&) const = default;
};

/// A stretch of a timeline: `peak` is the greatest and `current` the last value of live bytes within it.
struct timeline_point {
  std::int64_t time_ns = 0;  ///< when the stretch began
  std::int64_t peak = 0;
  std::int64_t current = 0;

  bool operator==(const timeline_point&) const = default;
};

/// Live bytes over time. Every point covers the same number of events (the last one perhaps fewer), so no maximum is lost.
struct memory_timeline {
  std::int64_t events_per_point = 1;
  std::vector<timeline_point> points;

  bool operator==(const memory_timeline&) const = default;
};

/// How often something happened and how many bytes it concerned.
struct event_tally {
  std::int64_t count = 0;
  std::int64_t bytes = 0;

  bool operator==(const event_tally&) const = default;
};

/// The first allocation that made a space's live bytes exceed its capacity, all as it was known at that moment: categories and
/// names that `annotate` gives later are not in it. The run went on, so peaks are those without a limit.
///
/// If the capacity is that of each core, it is the first block that made those of one of its cores exceed it, and all bytes are
/// those on that core.
struct capacity_shortfall {
  std::int64_t requested = 0;  ///< bytes that were asked for; 0: the capacity was never exceeded
  /// Column and row, as in "3-1", of the fullest of the block's cores, of equal ones the first; empty if the capacity is not that
  /// of a core.
  std::string core;
  std::string operation;  ///< path of the operation that asked, empty if none was open
  memprof::category category = category::other;
  std::int64_t segment = -1;  ///< index into `profile::segments` of the one in which it was
  std::int64_t time_ns = 0;
  std::int64_t free = 0;       ///< bytes: the capacity less what was live
  std::int64_t shortfall = 0;  ///< bytes that were missing: requested - free
  bool holders_known = true;   ///< false: the profiler had no memory for owners and blocks of `held`, nor for `remedy`
  live_set held;               ///< who held the rest: what was live without what was asked for, with all its operations
  /// The least to free so that it would have fitted: the smallest owner that alone held `shortfall` bytes, or else the fewest
  /// owners that together did, largest first. Empty if all together did not, as more was asked for than the capacity.
  std::vector<owned_bytes> remedy;

  bool operator==(const capacity_shortfall&) const = default;
};

/// What in a space's events was unusual. None of it is fatal.
struct space_anomalies {
  event_tally unmatched_frees;        ///< of blocks allocated before the capture or never seen; bytes as given, if given
  event_tally replaced_allocations;   ///< a second allocation at a live address: the older block counts as deallocated
  event_tally mismatched_sizes;       ///< frees with another size than was allocated; bytes: sum of the differences
  event_tally cross_thread_frees;     ///< frees by another thread than allocated; usual in pipelines
  event_tally unknown_annotations;    ///< `annotate` of an address that was not live
  event_tally untracked_allocations;  ///< could not be kept because the profiler itself got no memory
  event_tally null_allocations;       ///< at a null address: they have failed and count for nothing else
  /// Blocks, live at the end, that begin within another live one; bytes: what they share. A pool's slab and its pieces, for
  /// example, when both were recorded in one space: then that memory is counted twice.
  event_tally overlapping_blocks;

  bool operator==(const space_anomalies&) const = default;
};

/// The greatest bytes on one core, of those with memory of their own. The three need not be of one core or one moment, so `total`
/// is at most the sum of the others.
struct core_peaks {
  std::int64_t circular_buffers = 0;
  std::int64_t buffers = 0;
  std::int64_t total = 0;    ///< peak of the sum of both on a core
  std::string busiest_core;  ///< column and row of the first core with that `total`, as in "3-4"; empty if it is 0

  bool operator==(const core_peaks&) const = default;
};

/// One of the rectangles of cores on which blocks were, and the peaks on its cores: of all blocks, whatever their rectangle.
struct core_range_peaks {
  std::string range;  ///< first and last core, as in "[0-0 - 7-7]"
  core_peaks peaks;

  bool operator==(const core_range_peaks&) const = default;
};

/// Peaks on cores over all segments of one name.
struct named_core_peaks {
  std::string segment;
  value_summary circular_buffers;
  value_summary buffers;
  value_summary total;

  bool operator==(const named_core_peaks&) const = default;
};

/// What lay on single cores. All empty for a space without blocks on cores (`event_sink::allocate_on_cores`); in the
/// other numbers of the space such a block counts with its bytes on all its cores together.
struct core_profile {
  core_peaks peaks;                                ///< over the whole capture
  std::vector<core_peaks> segments;                ///< one for each of `profile::segments`; blocks of earlier segments count too
  std::vector<core_range_peaks> ranges;            ///< over the whole capture, the greatest total first
  std::vector<named_core_peaks> segments_by_name;  ///< one for each of `profile::segments_by_name`

  bool operator==(const core_profile&) const = default;
};

/// What an allocator held of the device within one segment: at most, and at its end.
struct reserved_usage {
  std::int64_t peak = 0;
  std::int64_t current = 0;

  bool operator==(const reserved_usage&) const = default;
};

/// The same over all segments of one name.
struct named_reserved_usage {
  std::string segment;
  value_summary peak;
  value_summary current;

  bool operator==(const named_reserved_usage&) const = default;
};

/// What an allocator that keeps freed memory for later held of the device, in bytes since the capture began; what the program
/// allocated of it is in the other numbers of the space. All 0 and empty without such an allocator (`event_sink::reserve`).
struct reserved_profile {
  std::int64_t peak = 0;
  std::int64_t current = 0;                            ///< at the end
  std::vector<reserved_usage> segments;                ///< one for each of `profile::segments`
  std::vector<named_reserved_usage> segments_by_name;  ///< one for each of `profile::segments_by_name`
  event_tally unmatched_releases;                      ///< of ranges, or parts of them, taken before the capture or never seen
  event_tally replaced_reservations;  ///< of addresses that were held already: the older range counts as given back

  bool operator==(const reserved_profile&) const = default;
};

/// What streams used of a space within one segment: at most, and at its end.
struct active_usage {
  std::int64_t peak = 0;
  std::int64_t current = 0;

  bool operator==(const active_usage&) const = default;
};

/// The same over all segments of one name.
struct named_active_usage {
  std::string segment;
  value_summary peak;
  value_summary current;

  bool operator==(const named_active_usage&) const = default;
};

/// The bytes of blocks allocated on streams, until no stream uses them any more: live ones, and freed ones that work on a
/// stream may still use (`event_sink::request_deallocation`). PyTorch's `active_bytes`, in bytes that were asked for. All 0 and
/// empty if no block was allocated on a stream.
struct active_profile {
  std::int64_t peak = 0;
  std::int64_t current = 0;                          ///< at the end
  std::vector<active_usage> segments;                ///< one for each of `profile::segments`
  std::vector<named_active_usage> segments_by_name;  ///< one for each of `profile::segments_by_name`
  event_tally unmatched_completions;  ///< of blocks freed before the capture or never seen; bytes as given, if given
  event_tally missing_completions;    ///< of freed blocks whose address came again: they count as done by then

  bool operator==(const active_profile&) const = default;
};

/// What one stream of a device had of a space, from one pool of its allocator; bytes.
struct stream_usage {
  std::string stream;  ///< as the source names it; for CUDA "default", or the address of the `cudaStream_t`: "0x55d0c0a1b2c0"
  /// Empty: the allocator's own; "unknown": libtorch does not tell, as 2.6; else a private one, as that of a CUDA graph:
  /// "0:1".
  std::string pool;
  std::int64_t cumulative_peak = 0;     ///< greatest live bytes
  std::int64_t cumulative_current = 0;  ///< live bytes at the end
  std::int64_t allocation_count = 0;
  std::int64_t reserved_peak = 0;     ///< greatest bytes that the allocator held of the device
  std::int64_t reserved_current = 0;  ///< those at the end
  /// The last row may be that of all streams and pools beyond the first 64: `stream` is then "other streams".
  bool stands_for_others = false;

  bool operator==(const stream_usage&) const = default;
};

/// An allocation that failed because the device had no memory for it, all as it was known at that moment.
struct out_of_memory_failure {
  std::int64_t requested = 0;       ///< bytes, rounded up if the allocator rounds
  std::int64_t device_free = 0;     ///< bytes free on the device, as the allocator reported
  std::int64_t live_bytes = 0;      ///< of the space, since the capture began
  std::int64_t reserved_bytes = 0;  ///< that the allocator held of the device; live ones are part of them
  std::string operation;            ///< path of the operation that asked, empty if none was open
  std::int64_t segment = -1;        ///< index into `profile::segments` of the one in which it was; -1: it is not kept
  std::int64_t time_ns = 0;
  std::int64_t segment_number = -1;  ///< `segment::number` of that one

  bool operator==(const out_of_memory_failure&) const = default;
};

/// One memory space (`cpu`, `cuda:0`, `dram`, ...) over the whole capture.
struct space_profile {
  std::string name;
  std::int64_t cumulative_peak = 0;     ///< greatest live bytes of the capture, relative to its begin
  std::int64_t cumulative_current = 0;  ///< live bytes at the end
  std::int64_t allocations = 0;         ///< bytes allocated
  std::int64_t deallocations = 0;       ///< bytes freed
  std::int64_t allocation_count = 0;
  std::int64_t deallocation_count = 0;
  std::int64_t peak_segment = -1;  ///< index into `segments` of the one that holds the overall peak; -1 if there is none
  std::int64_t peak_time_ns = 0;
  std::string peak_operation;
  live_set live_at_peak;
  std::int64_t capacity = 0;          ///< bytes, of `capture_options::device`; 0: no limit
  bool capacity_is_per_core = false;  ///< that of each core: only blocks on cores are compared with it
  capacity_shortfall first_shortfall;
  std::vector<segment_usage> segments;                 ///< one for each of `profile::segments`, in the same order
  std::vector<named_segments_usage> segments_by_name;  ///< one for each of `profile::segments_by_name`, in the same order
  memory_timeline timeline;
  space_anomalies anomalies;
  core_profile cores;                 ///< what lay on single cores, if the space is that of cores
  reserved_profile reserved;          ///< what its allocator held of the device, if that keeps freed memory for later
  active_profile active;              ///< what streams use of it, freed blocks among it, if blocks were allocated on streams
  std::vector<stream_usage> streams;  ///< most reserved first; empty without streams
  std::vector<out_of_memory_failure> out_of_memory;  ///< the first 32 for which the device had no memory
  event_tally further_out_of_memory;                 ///< those after them
  bool stands_for_others = false;                    ///< the space of all that were asked for when there were too many

  bool operator==(const space_profile&) const = default;
};

/// A memory in which several spaces lie, as the host's: together they held at most `cumulative_peak` bytes at one moment, which
/// is not the sum of their peaks. Relative to the capture's begin, as in `space_profile`.
struct memory_profile {
  std::string name;
  std::int64_t cumulative_peak = 0;
  std::int64_t cumulative_current = 0;  ///< live bytes at the end
  std::int64_t peak_segment = -1;       ///< index into `profile::segments` of the one with the peak; -1: there is none
  std::int64_t peak_time_ns = 0;
  std::string peak_space;           ///< whose allocation reached the peak
  std::string peak_operation;       ///< path of the operation that reached it, empty if none was open
  std::vector<owned_bytes> spaces;  ///< what each space had live at the peak, greatest first: all that lie in the memory
  live_set live_at_peak;            ///< of all of them together

  bool operator==(const memory_profile&) const = default;
};

/// One run of an operation, as it was in one memory space. Delta and peak are inclusive, as in `operation_usage`.
struct operation_invocation {
  std::int64_t thread = -1;  ///< number of the thread; -1: there was no such run
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t delta = 0;
  std::int64_t peak = 0;

  bool operator==(const operation_invocation&) const = default;
};

/// What one operation did in one memory space. Inclusive values contain the operations within; self values do not, so a
/// table of self values sums to the total. Deltas and peaks count what the operation's own thread allocated and freed while
/// it was open.
struct operation_usage {
  std::string space;
  std::int64_t total_delta = 0;  ///< inclusive: allocated - freed, over all invocations
  std::int64_t self_delta = 0;
  std::int64_t max_delta = 0;  ///< inclusive: greatest delta of one finished invocation
  std::int64_t allocated = 0;  ///< inclusive, bytes
  std::int64_t freed = 0;      ///< inclusive, bytes, whoever had allocated them
  std::int64_t self_allocated = 0;
  std::int64_t self_freed = 0;
  std::int64_t allocation_count = 0;    ///< self
  std::int64_t deallocation_count = 0;  ///< self
  std::int64_t peak = 0;                ///< inclusive: greatest rise above the bytes at entry, in any invocation
  std::int64_t self_peak = 0;           ///< the same without the operations within
  std::int64_t live = 0;                ///< bytes allocated by this operation itself and live at the end
  /// Of the finished invocations whose delta and peak are not both 0: the first and the last to end, and the one with the
  /// greatest peak, of equal ones the first. A trace has all of them.
  operation_invocation first_invocation;
  operation_invocation last_invocation;
  operation_invocation largest_invocation;

  bool operator==(const operation_usage&) const = default;
};

/// One node of the operation tree. `path` joins the names from the outermost operation, as `append_operation` does.
struct operation_profile {
  std::string path;
  std::string name;
  std::int64_t parent = -1;  ///< index into `profile::operations`, -1 for an outermost operation
  std::int64_t invocations = 0;
  std::vector<operation_usage> usage;  ///< one for each space in which it did anything
  bool stands_for_others = false;      ///< of the operations within `parent` beyond `capture_options::operations`

  bool operator==(const operation_profile&) const = default;
};

/// One memory space at a checkpoint.
struct checkpoint_usage {
  std::string space;
  std::int64_t live_bytes = 0;
  std::int64_t live_blocks = 0;
  std::vector<live_block> largest_blocks;  ///< at most `capture_options::largest_blocks`, greatest first, described as known then

  bool operator==(const checkpoint_usage&) const = default;
};

/// What was live at one moment: `memory_checkpoint` asked for it, or the interval of a session was over.
struct checkpoint {
  std::string name;          ///< as `memory_checkpoint` said; empty: a periodic one
  std::int64_t number = 0;   ///< among all checkpoints of the capture, from 0
  std::int64_t time_ns = 0;  ///< since the capture began
  std::int64_t live_bytes = 0;
  std::int64_t live_blocks = 0;
  std::vector<checkpoint_usage> spaces;  ///< those that had had an event; their bytes and blocks sum to those above

  bool operator==(const checkpoint&) const = default;
};

/// What the profiler itself cost.
struct profiler_cost {
  std::int64_t events = 0;                          ///< recorded and applied
  std::int64_t drains = 0;                          ///< how often rings were emptied into the ledger
  std::int64_t memory_bytes = 0;                    ///< its own memory now: rings, ledger, names
  std::int64_t memory_bytes_at_million_events = 0;  ///< the same when a million events had been applied; 0: there were fewer
  double record_ns_per_event = 0;                   ///< measured when the capture began
  double drain_ns_per_event = 0;                    ///< measured over the capture

  bool operator==(const profiler_cost&) const = default;
};

/// What went wrong on the way from the program to the ledger.
struct event_anomalies {
  std::int64_t dropped_events = 0;     ///< by `overflow::drop`
  std::int64_t reentrant_events = 0;   ///< from a signal handler that interrupted the recording of another event
  std::int64_t rejected_events = 0;    ///< impossible values (kind, space, size of 2^63 or more), or no memory to keep them
  std::int64_t unbalanced_scopes = 0;  ///< operations whose begin or end is missing
  std::int64_t missing_events = 0;     ///< that the trace lacks, from which the profile was made
  std::int64_t too_deep_scopes = 0;    ///< operations within 256 others, whose events count as those of the 256th
  /// What was folded because there were too many different ones, as where a name has the number of the step in it. Sums and peaks
  /// are exact nevertheless.
  std::int64_t other_segments = 0;    ///< segments whose name is beyond `capture_options::segment_names`
  std::int64_t other_operations = 0;  ///< invocations of operations beyond `capture_options::operations`
  std::int64_t other_names = 0;       ///< uses of names that the process has no room for: beyond 65,536, or 8 MiB of text

  bool operator==(const event_anomalies&) const = default;
};

/// Where a profile's numbers come from, and what they cannot tell. As it is by default: events, from which every number follows
/// to the byte. A reader of a format that has only totals fills a profile in part, and says so here.
struct provenance {
  std::string format;         ///< what the numbers were read from, as "tracker_log"; empty: from events
  std::string file;           ///< its name; empty: none was named
  std::int64_t line = 0;      ///< of the file, counted from 1, where the numbers begin; 0: the file is not one of lines
  std::string section;        ///< what the file calls them; empty: nothing
  std::int64_t rounding = 1;  ///< bytes are rounded to multiples of about so many
  /// Names of fields that the source does not tell, of whatever struct: they are as by default.
  std::vector<std::string> absent;
  std::vector<std::string> remarks;  ///< what was missing or does not agree in the source, one sentence each

  /// Whether the source does not tell that field.
  [[nodiscard]] bool lacks(std::string_view field) const noexcept;

  bool operator==(const provenance&) const = default;
};

/// Everything a capture found out.
struct profile {
  std::string library_version;
  run_mode mode = run_mode::normal;
  std::string device;  ///< the name of `capture_options::device`; empty: none was described
  /// False if events were dropped, reentrant or untracked. Totals may then be too small, and live bytes too large as well: the
  /// frees of live blocks may be among the missing.
  bool exact = true;
  bool complete = false;           ///< whether the capture has ended
  std::int64_t begin_unix_ns = 0;  ///< wall clock at the capture's begin
  process_info process;
  std::int64_t duration_ns = 0;
  /// Those that are kept in full, in the order of time: all while there are few (`capture_options::kept_segments`), and then the
  /// newest, the first of each name, and those that hold an extreme.
  std::vector<segment> segments;
  std::vector<named_segments> segments_by_name;  ///< all segments, one row for each name, in the order of its first
  std::int64_t segment_count = 0;                ///< how many segments there were
  std::int64_t step_count = 0;                   ///< how many rounds of repeating names there were
  std::vector<space_profile> spaces;
  std::vector<memory_profile> memories;       ///< those in which more than one of the spaces lie
  std::vector<operation_profile> operations;  ///< parents before children
  /// In the order of time, at most 128: all while they are few, then every second, fourth, ... of them, and always the newest,
  /// the first of each name (of 32), and those with the most and the fewest live bytes.
  std::vector<checkpoint> checkpoints;
  std::int64_t checkpoint_count = 0;  ///< how many there were
  std::vector<fact_table> facts;      ///< what sources know that is not memory over time (`rows_of`)
  event_anomalies anomalies;
  profiler_cost cost;
  memprof::provenance provenance;  ///< which file the numbers are from, what is absent and how they were rounded

  /// The space of that name. Throws `memprof::error`, naming the spaces there are, if there is none. Of a profile that goes away
  /// at once, as `capture.profile().space("cpu")`, it is a copy.
  [[nodiscard]] const space_profile& space(std::string_view name) const&;
  [[nodiscard]] space_profile space(std::string_view name) && { return space(name); }
  /// The space of that name, or a null pointer. Keep the profile as long as the pointer.
  [[nodiscard]] const space_profile* find_space(std::string_view name) const& noexcept;
  const space_profile* find_space(std::string_view name) && = delete;
  /// The operation of that path, or a null pointer; likewise.
  [[nodiscard]] const operation_profile* find_operation(std::string_view path) const& noexcept;
  const operation_profile* find_operation(std::string_view path) && = delete;

  bool operator==(const profile&) const = default;
};

inline bool provenance::lacks(std::string_view field) const noexcept {
  for (const std::string& name : absent) {
    if (std::string_view{name} == field) return true;
  }
  return false;
}

inline const space_profile* profile::find_space(std::string_view name) const& noexcept {
  for (const space_profile& candidate : spaces) {
    if (std::string_view{candidate.name} == name) return &candidate;
  }
  return nullptr;
}

inline const space_profile& profile::space(std::string_view name) const& {
  if (const space_profile* const found = find_space(name)) return *found;
  std::string text = "the profile has no memory space '" + std::string{name} + "'; it has";
  if (spaces.empty()) text += " none: no allocation was recorded";
  for (const space_profile& present : spaces) text += (&present == spaces.data() ? " '" : ", '") + present.name + "'";
  detail::raise(text);
}

inline const operation_profile* profile::find_operation(std::string_view path) const& noexcept {
  for (const operation_profile& candidate : operations) {
    if (std::string_view{candidate.path} == path) return &candidate;
  }
  return nullptr;
}

}  // namespace memprof

// ---- <memprof/record/annotate.hpp>
#if MEMPROF_ENABLED
#endif

namespace memprof {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Says what the live block at `pointer` is, in whatever memory space it lives. A category replaces the block's.
///
/// Interns the text, so use a bounded number of different descriptions; takes a lock. An address that is not live is counted in
/// the profile (`unknown_annotations`), not an error. Does nothing while no capture is active.
inline void annotate(const void* pointer, const annotation& description) noexcept { event_sink{}.annotate(pointer, description); }

}  // namespace enabled

#else
inline namespace disabled {

inline void annotate(const void*, const annotation&) noexcept {}

}  // namespace disabled
#endif

}  // namespace memprof

// ---- <memprof/detail/short_name.hpp>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace memprof {

/// A name of at most 31 bytes that is part of the object it stands in, so that the object can be copied as plain bytes.
class short_name {
 public:
  static constexpr std::size_t max_size = 31;

  constexpr short_name() = default;
  /// Implicit, so that a literal can be assigned. Throws `memprof::error` if the text is longer than `max_size`.
  short_name(std::string_view text) : size_(static_cast<unsigned char>(text.size())) {
    if (text.size() > max_size) {
      detail::raise("the name '" + std::string{text} + "' has " + std::to_string(text.size()) + " bytes; use at most " +
                    std::to_string(max_size));
    }
    if (!text.empty()) std::memcpy(text_, text.data(), text.size());
  }
  short_name(const char* text) : short_name(std::string_view{text}) {}

  [[nodiscard]] constexpr std::string_view view() const noexcept { return {text_, std::size_t{size_}}; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }

  bool operator==(const short_name&) const = default;

 private:
  char text_[max_size] = {};
  unsigned char size_ = 0;
};

}  // namespace memprof

// ---- <memprof/trace/device_description.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof {

/// How a device stores a matrix: row after row, or in tiles of 32 x 32 elements with the last ones padded.
enum class tensor_layout : std::uint8_t { row_major, tile };

/// The names of `tensor_layout`, in the order of its values.
inline constexpr std::array<std::string_view, 2> tensor_layout_names{"row_major", "tile"};

/// One kind of memory of a device.
struct device_space {
  short_name name;                 ///< that of the `memory_space` whose blocks live in it
  std::int64_t capacity = 0;       ///< bytes; those of each core if `is_per_core`; 0: not limited
  std::int64_t alignment = 1;      ///< bytes: pages in a bank begin at multiples of it; a power of two
  std::int64_t size_multiple = 1;  ///< bytes: what an allocation is rounded up to; a power of two
  std::int64_t banks = 1;          ///< over which the pages of a buffer are spread in turn
  bool is_per_core = false;        ///< every core has its own: sizes are bytes a core
  bool circular_buffers = false;   ///< whether it holds circular buffers beside buffers

  bool operator==(const device_space&) const = default;
};

/// What limits the memory of a device, real or imagined, and how large a tensor is on it. Plain bytes: copy it freely.
struct device_description {
  static constexpr std::size_t max_spaces = 8;

  short_name name;  ///< empty: no device is described
  tensor_layout layout = tensor_layout::row_major;
  std::uint8_t core_columns = 0;  ///< grid of the cores, for spaces that are `is_per_core`
  std::uint8_t core_rows = 0;
  std::uint8_t space_count = 0;
  std::array<device_space, max_spaces> spaces{};  ///< the first holds the tensors

  [[nodiscard]] bool empty() const noexcept { return name.empty(); }

  /// Throws `memprof::error` if there are `max_spaces` already or the name is taken.
  device_description& add(const device_space& space) {
    if (space_count == max_spaces) {
      detail::raise("device '" + std::string{name.view()} + "': a device has at most " + std::to_string(max_spaces) +
                    " memory spaces; leave '" + std::string{space.name.view()} + "' out");
    }
    if (find_space(space.name.view()) != nullptr) {
      detail::raise("device '" + std::string{name.view()} + "' has two memory spaces '" + std::string{space.name.view()} +
                    "'; rename one");
    }
    spaces[space_count++] = space;
    return *this;
  }

  /// The space of that name, or a null pointer.
  [[nodiscard]] const device_space* find_space(std::string_view wanted) const noexcept {
    for (std::size_t index = 0; index < space_count; ++index) {
      const std::string_view known = spaces[index].name.view();
      if (known.size() == wanted.size() && known.compare(wanted) == 0) return &spaces[index];
    }
    return nullptr;
  }

  /// The space that holds tensors. Throws `memprof::error` if no space was added.
  [[nodiscard]] const device_space& tensor_space() const {
    if (space_count == 0) detail::raise("device '" + std::string{name.view()} + "' has no memory space; add one");
    return spaces[0];
  }
};

}  // namespace memprof

// ---- <memprof/record/options.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof {

/// What a thread does whose ring is full.
enum class overflow : std::uint8_t {
  drain,  ///< empties all rings into the ledger itself: nothing is lost
  drop,   ///< drops the event and counts it: for threads that must not wait. `snapshot` and `end_capture` empty the rings
};

/// What a trace file does when events come faster than its disk takes them, for longer than its buffers last.
enum class slow_disk : std::uint8_t {
  leave_gap,  ///< leaves events out, and says how many; the capture's own numbers stay exact
  wait,       ///< lets the thread that empties the rings wait, and others whose rings are full
};

class trace;

/// How a capture records. The defaults lose nothing.
struct capture_options {
  run_mode mode = run_mode::normal;            ///< `no_dispatch` records allocations of memprof's resources without making them
  device_description device = {};              ///< what limits the memory spaces of its names; empty: nothing does
  std::uint32_t ring_capacity = 1024;          ///< events of 32 bytes per thread; at least 2
  overflow overflow_policy = overflow::drain;  ///< with `drop` the profile says `exact: false` once anything was dropped
  std::uint32_t timeline_points = 4096;        ///< per memory space; at least 2
  std::uint32_t largest_blocks = 10;           ///< listed for each peak; at most 4096
  std::uint32_t owners_per_segment = 32;       ///< operations listed for each segment's peak; the overall peak lists all
  std::uint32_t kept_segments = 64;  ///< kept in full, at least 4: the newest, the first of each name, those with an extreme
  std::uint32_t segment_names = 64;  ///< whose segments are summed up in a row of their own; all others share one
  std::uint32_t operations = 4096;   ///< operations with a row of their own; the others within each share one
  memprof::trace* trace = nullptr;   ///< gets everything that happens, to be read when the capture has ended; empty
  /// The file that gets everything that happens while it happens, so that it can be read whatever becomes of the process; empty:
  /// none. `%p` stands for the process id, `%r` for its rank, `%h` for its host. A trace that has the name gets `.old` behind it.
  /// If the file cannot be made or written, the capture goes on and a line on stderr says why.
  std::string trace_file = {};
  slow_disk on_slow_disk = slow_disk::leave_gap;
  /// Bytes of events that `trace` keeps, and those that `trace_file` keeps: the newest; 0: all, else at least 65,536. What was
  /// known before the first that is kept comes on top, some 20 bytes a live block, so that profiles stay those of the whole
  /// capture. The file has at least half of them, and takes 12 MiB and more beside them while it is written.
  std::uint64_t trace_limit = 0;
};

}  // namespace memprof

// ---- <memprof/detail/saturating.hpp>
#include <cstdint>
#include <limits>

namespace memprof::detail {

/// left + right, or the nearest value there is: numbers from files may be anything.
[[nodiscard]] constexpr std::int64_t add_saturating(std::int64_t left, std::int64_t right) noexcept {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(left, right, &sum)) return sum;
  return right > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

/// left - right, or the nearest value there is.
[[nodiscard]] constexpr std::int64_t subtract_saturating(std::int64_t left, std::int64_t right) noexcept {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(left, right, &difference)) return difference;
  return right < 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

}  // namespace memprof::detail

// ---- <memprof/profile/fact/incomplete_trace_file.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof {

/// The trace file of a capture that lacks some of what happened, or all of it. The capture's own profile is complete.
struct incomplete_trace_file {
  std::string path;
  std::string reason;
  std::int64_t missing_events = 0;  ///< so far; after the file has ended nobody counts them

  bool operator==(const incomplete_trace_file&) const = default;

  static constexpr std::string_view table = "incomplete_trace_file";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("path", row.path);
    visit("reason", row.reason);
    visit("missing_events", row.missing_events);
  }
};

}  // namespace memprof

// ---- <memprof/profile/fact/unrecorded_module.hpp>
#include <string>
#include <string_view>

namespace memprof {

/// A loaded library that has a registry of its own, so that its events are missing (record/registry.hpp).
struct unrecorded_module {
  std::string path;

  bool operator==(const unrecorded_module&) const = default;

  static constexpr std::string_view table = "unrecorded_modules";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("path", row.path);
  }
};

}  // namespace memprof

// ---- <memprof/record/capture.hpp>
#include <string_view>

#if MEMPROF_ENABLED
// ---- <memprof/record/capture_control.hpp>
// ---- <memprof/profile/folded_head.hpp>
// ---- <memprof/profile/trace_fold.hpp>
// ---- <memprof/ledger/key_frame.hpp>
// ---- <memprof/ledger/frame_parts.hpp>
// ---- <memprof/detail/wide_integer.hpp>
#include <array>
#include <cstddef>
#include <cstdint>

namespace memprof::detail {

__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;

struct frame_parts;

/// A signed integer of 256 bits, for sums of squares that must stay exact: what is left of their differences is all that counts.
/// Arithmetic is modulo 2^256. Zero bytes are zero.
class wide_integer {
 public:
  constexpr wide_integer() noexcept = default;
  constexpr explicit wide_integer(int128 value) noexcept
      : limbs_{static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(value >> 64), sign_limb(value), sign_limb(value)} {}

  constexpr wide_integer& operator+=(const wide_integer& other) noexcept {
    uint128 carry = 0;
    for (std::size_t index = 0; index < limbs_.size(); ++index) {
      carry += limbs_[index];
      carry += other.limbs_[index];
      limbs_[index] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    return *this;
  }
  constexpr wide_integer& operator-=(const wide_integer& other) noexcept { return *this += -other; }

  [[nodiscard]] constexpr wide_integer operator-() const noexcept {
    wide_integer result;
    for (std::size_t index = 0; index < limbs_.size(); ++index) result.limbs_[index] = ~limbs_[index];
    return result += wide_integer{1};
  }
  [[nodiscard]] friend constexpr wide_integer operator-(wide_integer left, const wide_integer& right) noexcept {
    return left -= right;
  }
  [[nodiscard]] friend constexpr wide_integer operator*(const wide_integer& left, const wide_integer& right) noexcept {
    wide_integer result;
    for (std::size_t low = 0; low < left.limbs_.size(); ++low) {
      uint128 carry = 0;
      for (std::size_t high = 0; low + high < left.limbs_.size(); ++high) {
        carry += static_cast<uint128>(left.limbs_[low]) * right.limbs_[high] + result.limbs_[low + high];
        result.limbs_[low + high] = static_cast<std::uint64_t>(carry);
        carry >>= 64;
      }
    }
    return result;
  }
  constexpr bool operator==(const wide_integer&) const noexcept = default;

  [[nodiscard]] constexpr bool is_negative() const noexcept { return limbs_.back() >> 63 != 0; }
  /// The same number to some 50 bits, on every machine alike: what is scaled is scaled by powers of two.
  [[nodiscard]] constexpr double to_double() const noexcept {
    if (is_negative()) return -(-*this).to_double();
    constexpr double limb_range = 18446744073709551616.0;
    double result = 0;
    for (std::size_t index = limbs_.size(); index-- > 0;) result = result * limb_range + static_cast<double>(limbs_[index]);
    return result;
  }

 private:
  friend struct frame_parts;

  [[nodiscard]] static constexpr std::uint64_t sign_limb(int128 value) noexcept { return value < 0 ? ~std::uint64_t{0} : 0; }

  std::array<std::uint64_t, 4> limbs_{};  ///< the lowest first
};

}  // namespace memprof::detail

// ---- <memprof/ledger/active_ledger.hpp>
// ---- <memprof/ledger/byte_level.hpp>
// ---- <memprof/ledger/segment_history.hpp>
// ---- <memprof/detail/partition_point.hpp>
#include <cstddef>

namespace memprof::detail {

/// The first index in [0, count) for which `is_before` is false, `count` if there is none; true ones come first. What
/// `std::partition_point` is, without the iterators that every unit would have to compile.
template <class IsBefore>
[[nodiscard]] std::size_t partition_point(std::size_t count, IsBefore is_before) {
  std::size_t first = 0;
  while (count != 0) {
    const std::size_t half = count / 2;
    if (is_before(first + half)) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

}  // namespace memprof::detail

// ---- <memprof/ledger/live_blocks.hpp>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace memprof {

/// What the ledger keeps of a live allocation, in half a cache line.
struct block {
  static constexpr unsigned thread_bits = 20;
  static constexpr std::uint32_t max_thread = (std::uint32_t{1} << thread_bits) - 1;
  static constexpr unsigned category_bits = 8;
  static constexpr label max_annotation = (label{1} << (32 - category_bits)) - 1;

  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t born_thread;  ///< ordinal of its allocation in its space, and the allocating thread
  std::uint64_t owner;        ///< operation, category and annotation: see `owner_word`

  [[nodiscard]] std::uint64_t born() const noexcept { return born_thread >> thread_bits; }
  [[nodiscard]] std::uint32_t thread() const noexcept { return static_cast<std::uint32_t>(born_thread) & max_thread; }
  /// Node of the operation tree.
  [[nodiscard]] std::uint32_t operation() const noexcept { return static_cast<std::uint32_t>(owner); }
  [[nodiscard]] std::uint32_t category() const noexcept {
    return static_cast<std::uint32_t>(owner >> 32) & ((1U << category_bits) - 1);
  }
  /// Label of `name\x1fshape\x1fdtype`, with `\x1frequires_grad` if that is known; 0 if there is none.
  [[nodiscard]] label annotation() const noexcept { return static_cast<label>(owner >> (32 + category_bits)); }

  [[nodiscard]] static constexpr std::uint64_t owner_word(std::uint32_t operation, std::uint32_t category,
                                                          label annotation) noexcept {
    return std::uint64_t{annotation} << (32 + category_bits) | std::uint64_t{category} << 32 | operation;
  }
};

static_assert(sizeof(block) == 32);

/// The live blocks of one memory space by address: the table that every event asks once.
///
/// Groups of 7 blocks with a byte of hash for each, all in one word: a few operations on the word find the candidates, so that
/// the branches of a lookup are nearly always predicted, and erasing needs neither tombstones nor moves. A group counts the
/// blocks that passed it because it was full; a search goes on only past such a group (the scheme of Folly's F14). The word, not
/// a vector: an event that follows another in the same group reads the word that was just written, and processors forward that
/// only to loads of the same width. At most 3 of 7 slots are used on average, so that hardly any group is full: 85 bytes a block
/// before the table grows, 171 after.
class live_blocks {
 public:
  live_blocks() = default;
  live_blocks(const live_blocks&) = delete;
  live_blocks& operator=(const live_blocks&) = delete;
  ~live_blocks() { detail::unmap_pages(groups_, bytes()); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return group_count() * sizeof(group); }

  /// How many full groups the live blocks had to pass, all together: what lookups may have to follow. Costs a pass over the
  /// table.
  [[nodiscard]] std::uint64_t passed_groups() const noexcept {
    std::uint64_t total = 0;
    for (std::size_t index = 0; index < group_count(); ++index) total += groups_[index].passed_by;
    return total;
  }

  /// Where a block is: what `erase` needs to take it away without looking again.
  struct place {
    block* entry = nullptr;         ///< null if the address is not live
    std::uint64_t* tags = nullptr;  ///< of its group
    unsigned tag_shift = 0;         ///< where its tag is in them
    bool is_at_home = false;        ///< in the group that its hash names

    explicit operator bool() const noexcept { return entry != nullptr; }
    [[nodiscard]] block* operator->() const noexcept { return entry; }
  };

  /// The block at `address`, if there is one.
  [[nodiscard, gnu::always_inline]] place find(std::uint64_t address) noexcept {
    if (groups_ == nullptr) [[unlikely]]
      return {};
    const std::uint64_t hash = hash_of(address);
    group& home = groups_[hash >> shift_];
    for (std::uint64_t matches = home.matches(hash); matches != 0; matches &= matches - 1) {
      block& candidate = home.block_at(matches);
      if (candidate.address == address) [[likely]]
        return {&candidate, &home.tags, tag_shift_of(matches), true};
    }
    if (home.passed_by == 0) [[likely]]
      return {};
    return find_away(hash, address);
  }

  /// The same for those who only look; null if there is none.
  [[nodiscard]] const block* at(std::uint64_t address) const noexcept {
    return const_cast<live_blocks*>(this)->find(address).entry;  // which changes nothing
  }

  /// What `insert` found or made.
  struct insertion {
    block* entry;  ///< null if the system has no memory
    bool is_new;   ///< false: the address was in the table, and `entry` is unchanged
  };

  /// The block at `address`; if there is none, a new one of which only the address is set.
  [[nodiscard, gnu::always_inline]] insertion insert(std::uint64_t address) noexcept {
    if (size_ >= limit_) [[unlikely]] {
      if (!grow()) return {nullptr, false};
    }
    const std::uint64_t hash = hash_of(address);
    group& home = groups_[hash >> shift_];
    for (std::uint64_t matches = home.matches(hash); matches != 0; matches &= matches - 1) {
      block& candidate = home.block_at(matches);
      if (candidate.address == address) [[unlikely]]
        return {&candidate, false};
    }
    const std::uint64_t free = home.free();
    if (free == 0 || home.passed_by != 0) [[unlikely]]
      return insert_away(hash, address);
    ++size_;
    return {&home.take(free, hash, address), true};
  }

  /// Removes a block that `find` returned. The slot keeps its value until the next `insert`.
  [[gnu::always_inline]] void erase(const place& found) noexcept {
    --size_;
    *found.tags &= ~(std::uint64_t{0xFF} << found.tag_shift);
    if (!found.is_at_home) [[unlikely]]
      forget_passing(found);
  }

  /// Starts loading the group of an address that will be asked for soon.
  void prefetch(std::uint64_t address) const noexcept {
    if (groups_ != nullptr) __builtin_prefetch(&groups_[hash_of(address) >> shift_]);
  }

  /// Calls `visit(const block&)` for every live block. Costs a pass over the table.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (std::size_t index = 0; index < group_count(); ++index) {
      for (std::size_t slot = 0; slot < slots; ++slot) {
        if (groups_[index].is_used(slot)) visit(groups_[index].blocks[slot]);
      }
    }
  }

 private:
  static constexpr std::size_t slots = 7;
  static constexpr std::size_t mean_load = 3;
  static constexpr std::uint64_t each_byte = 0x0101010101010101U;
  static constexpr std::uint64_t used_bits = 0x0080808080808080U;  // the highest bit of each of the 7 tags

  /// Where the tag lies that the lowest bit of `matches` stands for.
  [[nodiscard]] static unsigned tag_shift_of(std::uint64_t matches) noexcept {
    return static_cast<unsigned>(std::countr_zero(matches)) & ~7U;
  }

  /// A used tag: 7 bits of the hash that do not choose the group in tables of up to 2^25 groups.
  [[nodiscard]] static std::uint64_t tag_of(std::uint64_t hash) noexcept { return 0x80U | ((hash >> 32) & 0x7FU); }

  struct alignas(64) group {
    std::uint64_t tags;       // 7 bytes; 0: free
    std::uint32_t passed_by;  // how many blocks found this group full
    alignas(32) block blocks[slots];

    /// The highest bit of each tag that may be the hash's; a wrong one is possible above a right one; the address decides.
    [[nodiscard]] std::uint64_t matches(std::uint64_t hash) const noexcept {
      const std::uint64_t difference = tags ^ tag_of(hash) * each_byte;
      return (difference - each_byte) & ~difference & used_bits;
    }
    [[nodiscard]] std::uint64_t free() const noexcept { return ~tags & used_bits; }
    [[nodiscard]] bool is_used(std::size_t slot) const noexcept { return (tags >> (8 * slot) & 0x80U) != 0; }
    [[nodiscard]] block& block_at(std::uint64_t match) noexcept { return blocks[tag_shift_of(match) / 8]; }

    block& take(std::uint64_t free_slots, std::uint64_t hash, std::uint64_t address) noexcept {
      tags |= tag_of(hash) << tag_shift_of(free_slots);
      block& taken = block_at(free_slots);
      taken.address = address;
      return taken;
    }
  };
  static_assert(sizeof(group) == 256);

  [[nodiscard]] std::size_t group_count() const noexcept { return groups_ == nullptr ? 0 : mask_ + 1; }

  /// Fibonacci hashing: the high bits of the product depend on all bits of the address.
  [[nodiscard]] static std::uint64_t hash_of(std::uint64_t address) noexcept { return address * 0x9E3779B97F4A7C15U; }

  /// A search beyond a home group that was passed by.
  [[nodiscard, gnu::noinline]] place find_away(std::uint64_t hash, std::uint64_t address) noexcept {
    const std::size_t home = hash >> shift_;
    for (std::size_t index = (home + 1) & mask_; index != home; index = (index + 1) & mask_) {
      group& here = groups_[index];
      for (std::uint64_t matches = here.matches(hash); matches != 0; matches &= matches - 1) {
        block& candidate = here.block_at(matches);
        if (candidate.address == address) return {&candidate, &here.tags, tag_shift_of(matches), false};
      }
      if (here.passed_by == 0) break;
    }
    return {};
  }

  /// Takes an erased block off the counts of the groups it had passed.
  [[gnu::noinline]] void forget_passing(const place& erased) noexcept {
    const auto offset = static_cast<std::size_t>(reinterpret_cast<char*>(erased.entry) - reinterpret_cast<char*>(groups_));
    const std::size_t end = offset / sizeof(group);
    for (std::size_t index = hash_of(erased->address) >> shift_; index != end; index = (index + 1) & mask_)
      --groups_[index].passed_by;
  }

  /// The same when the home group is full or was passed by: the address may live further on.
  [[gnu::noinline]] insertion insert_away(std::uint64_t hash, std::uint64_t address) noexcept {
    if (const place known = find_away(hash, address)) return {known.entry, false};
    ++size_;
    return {&make_room(address), true};
  }

  /// A slot for an address that is not in the table.
  [[nodiscard]] block& make_room(std::uint64_t address) noexcept {
    const std::uint64_t hash = hash_of(address);
    for (std::size_t index = hash >> shift_;; index = (index + 1) & mask_) {
      group& here = groups_[index];
      if (const std::uint64_t free = here.free(); free != 0) [[likely]]
        return here.take(free, hash, address);
      ++here.passed_by;
    }
  }

  [[gnu::cold, gnu::noinline]] bool grow() noexcept {
    group* const old_groups = groups_;
    const std::size_t old_count = group_count();
    const std::size_t count = old_count == 0 ? 32 : 2 * old_count;
    void* const pages = detail::map_pages(count * sizeof(group));
    if (pages == nullptr) return false;
    groups_ = static_cast<group*>(pages);
    mask_ = count - 1;
    shift_ = static_cast<unsigned>(64 - std::countr_zero(count));
    limit_ = count * mean_load;
    for (std::size_t index = 0; index < old_count; ++index) {
      for (std::size_t slot = 0; slot < slots; ++slot) {
        if (!old_groups[index].is_used(slot)) continue;
        const block& moving = old_groups[index].blocks[slot];
        make_room(moving.address) = moving;
      }
    }
    detail::unmap_pages(old_groups, old_count * sizeof(group));
    return true;
  }

  group* groups_ = nullptr;
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
  std::size_t size_ = 0;
  std::size_t limit_ = 0;
};

}  // namespace memprof

// ---- <memprof/ledger/running_line.hpp>
#include <algorithm>
#include <cstdint>

namespace memprof {

/// The steps of the segments of one name, as the horizontal half of the points of a line. Counted from the first, so that sums
/// are small. Trivial, and empty if all bytes are zero.
struct running_steps {
  std::uint64_t first;
  std::uint64_t count;
  detail::int128 sum;
  detail::int128 squares;

  void add(std::uint64_t step) noexcept {
    if (count++ == 0) first = step;
    const auto distance = static_cast<detail::int128>(step - first);
    sum += distance;
    squares += distance * distance;
  }
};

/// A straight line through points: its slope, and the part of the variation that it explains.
struct fitted_line {
  double slope;
  double r_squared;
};

/// A number in the segments of one name, as the vertical half. Sums are exact for up to 2^40 segments and any number of 63 bits;
/// so the line does not depend on the order of magnitude of the numbers, nor on how far the first is from the others.
struct running_line {
  std::int64_t first;
  detail::int128 sum;
  detail::wide_integer squares;
  detail::wide_integer products;  ///< with the steps

  /// The number, at least 0, of the segment whose step was added to `steps` last.
  void add(std::int64_t value, std::uint64_t step, const running_steps& steps) noexcept {
    const detail::int128 rise = static_cast<detail::int128>(value) - first;
    if (rise == 0) return;
    sum += rise;
    squares += detail::wide_integer{rise * rise};
    products += detail::wide_integer{rise * static_cast<detail::int128>(step - steps.first)};
  }

  /// Least squares: slope = Sxy / Sxx and R^2 = Sxy^2 / (Sxx Syy), each n times the sum of products of the deviations from the
  /// means. Numbers that do not vary lie on any level line, so then R^2 is 1.
  [[nodiscard]] fitted_line fit(const running_steps& steps) const noexcept {
    using detail::wide_integer;
    const wide_integer count{static_cast<detail::int128>(steps.count)};
    const wide_integer horizontal = count * wide_integer{steps.squares} - wide_integer{steps.sum} * wide_integer{steps.sum};
    const wide_integer vertical = count * squares - wide_integer{sum} * wide_integer{sum};
    const wide_integer both = count * products - wide_integer{steps.sum} * wide_integer{sum};
    if (horizontal == wide_integer{}) return {0, vertical == wide_integer{} ? 1.0 : 0.0};
    const double slope = both.to_double() / horizontal.to_double();
    if (vertical == wide_integer{}) return {0, 1};
    return {slope, std::clamp(slope * (both.to_double() / vertical.to_double()), 0.0, 1.0)};
  }
};

}  // namespace memprof

// ---- <memprof/ledger/running_summary.hpp>
#include <cstdint>
#include <limits>

namespace memprof {

/// One number over the segments of one name. Trivial; `begin` makes it meaningful.
struct running_summary {
  std::int64_t first;
  std::int64_t last;
  std::int64_t least;
  std::int64_t greatest;
  detail::int128 total;
  std::uint64_t least_segment;  ///< number of the first segment with `least`
  std::uint64_t greatest_segment;

  /// Nothing but `value`, in segment `number`.
  void begin(std::int64_t value, std::uint64_t number) noexcept { *this = {value, value, value, value, value, number, number}; }
  void add(std::int64_t value, std::uint64_t number) noexcept {
    last = value;
    total += value;
    if (value < least) {
      least = value;
      least_segment = number;
    }
    if (value > greatest) {
      greatest = value;
      greatest_segment = number;
    }
  }

  /// The sum, or the nearest number of 64 bits.
  [[nodiscard]] std::int64_t sum() const noexcept {
    constexpr detail::int128 most = std::numeric_limits<std::int64_t>::max();
    constexpr detail::int128 fewest = std::numeric_limits<std::int64_t>::min();
    return static_cast<std::int64_t>(total > most ? most : total < fewest ? fewest : total);
  }
};

}  // namespace memprof

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// One finished segment that is kept in full; its end is the next one's begin.
struct segment_mark {
  label name;
  std::uint32_t row;  ///< of its name
  std::uint64_t begin_stamp;
  std::uint64_t end_stamp;
  std::uint64_t number;
  std::uint64_t step;
  std::uint32_t holds;  ///< how many extremes of its name it holds, and failures that happened in it
  std::uint32_t pins;   ///< how many spaces had their overall peak or their first shortfall in it
  bool is_first;        ///< of its name
  bool is_dropped;      ///< no longer kept, and only here until `segment_history::compact`
};

/// All segments of one name.
struct named_segment_row {
  label name;
  bool stands_for_others;  ///< of all names that came when there were rows enough
  std::uint64_t count;
  std::uint64_t first_number;
  std::uint64_t last_number;
  std::uint64_t last_step;
  running_summary duration;  ///< in stamps
  running_steps steps;
};

/// The finished segments of a capture in bounded memory: those that are kept in full, and one row for each name.
///
/// Every space has an entry for each mark, at the same position. To drop a segment only marks it, so that no entry moves; once
/// as many were dropped as are kept, `compact` takes them out everywhere. A segment costs a pass over the marks.
///
/// A step is a round of the repeating names: the next one begins where a name comes that this one has had.
class segment_history {
 public:
  static constexpr std::uint32_t most_kept = 65'536;

  segment_history(std::uint32_t kept, std::uint32_t names) noexcept
      : kept_limit_(std::clamp(kept, std::uint32_t{4}, most_kept)), name_limit_(std::clamp(names, std::uint32_t{1}, most_kept)) {}

  /// Adds a finished segment as the last mark. False, and nothing changed, if the system has no memory.
  [[nodiscard]] bool add(label name, std::uint64_t begin_stamp, std::uint64_t end_stamp) noexcept {
    if (!marks_.reserve(marks_.size() + 1)) return false;
    const std::uint32_t index = row_of(name);
    if (index == no_row) return false;
    named_segment_row& row = rows_[index];
    if (row.count != 0 && row.last_step == step_ && !row.stands_for_others) ++step_;
    const std::uint64_t ticks = end_stamp - begin_stamp;
    const auto duration = static_cast<std::int64_t>(std::min<std::uint64_t>(ticks, std::numeric_limits<std::int64_t>::max()));
    const bool is_first = row.count++ == 0;
    if (is_first) {
      row.first_number = count_;
      row.duration.begin(duration, count_);
    } else {
      row.duration.add(duration, count_);
    }
    row.last_number = count_;
    row.last_step = step_;
    row.steps.add(step_);
    return marks_.push_back({name, index, begin_stamp, end_stamp, count_++, step_, 0, 0, is_first, false});
  }

  /// Numbers of segments. A segment holds while nothing takes it back, and longer if there is room.
  void hold(std::uint64_t number) noexcept {
    if (segment_mark* const mark = find(number)) ++mark->holds;
  }
  void release(std::uint64_t number) noexcept {
    if (segment_mark* const mark = find(number); mark != nullptr && mark->holds != 0) --mark->holds;
  }
  void pin(std::uint64_t number) noexcept {
    if (segment_mark* const mark = find(number)) ++mark->pins;
  }
  void unpin(std::uint64_t number) noexcept {
    if (segment_mark* const mark = find(number); mark != nullptr && mark->pins != 0) --mark->pins;
  }

  /// Drops segments until as few are kept as should be. Of those that may go: first those that hold nothing, then those that
  /// hold an extreme, then the first of their name; among equals the oldest.
  void drop_surplus() noexcept {
    while (marks_.size() - dropped_ > kept_limit_) {
      segment_mark* goes = nullptr;
      // The newest quarter stays, whatever is in it.
      const std::uint64_t newest = count_ - kept_limit_ / 4;
      for (segment_mark& mark : marks_) {
        if (mark.number >= newest) break;
        if (mark.is_dropped || mark.pins != 0) continue;
        if (goes == nullptr || worth(mark) < worth(*goes)) goes = &mark;
        if (worth(*goes) == 0) break;
      }
      if (goes == nullptr) return;
      goes->is_dropped = true;
      ++dropped_;
    }
  }

  /// Whether it is time to `compact`.
  [[nodiscard]] bool is_sparse() const noexcept { return dropped_ >= kept_limit_; }

  /// Takes out of `entries`, which has one for each mark or fewer, those of dropped segments.
  template <class Entry>
  void compact(detail::page_array<Entry>& entries) const noexcept {
    std::size_t kept = 0;
    for (std::size_t position = 0; position < entries.size() && position < marks_.size(); ++position) {
      if (!marks_[position].is_dropped) entries[kept++] = entries[position];
    }
    entries.truncate(kept);
  }
  /// The same for the marks themselves, at the end.
  void compact_marks() noexcept {
    std::size_t kept = 0;
    for (std::size_t position = 0; position < marks_.size(); ++position) {
      if (!marks_[position].is_dropped) marks_[kept++] = marks_[position];
    }
    marks_.truncate(kept);
    dropped_ = 0;
  }

  /// By position, which changes with `compact_marks`.
  [[nodiscard]] const detail::page_array<segment_mark>& marks() const noexcept { return marks_; }
  /// In the order in which the names first came.
  [[nodiscard]] const detail::page_array<named_segment_row>& rows() const noexcept { return rows_; }
  /// How many segments there were.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t kept() const noexcept { return marks_.size() - dropped_; }
  /// The number of the step that the last segment was in.
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return marks_.bytes() + rows_.bytes() + row_index_.bytes(); }

 private:
  friend struct detail::frame_parts;

  static constexpr std::uint32_t no_row = ~std::uint32_t{0};

  [[nodiscard]] static int worth(const segment_mark& mark) noexcept { return mark.is_first ? 2 : mark.holds != 0 ? 1 : 0; }

  /// Null if the segment is not kept.
  [[nodiscard]] segment_mark* find(std::uint64_t number) noexcept {
    const std::size_t position =
        detail::partition_point(marks_.size(), [&](std::size_t index) { return marks_[index].number < number; });
    const bool is_there = position < marks_.size() && marks_[position].number == number && !marks_[position].is_dropped;
    return is_there ? &marks_[position] : nullptr;
  }

  /// The row of a name, made if it is new and there is room, else that of all others; `no_row` if the system has no memory.
  [[nodiscard]] std::uint32_t row_of(label name) noexcept {
    if (name != other_names) {
      if (const live_blocks::place known = row_index_.find(key_of(name))) return static_cast<std::uint32_t>(known->owner);
    }
    const bool is_other = name == other_names || named_ >= name_limit_;
    if (is_other && others_ != no_row) return others_;
    if (!rows_.reserve(rows_.size() + 1)) return no_row;
    const auto index = static_cast<std::uint32_t>(rows_.size());
    if (is_other) {
      others_ = index;
    } else {
      block* const entry = row_index_.insert(key_of(name)).entry;
      if (entry == nullptr) return no_row;
      entry->owner = index;
      ++named_;
    }
    named_segment_row row{};
    row.name = is_other ? other_names : name;
    row.stands_for_others = is_other;
    return rows_.push_back(row) ? index : no_row;
  }

  /// Names are looked up in a table of blocks: they are few, and it is there.
  [[nodiscard]] static std::uint64_t key_of(label name) noexcept { return std::uint64_t{name} + 1; }

  std::uint32_t kept_limit_;
  std::uint32_t name_limit_;
  std::uint32_t named_ = 0;
  std::uint32_t others_ = no_row;
  std::uint64_t count_ = 0;
  std::uint64_t step_ = 0;
  std::size_t dropped_ = 0;
  detail::page_array<segment_mark> marks_;
  detail::page_array<named_segment_row> rows_;
  live_blocks row_index_;
};

}  // namespace memprof

// ---- <memprof/ledger/summaries_by_name.hpp>
#include <array>
#include <cstddef>
#include <cstdint>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// Numbers over the segments of each name, one record for each row of a `segment_history`. A space that shows up late had zeros
/// in the segments before.
template <std::size_t Count>
class summaries_by_name {
 public:
  using record = std::array<running_summary, Count>;

  /// Adds the numbers of the segment that `history` got last. False if the system has no memory.
  [[nodiscard]] bool add(const segment_history& history, const std::array<std::int64_t, Count>& values) noexcept {
    const segment_mark& ended = history.marks()[history.marks().size() - 1];
    const named_segment_row& row = history.rows()[ended.row];
    if (ended.row >= known_.size() && (!known_.resize(ended.row + 1U) || !records_.resize(ended.row + 1U))) return false;
    record& sums = records_[ended.row];
    const bool begins = known_[ended.row] == 0;
    known_[ended.row] = 1;
    for (std::size_t index = 0; index < Count; ++index) {
      if (begins && row.count == 1) {
        sums[index].begin(values[index], ended.number);
        continue;
      }
      if (begins) sums[index].begin(0, row.first_number);
      sums[index].add(values[index], ended.number);
    }
    return true;
  }

  /// Of a row of the history; zeros if nothing was added to it.
  [[nodiscard]] record of(const segment_history& history, std::size_t row) const noexcept {
    if (row < known_.size() && known_[row] != 0) return records_[row];
    record zeros;
    for (running_summary& sum : zeros) sum.begin(0, history.rows()[row].first_number);
    return zeros;
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return known_.bytes() + records_.bytes(); }

 private:
  friend struct detail::frame_parts;

  detail::page_array<char> known_;
  detail::page_array<record> records_;
};

}  // namespace memprof

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// A number of bytes in one segment: at most, and at its end.
struct level_record {
  std::int64_t peak;
  std::int64_t current;
};

/// A number of bytes that rises and falls: now, at most, and in each segment.
class byte_level {
 public:
  /// Whoever changes it makes sure that it neither overflows nor becomes negative.
  void change(std::int64_t bytes) noexcept {
    current_ += bytes;
    segment_peak_ = std::max(segment_peak_, current_);
    peak_ = std::max(peak_, current_);
  }

  /// Ends the segment that `history` got last. False if the system has no memory.
  [[nodiscard]] bool end_segment(const segment_history& history) noexcept {
    const level_record ended = open_segment();
    segment_peak_ = current_;
    if (!segments_.resize(history.marks().size()) || !by_name_.add(history, {ended.peak, ended.current})) return false;
    segments_.back() = ended;
    return true;
  }
  /// Leaves out the segments that are no longer kept.
  void compact(const segment_history& history) noexcept { history.compact(segments_); }

  [[nodiscard]] std::int64_t current() const noexcept { return current_; }
  [[nodiscard]] std::int64_t peak() const noexcept { return peak_; }
  /// One for each mark of the history, or fewer if there was no memory; zeros before the first that ended here.
  [[nodiscard]] const detail::page_array<level_record>& segments() const noexcept { return segments_; }
  /// Peak and current.
  [[nodiscard]] const summaries_by_name<2>& by_name() const noexcept { return by_name_; }
  [[nodiscard]] level_record open_segment() const noexcept { return {segment_peak_, current_}; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return segments_.bytes() + by_name_.bytes(); }

 private:
  friend struct detail::frame_parts;

  detail::page_array<level_record> segments_;
  summaries_by_name<2> by_name_;
  std::int64_t current_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t segment_peak_ = 0;
};

}  // namespace memprof

// ---- <memprof/ledger/tally.hpp>
#include <algorithm>
#include <cstdint>
#include <limits>

namespace memprof {

/// A count and the bytes it concerns, for events that are unusual.
struct tally {
  std::int64_t count = 0;
  std::int64_t bytes = 0;

  void add(std::uint64_t more) noexcept {
    ++count;
    const auto room = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - bytes);
    bytes += static_cast<std::int64_t>(std::min(more, room));  // what a caller tells may be anything
  }
};

}  // namespace memprof

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// The bytes of blocks allocated on streams, until no stream uses them any more: PyTorch's `active_bytes`. A freed block
/// stays active from the request of its deallocation to the completion, and only then is it kept here, by its address.
class active_ledger {
 public:
  void allocate(std::uint64_t address, std::int64_t bytes) noexcept {
    is_used_ = true;
    end_unfinished(address);
    level_.change(bytes);
  }
  /// More than is active was never allocated on a stream: the bytes do not get negative.
  void deallocate(std::int64_t bytes) noexcept { level_.change(-std::min(bytes, level_.current())); }

  /// A live block is freed, and stays active. False if the system has no memory to keep it.
  [[nodiscard]] bool request(std::uint64_t address, std::uint64_t bytes) noexcept {
    is_used_ = true;
    end_unfinished(address);
    const live_blocks::insertion made = pending_.insert(address);
    if (made.entry == nullptr) return false;
    *made.entry = {address, bytes, 0, 0};
    return true;
  }
  /// No stream uses the block at `address` any more. `bytes` are as the event has them.
  void complete(std::uint64_t address, std::uint64_t bytes) noexcept {
    is_used_ = true;
    if (const live_blocks::place found = pending_.find(address)) return end(found);
    unmatched_completions.add(bytes);
  }
  /// A deallocation was requested of a block that is not known.
  void note_unknown_request() noexcept { is_used_ = true; }

  /// Ends the segment that `history` got last. False if the system has no memory.
  [[nodiscard]] bool end_segment(const segment_history& history) noexcept { return !is_used_ || level_.end_segment(history); }
  /// Leaves out the segments that are no longer kept.
  void compact(const segment_history& history) noexcept { level_.compact(history); }

  /// Whether any event came.
  [[nodiscard]] bool is_used() const noexcept { return is_used_; }
  /// How many freed blocks streams may still use.
  [[nodiscard]] std::size_t pending() const noexcept { return pending_.size(); }
  /// The active bytes, in each segment.
  [[nodiscard]] const byte_level& level() const noexcept { return level_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return pending_.bytes() + level_.bytes(); }

  tally unmatched_completions;
  tally missing_completions;

 private:
  friend struct detail::frame_parts;

  void end(const live_blocks::place& found) noexcept {
    deallocate(static_cast<std::int64_t>(found->bytes));
    pending_.erase(found);
  }
  /// What waits at an address that comes again has been completed unseen.
  void end_unfinished(std::uint64_t address) noexcept {
    const live_blocks::place found = pending_.find(address);
    if (!found) return;
    missing_completions.add(found->bytes);
    end(found);
  }

  live_blocks pending_;
  byte_level level_;
  bool is_used_ = false;
};

}  // namespace memprof

// ---- <memprof/ledger/checkpoint_history.hpp>
// ---- <memprof/ledger/top_blocks.hpp>
// ---- <memprof/detail/heap.hpp>
#include <cstddef>

/// @file
/// The binary heap, for rows of plain values. The standard's `push_heap` and `sort` would do, but every translation unit that
/// includes the library pays for their instantiation: tens of milliseconds for each type of row.

namespace memprof::detail {

/// Moves the value at `position` down until no value below comes after it: the last in the order `before` is on top.
template <class T, class Before>
void sift_into_heap(T* values, std::size_t count, std::size_t position, Before before) noexcept {
  const T moving = values[position];
  for (;;) {
    std::size_t child = 2 * position + 1;
    if (child >= count) break;
    if (child + 1 < count && before(values[child], values[child + 1])) ++child;
    if (!before(moving, values[child])) break;
    values[position] = values[child];
    position = child;
  }
  values[position] = moving;
}

/// Adds the value at `values[count]` to the heap of `count` values.
template <class T, class Before>
void push_into_heap(T* values, std::size_t count, Before before) noexcept {
  const T moving = values[count];
  std::size_t position = count;
  while (position != 0) {
    const std::size_t parent = (position - 1) / 2;
    if (!before(values[parent], moving)) break;
    values[position] = values[parent];
    position = parent;
  }
  values[position] = moving;
}

/// Sorts by `before`, a strict order in which no two values are equivalent (heap sort keeps no order among equals).
template <class T, class Before>
void sort_rows(T* values, std::size_t count, Before before) noexcept {
  for (std::size_t position = count / 2; position-- > 0;) sift_into_heap(values, count, position, before);
  while (count > 1) {
    --count;
    const T last = values[0];
    values[0] = values[count];
    values[count] = last;
    sift_into_heap(values, count, 0, before);
  }
}

}  // namespace memprof::detail

#include <cstddef>
#include <cstdint>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// Whether `left` comes before `right` among the largest blocks: more bytes, or allocated earlier.
[[nodiscard]] inline bool is_larger(const block& left, const block& right) noexcept {
  return left.bytes != right.bytes ? left.bytes > right.bytes : left.born_thread < right.born_thread;
}

/// The `limit` largest of the blocks it was offered, in room that somebody else owns: a heap with the smallest on top.
struct top_blocks_view {
  block* blocks;
  std::uint32_t& count;
  std::uint32_t limit;

  void offer(const block& candidate) const noexcept {
    if (count < limit) {
      blocks[count] = candidate;
      detail::push_into_heap(blocks, count++, is_larger);
    } else if (limit != 0 && is_larger(candidate, blocks[0])) {
      blocks[0] = candidate;
      detail::sift_into_heap(blocks, count, 0, is_larger);
    }
  }
};

/// The largest blocks that were live at the peak of each of a growing row of segments, interval by interval.
///
/// A freed block was live at the peaks of a run of finished segments. It is offered to the aligned blocks of 1, 2, 4, ...
/// segments that make up the run (at most 2 log2 n of them), and a segment's largest are among those of the aligned blocks that
/// contain it. So a free never walks segments, a snapshot never walks blocks, and memory is 2 * limit blocks a segment.
class top_blocks_of_segments {
 public:
  explicit top_blocks_of_segments(std::uint32_t limit) noexcept : limit_(limit) {}

  /// Offers a block to the segments [first, last). False if the system has no memory.
  bool offer(std::size_t first, std::size_t last, const block& candidate) noexcept {
    for (std::size_t level = 0; first < last; ++level) {
      if ((first & 1) != 0 && !offer_to(level, first++, candidate)) return false;
      if ((last & 1) != 0 && first < last && !offer_to(level, --last, candidate)) return false;
      first >>= 1;
      last >>= 1;
    }
    return true;
  }

  /// Offers to `best` what is known of one segment.
  void collect(std::size_t segment, top_blocks_view best) const noexcept {
    for (std::size_t level = 0; level < max_levels; ++level, segment >>= 1) {
      if (segment >= counts_[level].size()) continue;
      const block* const known = blocks_[level].data() + segment * limit_;
      for (std::uint32_t index = 0; index < counts_[level][segment]; ++index) best.offer(known[index]);
    }
  }

  /// Leaves only the segments for which `is_kept(segment)`, of the first `count`; `scratch` has room for `limit` blocks.
  template <class IsKept>
  void compact(std::size_t count, IsKept&& is_kept, block* scratch) noexcept {
    // A segment's blocks move to a place of its own, at or before the one where it was: nothing that is still needed lies there.
    std::size_t kept = 0;
    for (std::size_t segment = 0; segment < count; ++segment) {
      if (!is_kept(segment)) continue;
      std::uint32_t found = 0;
      collect(segment, {scratch, found, limit_});
      set(kept++, scratch, found);
    }
    counts_[0].truncate(kept);
    blocks_[0].truncate(kept * limit_);
    for (std::size_t level = 1; level < max_levels; ++level) {
      counts_[level].clear();
      blocks_[level].clear();
    }
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t total = 0;
    for (std::size_t level = 0; level < max_levels; ++level) total += counts_[level].bytes() + blocks_[level].bytes();
    return total;
  }

 private:
  friend struct detail::frame_parts;

  static constexpr std::size_t max_levels = 32;

  /// Sets what is known of one segment alone. Without memory for it that is nothing.
  void set(std::size_t segment, const block* best, std::uint32_t count) noexcept {
    if (segment >= counts_[0].size() &&
        (count == 0 || !blocks_[0].resize((segment + 1) * limit_) || !counts_[0].resize(segment + 1))) {
      return;
    }
    counts_[0][segment] = count;
    for (std::uint32_t index = 0; index < count; ++index) blocks_[0][segment * limit_ + index] = best[index];
  }

  bool offer_to(std::size_t level, std::size_t index, const block& candidate) noexcept {
    auto& counts = counts_[level];
    auto& blocks = blocks_[level];
    if (index >= counts.size()) {
      if (!blocks.resize((index + 1) * limit_) || !counts.resize(index + 1)) return false;
    }
    top_blocks_view{blocks.data() + index * limit_, counts[index], limit_}.offer(candidate);
    return true;
  }

  std::uint32_t limit_;
  detail::page_array<std::uint32_t> counts_[max_levels];
  detail::page_array<block> blocks_[max_levels];
};

}  // namespace memprof

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// What was live at one moment, in all memory spaces together.
struct checkpoint_mark {
  label name;               ///< 0: the periodic ones
  std::uint32_t row_count;  ///< spaces
  std::uint64_t number;     ///< among all checkpoints, from 0
  std::uint64_t stamp;
  std::int64_t bytes;
  std::int64_t blocks;
  std::size_t first_row;
  bool is_first;  ///< of its name
};

/// The same in one memory space.
struct checkpoint_row {
  std::int64_t bytes;
  std::int64_t blocks;
  std::size_t first_block;
  std::uint32_t block_count;
  std::uint8_t space;
};

/// The checkpoints of a capture in bounded memory.
///
/// All are kept while they are few. Then only every second is, then every fourth, and so on, so that those that are kept are
/// spread evenly over a run of any length. The newest stays whatever its number, and so do the first of each name, the one with
/// the most live bytes and the one with the fewest.
class checkpoint_history {
 public:
  /// How many are kept.
  static constexpr std::size_t most_kept = 128;
  /// Of how many names the first checkpoint stays.
  static constexpr std::size_t most_names = 32;

  /// Begins the next checkpoint. False, and nothing changed, if the system has no memory.
  [[nodiscard]] bool begin(label name, std::uint64_t stamp) noexcept {
    drop_last_if_unwanted();
    if (marks_.size() >= most_kept) thin();
    checkpoint_mark begun{};
    begun.name = name;
    begun.number = count_;
    begun.stamp = stamp;
    begun.first_row = rows_.size();
    begun.is_first = is_new(name);
    if (!marks_.push_back(begun)) return false;
    ++count_;
    return true;
  }

  /// Adds a space to the checkpoint that was begun last, with so many of its largest blocks: a pass over its live ones. False if
  /// the system has no memory.
  [[nodiscard]] bool add(std::uint8_t space, const live_blocks& live, std::int64_t bytes, std::uint32_t largest) noexcept {
    checkpoint_row row{bytes, static_cast<std::int64_t>(live.size()), blocks_.size(), 0, space};
    const std::size_t room = std::min<std::size_t>(largest, live.size());
    if (!blocks_.resize(row.first_block + room)) return false;
    const top_blocks_view best{blocks_.data() + row.first_block, row.block_count, static_cast<std::uint32_t>(room)};
    live.for_each([&](const block& held) { best.offer(held); });
    if (!rows_.push_back(row)) {
      blocks_.truncate(row.first_block);
      return false;
    }
    checkpoint_mark& mark = marks_[marks_.size() - 1];
    ++mark.row_count;
    mark.bytes = detail::add_saturating(mark.bytes, row.bytes);
    mark.blocks += row.blocks;
    return true;
  }

  /// Takes back the checkpoint that was begun last.
  void abandon() noexcept {
    drop_last();
    --count_;
  }

  /// In the order of time.
  [[nodiscard]] const detail::page_array<checkpoint_mark>& marks() const noexcept { return marks_; }
  [[nodiscard]] const checkpoint_row* rows(const checkpoint_mark& mark) const noexcept { return rows_.data() + mark.first_row; }
  /// In no order.
  [[nodiscard]] const block* largest_blocks(const checkpoint_row& row) const noexcept { return blocks_.data() + row.first_block; }
  /// How many there were.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// How many blocks are kept for all of them.
  [[nodiscard]] std::size_t kept_blocks() const noexcept { return blocks_.size(); }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return marks_.bytes() + rows_.bytes() + blocks_.bytes(); }

 private:
  friend struct detail::frame_parts;

  /// Whether no checkpoint of the name is kept; not if there are too many names.
  [[nodiscard]] bool is_new(label name) const noexcept {
    std::size_t names = 0;
    for (const checkpoint_mark& mark : marks_) {
      if (!mark.is_first) continue;
      if (mark.name == name) return false;
      ++names;
    }
    return names < most_names;
  }

  /// The positions of those that stay because of their bytes, of equal ones the first.
  struct extremes {
    std::size_t least = 0;
    std::size_t greatest = 0;
  };
  [[nodiscard]] extremes find_extremes() const noexcept {
    extremes found;
    for (std::size_t position = 1; position < marks_.size(); ++position) {
      if (marks_[position].bytes < marks_[found.least].bytes) found.least = position;
      if (marks_[position].bytes > marks_[found.greatest].bytes) found.greatest = position;
    }
    return found;
  }

  [[nodiscard]] bool is_wanted(std::size_t position, const extremes& extreme) const noexcept {
    const checkpoint_mark& mark = marks_[position];
    return mark.number % stride_ == 0 || mark.is_first || position == extreme.least || position == extreme.greatest;
  }

  void drop_last_if_unwanted() noexcept {
    if (stride_ != 1 && !marks_.empty() && !is_wanted(marks_.size() - 1, find_extremes())) drop_last();
  }

  void drop_last() noexcept {
    const checkpoint_mark last = marks_[marks_.size() - 1];
    if (last.row_count != 0) blocks_.truncate(rows_[last.first_row].first_block);
    rows_.truncate(last.first_row);
    marks_.pop_back();
  }

  /// Drops those that were kept only as extremes, and every second of the others if that is not enough.
  void thin() noexcept {
    drop_unwanted();
    while (marks_.size() > most_kept / 4 * 3) {
      stride_ *= 2;
      drop_unwanted();
    }
  }

  void drop_unwanted() noexcept {
    const extremes extreme = find_extremes();
    std::size_t kept_marks = 0;
    std::size_t kept_rows = 0;
    std::size_t kept_blocks = 0;
    for (std::size_t position = 0; position < marks_.size(); ++position) {
      if (!is_wanted(position, extreme)) continue;
      checkpoint_mark mark = marks_[position];
      const std::size_t first_row = mark.first_row;
      mark.first_row = kept_rows;
      for (std::size_t index = 0; index < mark.row_count; ++index) {
        checkpoint_row row = rows_[first_row + index];
        const std::size_t first_block = row.first_block;
        row.first_block = kept_blocks;
        for (std::size_t each = 0; each < row.block_count; ++each) blocks_[kept_blocks++] = blocks_[first_block + each];
        rows_[kept_rows++] = row;
      }
      marks_[kept_marks++] = mark;
    }
    marks_.truncate(kept_marks);
    rows_.truncate(kept_rows);
    blocks_.truncate(kept_blocks);
  }

  std::uint64_t count_ = 0;
  std::uint64_t stride_ = 1;  ///< a power of two: of the numbers, multiples of it stay
  detail::page_array<checkpoint_mark> marks_;
  detail::page_array<checkpoint_row> rows_;
  detail::page_array<block> blocks_;
};

}  // namespace memprof

// ---- <memprof/ledger/core_ledger.hpp>
#include <cstddef>
#include <cstdint>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// Bytes on one core, or peaks of them.
struct core_usage {
  std::int64_t circular_buffers;
  std::int64_t buffers;
  std::int64_t total;  ///< of live bytes the sum; of peaks that of the sum, which is not the sum of the peaks

  void add(buffer_kind kind, std::int64_t bytes) noexcept {
    (kind == buffer_kind::circular_buffer ? circular_buffers : buffers) += bytes;
    total += bytes;
  }
  void raise_to(const core_usage& other) noexcept {
    if (other.circular_buffers > circular_buffers) circular_buffers = other.circular_buffers;
    if (other.buffers > buffers) buffers = other.buffers;
    if (other.total > total) total = other.total;
  }
};

/// The greatest peaks of some cores; the three need not be of one core.
struct core_maxima {
  core_usage peak;
  std::uint8_t busiest_x;  ///< the core with the greatest `total`, of equal ones the first, row after row
  std::uint8_t busiest_y;
};

/// What one memory space holds on each core of a device: the only place that knows peaks of a core.
///
/// A peak in a segment is the greatest number of live bytes within it, blocks of earlier segments included, since they take
/// space on the core too. Memory is bounded by the cores up to the farthest one used, live blocks, different rectangles and
/// segments; there is none until the first block.
class core_ledger {
 public:
  /// False until the first block: the space is not one of cores.
  [[nodiscard]] bool is_used() const noexcept { return !ranges_.empty(); }

  // --- events -------------------------------------------------------------------------------------------------------

  /// Adds a block; one that lives at the address makes room. `cores` are valid, and the sum of all bytes on all cores fits in 63
  /// bits; `born_thread` is the block's in the space. False, and the block is not there, if the system has no memory.
  [[nodiscard]] bool allocate(std::uint64_t address, std::uint64_t bytes, const core_range& cores, buffer_kind kind,
                              std::uint64_t born_thread) noexcept {
    if (!reach(cores) || !note(cores)) return false;
    deallocate(address);
    live_blocks& table = blocks_[static_cast<std::size_t>(kind)];
    // Reserved here, so that the frees of all circular buffers cannot fail.
    if (kind == buffer_kind::circular_buffer && !ended_.reserve(table.size() + 1)) return false;
    block* const entry = table.insert(address).entry;
    if (entry == nullptr) return false;
    entry->bytes = bytes;
    entry->born_thread = born_thread;
    entry->owner = cores.packed();
    change(cores, kind, static_cast<std::int64_t>(bytes));
    return true;
  }

  /// Takes a block away; nothing happens if there is none.
  void deallocate(std::uint64_t address) noexcept {
    deallocate(address, buffer_kind::buffer);
    deallocate(address, buffer_kind::circular_buffer);
  }

  /// Takes every circular buffer away that has a core among `cores`, and returns the addresses, in no particular order. They hold
  /// until the next event.
  [[nodiscard]] const detail::page_array<std::uint64_t>& deallocate_circular_buffers(const core_range& cores) noexcept {
    ended_.clear();
    blocks_[static_cast<std::size_t>(buffer_kind::circular_buffer)].for_each([&](const block& live) {
      if (cores_of(live).overlaps(cores)) (void)ended_.push_back(live.address);
    });
    for (const std::uint64_t address : ended_) deallocate(address, buffer_kind::circular_buffer);
    return ended_;
  }

  /// Ends the segment that `history` got last. Costs a pass over the cores. False if the system has no memory.
  [[nodiscard]] bool end_segment(const segment_history& history) noexcept {
    if (!is_used()) return true;
    const core_maxima greatest = open_segment();
    for (core_state& core : grid_) {
      core.overall.raise_to(core.peak);
      core.peak = core.live;
    }
    const core_usage& peak = greatest.peak;
    if (!segments_.resize(history.marks().size()) || !by_name_.add(history, {peak.circular_buffers, peak.buffers, peak.total})) {
      return false;
    }
    segments_.back() = greatest;
    return true;
  }
  /// Leaves out the segments that are no longer kept.
  void compact(const segment_history& history) noexcept { history.compact(segments_); }

  // --- what reports ask ---------------------------------------------------------------------------------------------

  /// One for each mark of the history, or fewer if there was no memory; zeros before the first block.
  [[nodiscard]] const detail::page_array<core_maxima>& segments() const noexcept { return segments_; }
  /// Peaks of circular buffers, of buffers, and of their sum.
  [[nodiscard]] const summaries_by_name<3>& by_name() const noexcept { return by_name_; }
  /// What lies now on the fullest of some cores; its `total` is of `busiest_x` and `busiest_y`.
  [[nodiscard]] core_maxima fullest(const core_range& among) const noexcept {
    return greatest(among, [](const core_state& core) { return core.live; });
  }
  /// Calls `visit(const block&)` for every block on any of `cores`: `bytes` are those on each core, `owner` is the packed
  /// rectangle. Costs a pass over the blocks.
  template <class Visitor>
  void for_each_block(const core_range& cores, Visitor&& visit) const {
    for (const live_blocks& table : blocks_) {
      table.for_each([&](const block& live) {
        if (cores_of(live).overlaps(cores)) visit(live);
      });
    }
  }
  /// The segment that has not ended.
  [[nodiscard]] core_maxima open_segment() const noexcept {
    return greatest(any_core, [](const core_state& core) { return core.peak; });
  }
  /// All segments together, on the cores of `among`.
  [[nodiscard]] core_maxima overall(const core_range& among) const noexcept {
    return greatest(among, [](const core_state& core) {
      core_usage peak = core.overall;
      peak.raise_to(core.peak);
      return peak;
    });
  }
  /// The different rectangles of the blocks so far, packed, in the order of their first block.
  [[nodiscard]] const detail::page_array<std::uint32_t>& ranges() const noexcept { return ranges_; }

  /// How many cores a pass over all of them looks at.
  [[nodiscard]] std::size_t grid_size() const noexcept { return grid_.size(); }

  /// Bytes taken from the system, without the object itself.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return grid_.bytes() + blocks_[0].bytes() + blocks_[1].bytes() + known_ranges_.bytes() + ranges_.bytes() + ended_.bytes() +
           segments_.bytes() + by_name_.bytes();
  }

 private:
  friend struct detail::frame_parts;

  struct core_state {
    core_usage live;
    core_usage peak;     ///< in the open segment
    core_usage overall;  ///< in the finished segments
  };

  [[nodiscard]] static core_range cores_of(const block& live) noexcept {
    return core_range::unpacked(static_cast<std::uint32_t>(live.owner));
  }

  void deallocate(std::uint64_t address, buffer_kind kind) noexcept {
    live_blocks& table = blocks_[static_cast<std::size_t>(kind)];
    const live_blocks::place found = table.find(address);
    if (!found) return;
    change(cores_of(*found.entry), kind, -static_cast<std::int64_t>(found->bytes));
    table.erase(found);
  }

  void change(const core_range& cores, buffer_kind kind, std::int64_t bytes) noexcept {
    for (std::size_t y = cores.y0; y <= cores.y1; ++y) {
      for (std::size_t x = cores.x0; x <= cores.x1; ++x) {
        core_state& core = grid_[y * columns_ + x];
        core.live.add(kind, bytes);
        core.peak.raise_to(core.live);
      }
    }
  }

  template <class Peak>
  [[nodiscard]] core_maxima greatest(const core_range& among, Peak&& peak_of) const noexcept {
    core_maxima result{};
    for (std::size_t y = among.y0; y <= among.y1 && y < rows_; ++y) {
      for (std::size_t x = among.x0; x <= among.x1 && x < columns_; ++x) {
        const core_usage peak = peak_of(grid_[y * columns_ + x]);
        if (peak.total > result.peak.total) {
          result.busiest_x = static_cast<std::uint8_t>(x);
          result.busiest_y = static_cast<std::uint8_t>(y);
        }
        result.peak.raise_to(peak);
      }
    }
    return result;
  }

  /// Lets the grid hold the last of `cores`; false if the system has no memory.
  [[nodiscard]] bool reach(const core_range& cores) noexcept {
    if (cores.x1 < columns_ && cores.y1 < rows_) return true;
    const std::size_t columns = cores.x1 < columns_ ? columns_ : cores.x1 + std::size_t{1};
    const std::size_t rows = cores.y1 < rows_ ? rows_ : cores.y1 + std::size_t{1};
    detail::page_array<core_state> larger;
    if (!larger.resize(columns * rows)) return false;
    for (std::size_t y = 0; y < rows_; ++y) {
      for (std::size_t x = 0; x < columns_; ++x) larger[y * columns + x] = grid_[y * columns_ + x];
    }
    grid_ = static_cast<detail::page_array<core_state>&&>(larger);
    columns_ = columns;
    rows_ = rows;
    return true;
  }

  /// Adds a rectangle to those that are known; false if the system has no memory.
  [[nodiscard]] bool note(const core_range& cores) noexcept {
    if (known_ranges_.find(cores.packed())) return true;
    if (!ranges_.reserve(ranges_.size() + 1) || known_ranges_.insert(cores.packed()).entry == nullptr) return false;
    return ranges_.push_back(cores.packed());
  }

  detail::page_array<core_state> grid_;  ///< row after row
  std::size_t columns_ = 0;
  std::size_t rows_ = 0;
  live_blocks blocks_[2];     ///< by `buffer_kind`, as `for_each_block` tells them
  live_blocks known_ranges_;  ///< `ranges_` as a set
  detail::page_array<std::uint32_t> ranges_;
  detail::page_array<std::uint64_t> ended_;
  detail::page_array<core_maxima> segments_;
  summaries_by_name<3> by_name_;
};

}  // namespace memprof

// ---- <memprof/ledger/operation_stats.hpp>
#include <cstdint>

namespace memprof {

/// Bytes and blocks that one owner has live, and what it had at the space's last peak.
///
/// A new peak only raises the space's `epoch`. An owner that changes afterwards first keeps its present values as those of the
/// peak; one that has not changed since still has them. So a peak costs nothing per owner.
struct owner_stats {
  // Bytes and blocks do not lie side by side: compilers would move them as one vector, which is slower than two additions.
  std::int64_t live;
  std::int64_t live_before_change;
  std::uint64_t changed_epoch;
  std::int64_t blocks;
  std::int64_t blocks_before_change;

  void change(std::uint64_t epoch, std::int64_t bytes, std::int64_t count) noexcept {
    if (changed_epoch != epoch) {
      live_before_change = live;
      blocks_before_change = blocks;
      changed_epoch = epoch;
    }
    live += bytes;
    blocks += count;
  }
  /// The same for what was wrong all along: the values at the peak change as well.
  void correct(std::uint64_t epoch, std::int64_t bytes, std::int64_t count) noexcept {
    change(epoch, bytes, count);
    live_before_change += bytes;
    blocks_before_change += count;
  }
  [[nodiscard]] std::int64_t live_at_peak(std::uint64_t epoch) const noexcept {
    return changed_epoch == epoch ? live_before_change : live;
  }
  [[nodiscard]] std::int64_t blocks_at_peak(std::uint64_t epoch) const noexcept {
    return changed_epoch == epoch ? blocks_before_change : blocks;
  }
};

/// One finished invocation of an operation in one memory space.
struct invocation_record {
  std::uint64_t begin_stamp;
  std::uint64_t end_stamp;
  std::int64_t delta;  ///< inclusive, as the peak
  std::int64_t peak;
  std::uint32_t thread;
};

/// One operation in one memory space. Self values; the tree sums them to inclusive ones.
struct operation_stats {
  owner_stats owned;
  std::int64_t allocated;
  std::int64_t freed;
  std::int64_t allocation_count;
  std::int64_t deallocation_count;
  std::int64_t max_delta;  ///< inclusive; meaningful if `finished` is not 0
  std::int64_t finished;   ///< invocations that ended after this space was first used by their thread
  std::int64_t peak;       ///< inclusive
  std::int64_t self_peak;
  std::int64_t changing;  ///< finished invocations with a delta or a peak; the next three are meaningful if it is not 0
  invocation_record first;
  invocation_record last;
  invocation_record largest;  ///< the first with the greatest peak

  void finish(const invocation_record& run, std::int64_t self_max) noexcept {
    if (finished++ == 0 || run.delta > max_delta) max_delta = run.delta;
    note_peak(run.peak, self_max);
    if ((run.delta | run.peak) == 0) return;
    if (changing++ == 0) first = largest = run;
    last = run;
    if (run.peak > largest.peak) largest = run;
  }
  void note_peak(std::int64_t inclusive, std::int64_t self) noexcept {
    if (inclusive > peak) peak = inclusive;
    if (self > self_peak) self_peak = self;
  }
};

}  // namespace memprof

// ---- <memprof/ledger/operation_tree.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// Which operation was called within which: a node is a path of names. Node 0 is "no operation".
///
/// Nodes are made when a path first occurs and never go away; parents have smaller numbers than their children. When there are
/// as many as there may be, each node gets at most one more child, of the name `other_names`: it stands for all others.
class operation_tree {
 public:
  struct node {
    std::uint32_t parent;
    label name;
    std::int64_t invocations;
    std::int64_t finished;  ///< invocations that have ended
  };

  /// At most `limit` operations, and one more within each of them and within none.
  explicit operation_tree(std::uint32_t limit = ~std::uint32_t{0}) noexcept : limit_(limit) {
    is_usable_ = nodes_.push_back({}) && slots_.resize(256);
  }

  /// At least 1, even if the system had no memory for the tree.
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.empty() ? 1 : nodes_.size(); }
  [[nodiscard]] const node& operator[](std::size_t index) const noexcept { return nodes_[index]; }
  void count_invocation(std::uint32_t index) noexcept {
    if (index != 0) ++nodes_[index].invocations;
  }
  void count_finished(std::uint32_t index) noexcept {
    if (index != 0) ++nodes_[index].finished;
  }

  /// The node of `name` under `parent`, made if it is new; `parent` itself if the system has no memory. What is called within the
  /// node of all others once there are too many is that node.
  [[nodiscard]] std::uint32_t child(std::uint32_t parent, label name) noexcept {
    if (!is_usable_) return 0;
    std::size_t slot = slot_of(parent, name, slots_.size());
    for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
      const node& known = nodes_[slots_[slot]];
      if (known.parent == parent && known.name == name) return slots_[slot];
    }
    return make_child(parent, name, slot);
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return nodes_.bytes() + slots_.bytes(); }

 private:
  friend struct detail::frame_parts;

  [[gnu::cold, gnu::noinline]] std::uint32_t make_child(std::uint32_t parent, label name, std::size_t slot) noexcept {
    if (name == other_names || nodes_.size() > limit_) {
      if (parent != 0 && nodes_[parent].name == other_names) return parent;
      if (name != other_names) return child(parent, other_names);
    }
    if (2 * (nodes_.size() + 1) > slots_.size()) {
      if (!grow()) return parent;
      slot = free_slot(slots_, parent, name);
    }
    if (!nodes_.push_back({parent, name, 0, 0})) return parent;
    return slots_[slot] = static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  [[nodiscard]] static std::size_t slot_of(std::uint32_t parent, label name, std::size_t slots) noexcept {
    const std::uint64_t key = std::uint64_t{parent} << 32 | name;
    return std::size_t{(key * 0x9E3779B97F4A7C15U) >> 32} & (slots - 1);
  }

  [[nodiscard]] static std::size_t free_slot(const detail::page_array<std::uint32_t>& slots, std::uint32_t parent,
                                             label name) noexcept {
    std::size_t slot = slot_of(parent, name, slots.size());
    while (slots[slot] != 0) slot = (slot + 1) & (slots.size() - 1);
    return slot;
  }

  [[nodiscard]] bool grow() noexcept {
    detail::page_array<std::uint32_t> slots;
    if (!slots.resize(2 * slots_.size())) return false;
    for (std::size_t index = 1; index < nodes_.size(); ++index) {
      slots[free_slot(slots, nodes_[index].parent, nodes_[index].name)] = static_cast<std::uint32_t>(index);
    }
    slots_ = std::move(slots);
    return true;
  }

  std::uint32_t limit_;
  bool is_usable_ = false;
  detail::page_array<node> nodes_;
  detail::page_array<std::uint32_t> slots_;
};

}  // namespace memprof

// ---- <memprof/ledger/out_of_memory_ledger.hpp>
#include <cstddef>
#include <cstdint>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// An allocation that a device had no memory for, and what was held then; bytes.
struct out_of_memory_record {
  std::int64_t requested;
  std::int64_t device_free;
  std::int64_t live;
  std::int64_t reserved;
  std::uint64_t stamp;
  std::uint64_t segment;    ///< its number
  std::uint32_t operation;  ///< the innermost, on the thread that asked
};

/// The first `max_kept` of them, and how many there were beyond: a program may try again and again.
class out_of_memory_ledger {
 public:
  static constexpr std::size_t max_kept = 32;

  void add(const out_of_memory_record& failed) noexcept {
    if (kept_.size() == max_kept || !kept_.push_back(failed)) further_.add(static_cast<std::uint64_t>(failed.requested));
  }

  [[nodiscard]] const detail::page_array<out_of_memory_record>& kept() const noexcept { return kept_; }
  [[nodiscard]] const tally& further() const noexcept { return further_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return kept_.bytes(); }

 private:
  friend struct detail::frame_parts;

  detail::page_array<out_of_memory_record> kept_;
  tally further_;
};

}  // namespace memprof

// ---- <memprof/ledger/reserved_ledger.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// What a caching allocator has taken from the device and not given back, as ranges of addresses: an allocator may give back
/// another range than it took, as expandable segments do. An event costs a step for each range behind its own; there are some
/// thousand at most.
class reserved_ledger {
 public:
  /// What lies in the range already counts as given back. False if the event must be rejected: no bytes, a range beyond the last
  /// address, or the totals or the system have no room for it.
  [[nodiscard]] bool reserve(std::uint64_t address, std::uint64_t bytes) noexcept {
    const std::uint64_t end = address + bytes;
    if (bytes == 0 || end < address || !ranges_.reserve(ranges_.size() + 2)) return false;
    if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - current())) return false;
    is_used_ = true;
    const std::uint64_t replaced = erase(address, end);
    if (replaced != 0) replaced_reservations.add(replaced);
    insert(first_behind(address), {address, end});
    level_.change(static_cast<std::int64_t>(bytes));
    return true;
  }

  /// Gives back the part of the range that is held; the rest is counted. `bytes` 0: all of the range that begins at `address`.
  /// False, and nothing changed, if the system has no memory.
  [[nodiscard]] bool release(std::uint64_t address, std::uint64_t bytes) noexcept {
    if (!ranges_.reserve(ranges_.size() + 1)) return false;
    is_used_ = true;
    if (bytes == 0) bytes = bytes_from(address);
    const std::uint64_t end = address + std::min(bytes, std::numeric_limits<std::uint64_t>::max() - address);
    const std::uint64_t released = bytes == 0 ? 0 : erase(address, end);
    if (bytes == 0 || released < bytes) unmatched_releases.add(bytes - released);
    return true;
  }

  /// Ends the segment that `history` got last. False if the system has no memory.
  [[nodiscard]] bool end_segment(const segment_history& history) noexcept { return !is_used_ || level_.end_segment(history); }
  /// Leaves out the segments that are no longer kept.
  void compact(const segment_history& history) noexcept { level_.compact(history); }

  /// Whether any event came.
  [[nodiscard]] bool is_used() const noexcept { return is_used_; }
  /// How many ranges are held.
  [[nodiscard]] std::size_t ranges() const noexcept { return ranges_.size(); }
  [[nodiscard]] std::int64_t current() const noexcept { return level_.current(); }
  [[nodiscard]] std::int64_t peak() const noexcept { return level_.peak(); }
  /// What is held, in each segment.
  [[nodiscard]] const byte_level& level() const noexcept { return level_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return ranges_.bytes() + level_.bytes(); }

  tally unmatched_releases;
  tally replaced_reservations;

 private:
  friend struct detail::frame_parts;

  struct range {
    std::uint64_t begin;
    std::uint64_t end;
  };

  /// The first range that ends behind `address`.
  [[nodiscard]] std::size_t first_behind(std::uint64_t address) const noexcept {
    return detail::partition_point(ranges_.size(), [&](std::size_t index) { return ranges_[index].end <= address; });
  }

  /// The size of the range that begins at `address`, or 0.
  [[nodiscard]] std::uint64_t bytes_from(std::uint64_t address) const noexcept {
    const std::size_t index = first_behind(address);
    return index != ranges_.size() && ranges_[index].begin == address ? ranges_[index].end - address : 0;
  }

  /// Takes [begin, end) out of the ranges and returns how many bytes of it were in them. There is room for one range more.
  std::uint64_t erase(std::uint64_t begin, std::uint64_t end) noexcept {
    std::uint64_t erased = 0;
    const std::size_t first = first_behind(begin);
    std::size_t last = first;
    for (; last < ranges_.size() && ranges_[last].begin < end; ++last) {
      erased += std::min(end, ranges_[last].end) - std::max(begin, ranges_[last].begin);
    }
    if (first == last) return 0;
    const range left{ranges_[first].begin, begin};
    const range right{end, ranges_[last - 1].end};
    remove(first, last);
    if (right.begin < right.end) insert(first, right);
    if (left.begin < left.end) insert(first, left);
    level_.change(-static_cast<std::int64_t>(erased));
    return erased;
  }

  void insert(std::size_t index, const range& added) noexcept {
    (void)ranges_.push_back(added);  // its callers have made room
    range* const place = ranges_.data() + index;
    std::memmove(place + 1, place, (ranges_.size() - 1 - index) * sizeof(range));
    *place = added;
  }

  void remove(std::size_t first, std::size_t last) noexcept {
    std::memmove(ranges_.data() + first, ranges_.data() + last, (ranges_.size() - last) * sizeof(range));
    for (std::size_t count = last - first; count > 0; --count) ranges_.pop_back();
  }

  detail::page_array<range> ranges_;  ///< disjoint, by address
  byte_level level_;
  bool is_used_ = false;
};

}  // namespace memprof

// ---- <memprof/ledger/scope_stack.hpp>
#include <cstdint>
#include <new>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// One open operation of a thread.
struct open_scope {
  std::uint32_t operation;
  label name;
  std::uint32_t number;  ///< as its thread counts them
  std::uint16_t tag;     ///< category of what is allocated in it, plus one; 0: none was given here or further out
  std::uint64_t begin_stamp;
};

/// What happened in one memory space while one scope was open on its thread.
struct scope_usage {
  std::int64_t self_net;   ///< bytes allocated minus bytes freed in this scope itself
  std::int64_t self_max;   ///< greatest `self_net`
  std::int64_t inner_net;  ///< the same of the scopes within that have ended
  std::int64_t max_net;    ///< greatest `self_net + inner_net`, counting what inner scopes reached meanwhile

  void allocate(std::int64_t bytes) noexcept {
    self_net += bytes;
    if (self_net > self_max) self_max = self_net;
    if (self_net + inner_net > max_net) max_net = self_net + inner_net;
  }
  void deallocate(std::int64_t bytes) noexcept { self_net -= bytes; }

  [[nodiscard]] std::int64_t net() const noexcept { return self_net + inner_net; }
  /// The greatest net of this scope if the scope within it, now open or just ended, reached `inner_max`.
  [[nodiscard]] std::int64_t max_with(std::int64_t inner_max) const noexcept {
    return net() + inner_max > max_net ? net() + inner_max : max_net;
  }
};

/// The usage of one thread's open operations in one memory space: entry 0 is the thread outside any operation.
using space_scopes = detail::page_array<scope_usage>;

/// The operations open on one thread, in order, with their running usage in each memory space the thread touched.
class scope_stack {
 public:
  static constexpr std::uint32_t max_spaces = 256;
  /// Programs nest some ten operations. One that forgets to end them is counted, not followed further.
  static constexpr std::size_t max_depth = 256;

  scope_stack() = default;
  scope_stack(const scope_stack&) = delete;
  scope_stack& operator=(const scope_stack&) = delete;
  ~scope_stack() {
    for (std::uint32_t index = 0; index < used_count_; ++index) {
      space_scopes* const scopes = by_space_[used_[index]];
      scopes->~space_scopes();
      detail::unmap_pages(scopes, sizeof(space_scopes));
    }
  }

  [[nodiscard]] bool empty() const noexcept { return scopes_.empty(); }
  [[nodiscard]] std::size_t depth() const noexcept { return scopes_.size(); }
  [[nodiscard]] const open_scope& operator[](std::size_t index) const noexcept { return scopes_[index]; }
  [[nodiscard]] const open_scope& innermost() const noexcept { return scopes_[scopes_.size() - 1]; }
  /// 0 if no scope is open.
  [[nodiscard]] std::uint32_t innermost_number() const noexcept { return scopes_.empty() ? 0 : innermost().number; }
  [[nodiscard]] std::uint32_t operation() const noexcept { return scopes_.empty() ? 0 : innermost().operation; }
  [[nodiscard]] std::uint16_t tag() const noexcept { return scopes_.empty() ? std::uint16_t{0} : innermost().tag; }

  /// Opens a scope; false if the system has no memory, and then nothing changed.
  [[nodiscard]] bool push(const open_scope& scope) noexcept {
    if (!scopes_.push_back(scope)) return false;
    for (std::uint32_t index = 0; index < used_count_; ++index) {
      if (by_space_[used_[index]]->push_back({})) continue;
      while (index-- > 0) by_space_[used_[index]]->pop_back();
      scopes_.pop_back();
      return false;
    }
    return true;
  }

  /// Where the scope of that number is, counted from the outermost; `depth()` if it is not open.
  [[nodiscard]] std::size_t find(std::uint32_t number) const noexcept {
    // The innermost is the one that ends next, nearly always.
    for (std::size_t index = scopes_.size(); index-- > 0;) {
      if (scopes_[index].number == number) return index;
    }
    return scopes_.size();
  }

  /// Closes the scope at `index` and calls `finish(scope, space, usage)` for each space this thread touched, where `usage` counts
  /// the scopes within that have ended. Those within that are still open go on in the one around it.
  template <class Finish>
  void close(std::size_t index, Finish&& finish) noexcept {
    for (std::uint32_t used = 0; used < used_count_; ++used) {
      space_scopes& scopes = *by_space_[used_[used]];
      const std::size_t position = index + 1;  // entry 0 is outside
      std::int64_t inner_net = 0;
      std::int64_t inner_max = 0;
      for (std::size_t inner = scopes.size() - 1; inner > position; --inner) {
        inner_max = scopes[inner].max_with(inner_max);
        inner_net += scopes[inner].net();
      }
      scope_usage ended = scopes[position];
      ended.max_net = ended.max_with(inner_max);
      scope_usage& outer = scopes[position - 1];
      outer.max_net = outer.max_with(ended.max_net);
      outer.inner_net += ended.net();
      ended.inner_net += inner_net;
      scopes.erase(position);
      finish(scopes_[index], used_[used], ended);
    }
    scopes_.erase(index);
  }

  /// Closes the innermost scope and calls `finish` as above.
  template <class Finish>
  void close_innermost(Finish&& finish) noexcept {
    for (std::uint32_t index = 0; index < used_count_; ++index) {
      space_scopes& scopes = *by_space_[used_[index]];
      const scope_usage ended = scopes.back();
      scopes.pop_back();
      scope_usage& outer = scopes.back();
      outer.max_net = outer.max_with(ended.max_net);
      outer.inner_net += ended.net();
      finish(innermost(), used_[index], ended);
    }
    scopes_.pop_back();
  }

  /// The usage of the space's open scopes, made when the thread first touches the space; null if there is no memory.
  [[nodiscard]] space_scopes* in_space(std::uint8_t space) noexcept {
    if (by_space_[space] != nullptr) [[likely]]
      return by_space_[space];
    void* const pages = detail::map_pages(sizeof(space_scopes));
    if (pages == nullptr) return nullptr;
    space_scopes* const scopes = new (pages) space_scopes;
    if (!scopes->resize(scopes_.size() + 1)) {
      detail::unmap_pages(pages, sizeof(space_scopes));
      return nullptr;
    }
    by_space_[space] = scopes;
    used_[used_count_++] = space;
    return scopes;
  }

  /// Calls `visit(space, scopes)` for each space this thread touched.
  template <class Visitor>
  void for_each_space(Visitor&& visit) const {
    for (std::uint32_t index = 0; index < used_count_; ++index) visit(used_[index], *by_space_[used_[index]]);
  }

  /// Bytes taken from the system, without the object itself.
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t total = scopes_.bytes();
    for_each_space([&](std::uint8_t, const space_scopes& scopes) { total += sizeof(space_scopes) + scopes.bytes(); });
    return total;
  }

 private:
  friend struct detail::frame_parts;

  detail::page_array<open_scope> scopes_;
  std::uint32_t used_count_ = 0;
  std::uint8_t used_[max_spaces] = {};
  space_scopes* by_space_[max_spaces] = {};
};

}  // namespace memprof

// ---- <memprof/ledger/segment_record.hpp>
#include <array>
#include <cstddef>
#include <cstdint>

namespace memprof {

/// What an operation had live at a peak.
struct owner_at_peak {
  std::uint32_t operation;
  std::int64_t bytes;
  std::int64_t blocks;
};

/// The order of owners in reports: more bytes first, and among equals the operation that was called earlier.
[[nodiscard]] inline bool holds_more(const owner_at_peak& left, const owner_at_peak& right) noexcept {
  return left.bytes != right.bytes ? left.bytes > right.bytes : left.operation < right.operation;
}

/// What a category had live at a peak.
struct category_at_peak {
  std::int64_t bytes;
  std::int64_t blocks;
};

/// One finished (or the open) segment of one memory space.
struct segment_record {
  std::int64_t live_at_start;
  std::int64_t live_at_end;
  std::int64_t live_at_peak;
  std::int64_t allocated;
  std::int64_t allocation_count;
  std::int64_t blocks_at_start;
  std::int64_t blocks_at_end;
  std::int64_t blocks_at_peak;
  std::uint64_t peak_ordinal;  ///< ordinal of the allocation that reached the peak
  std::uint64_t peak_stamp;
  std::uint32_t peak_operation;
  std::uint32_t owner_count;  ///< rows kept in the space's owner table
  std::size_t first_owner;
  std::int64_t remaining_bytes;  ///< of operations that were not kept
  std::int64_t remaining_operations;
  std::int64_t cumulative_peak;  ///< greatest live bytes of the space until its end
  std::array<category_at_peak, category_names.size()> categories;
};

}  // namespace memprof

// ---- <memprof/ledger/shared_memory.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace memprof {

class space_ledger;

namespace detail {
struct frame_parts;
}

/// A memory in which two or more spaces lie, and its joint peak: the greatest sum of what they hold at one moment.
///
/// Only one of the spaces changes at a time, so an event costs no sum: while a space is `active`, the joint peak is exceeded when
/// its own live bytes are more than the peak less what the others hold. The ledger says when another space becomes active.
class shared_memory {
 public:
  explicit shared_memory(label named) noexcept : name(named) {}

  /// The greatest that the active space may hold without exceeding the joint peak.
  [[nodiscard]] std::int64_t room_of_active() const noexcept { return saturated(peak - others); }
  /// The active space holds `live` bytes, more than ever fitted below the peak.
  void raise(std::int64_t live, std::uint64_t stamp, std::uint64_t segment, std::uint32_t operation) noexcept {
    peak = others + live;
    ++peaks;
    peak_stamp = stamp;
    peak_segment = segment;
    peak_operation = operation;
    peak_space = active_id;
    lone_space = any_space;
  }

  /// Sums of several spaces may be beyond what 64 bits hold; a profile has the greatest number instead.
  [[nodiscard]] static std::int64_t saturated(detail::int128 bytes) noexcept {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    return bytes > most ? most : static_cast<std::int64_t>(bytes);
  }

  label name;
  std::uint8_t active_id = any_space;
  std::uint8_t peak_space = any_space;  ///< whose allocation reached the peak
  /// The space that was the only one when the peak was reached: its own overall peak says all about it. `any_space`: there were
  /// several, or none.
  std::uint8_t lone_space = any_space;
  bool is_known = true;    ///< false: a key frame of an older memprof did not have it
  bool is_pinned = false;  ///< `pinned_segment` is kept for the peak's sake
  space_ledger* active = nullptr;
  detail::int128 others = 0;  ///< live bytes of all spaces but the active one
  detail::int128 peak = 0;
  std::uint64_t peaks = 1;  ///< how often the peak was raised, and one
  std::uint64_t peak_stamp = 0;
  std::uint64_t peak_segment = 0;  ///< number
  std::uint64_t pinned_segment = 0;
  std::uint32_t peak_operation = 0;
};

/// What one space had of a shared memory's joint peak: the blocks born until then that are live now, and those freed since, of
/// which the owners are summed up and the largest are kept.
class memory_share {
 public:
  memory_share(shared_memory* memory, std::uint8_t space, std::uint32_t largest_blocks) noexcept
      : memory_(memory), limit_(largest_blocks), space_(space) {
    is_usable_ = freed_largest_.resize(largest_blocks);
  }

  /// False if the system had no memory for it.
  [[nodiscard]] bool is_usable() const noexcept { return is_usable_; }
  [[nodiscard]] shared_memory& memory() const noexcept { return *memory_; }
  /// The id of the space.
  [[nodiscard]] std::uint8_t space() const noexcept { return space_; }

  /// Before the space changes: if the joint peak was raised since it last did, then while it had just what it has now.
  void settle(std::uint64_t ordinal, std::int64_t live, std::size_t blocks) noexcept {
    if (seen_ != memory_->peaks) begin_peak(ordinal, live, blocks);
  }
  /// The space itself has raised the peak.
  void begin_peak(std::uint64_t ordinal, std::int64_t live, std::size_t blocks) noexcept {
    seen_ = memory_->peaks;
    ordinal_ = ordinal;
    live_ = live;
    blocks_ = static_cast<std::int64_t>(blocks);
    freed_count_ = 0;
    ++epoch_;
  }
  void remember_freed(const block& freed) noexcept {
    if (freed.born() > ordinal_) return;
    add(by_category_[freed.category()], freed);
    // Without memory for its row, an operation's bytes are among those outside every operation.
    const std::uint32_t node = freed.operation();
    if (node < by_operation_.size() || by_operation_.resize(node + std::size_t{1})) add(by_operation_[node], freed);
    top_blocks_view{freed_largest_.data(), freed_count_, limit_}.offer(freed);
  }

  /// Whether the peak was raised since the space last changed; then it had just what it has now.
  [[nodiscard]] bool is_unchanged_since_peak() const noexcept { return seen_ != memory_->peaks; }
  /// Blocks of the space that were born until then were live at the peak, unless they were freed before.
  [[nodiscard]] std::uint64_t ordinal() const noexcept { return ordinal_; }
  [[nodiscard]] std::int64_t live() const noexcept { return live_; }
  [[nodiscard]] std::int64_t blocks() const noexcept { return blocks_; }
  /// What was freed since the peak of what was live at it.
  [[nodiscard]] category_at_peak freed_of_category(std::size_t category) const noexcept {
    return current(by_category_[category]);
  }
  [[nodiscard]] std::size_t operation_count() const noexcept { return by_operation_.size(); }
  [[nodiscard]] category_at_peak freed_of_operation(std::size_t node) const noexcept { return current(by_operation_[node]); }
  /// Calls `visit(block)` for the largest of those.
  template <class Visitor>
  void for_each_large_freed(Visitor&& visit) const {
    for (std::uint32_t index = 0; index < freed_count_; ++index) visit(freed_largest_[index]);
  }

  /// Bytes taken from the system, without the object itself.
  [[nodiscard]] std::size_t bytes() const noexcept { return by_operation_.bytes() + freed_largest_.bytes(); }

 private:
  friend struct detail::frame_parts;

  /// Of the peak that `epoch` counts; of an older one it means nothing.
  struct freed_bytes {
    std::int64_t bytes;
    std::int64_t blocks;
    std::uint64_t epoch;
  };

  void add(freed_bytes& row, const block& freed) const noexcept {
    if (row.epoch != epoch_) row = {0, 0, epoch_};
    row.bytes += static_cast<std::int64_t>(freed.bytes);
    ++row.blocks;
  }
  [[nodiscard]] category_at_peak current(const freed_bytes& row) const noexcept {
    return row.epoch == epoch_ ? category_at_peak{row.bytes, row.blocks} : category_at_peak{0, 0};
  }

  shared_memory* memory_;
  std::uint32_t limit_;
  std::uint32_t freed_count_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t ordinal_ = 0;
  std::int64_t live_ = 0;
  std::int64_t blocks_ = 0;
  std::uint64_t epoch_ = 1;
  std::array<freed_bytes, category_names.size()> by_category_{};
  detail::page_array<freed_bytes> by_operation_;
  detail::page_array<block> freed_largest_;
  std::uint8_t space_;
  bool is_usable_ = false;
};

}  // namespace memprof

// ---- <memprof/ledger/shortfall_record.hpp>
#include <cstddef>
#include <cstdint>

namespace memprof {

/// What a space's ledger keeps of the first allocation that made its live bytes exceed its capacity: the block that was asked
/// for, and who held the rest at that moment. Categories and annotations are those known then.
///
/// If the capacity is that of a core, all bytes and holders are those on the core that was full.
struct shortfall_record {
  block asked{};                             ///< of no bytes as long as nothing has exceeded the capacity
  std::uint64_t segment = 0;                 ///< number of the one in which it was asked for
  segment_record moment{};                   ///< the segment then, as if its peak had been just before: without `asked`
  std::uint64_t stamp = 0;                   ///< when it was asked for
  bool is_on_core = false;                   ///< the capacity is that of a core
  core_range core{};                         ///< the one that was full, if `is_on_core`
  bool has_holders = false;                  ///< false: the system had no memory for `owners` and `largest`, which are then empty
  detail::page_array<owner_at_peak> owners;  ///< all that held something, greatest first, without `asked`
  detail::page_array<block> largest;         ///< of the blocks that were live beside `asked`, a heap

  [[nodiscard]] bool has_happened() const noexcept { return asked.bytes != 0; }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return owners.bytes() + largest.bytes(); }

  /// Takes `asked`, which made the peak that `moment` and `owners` tell of, out of both.
  [[gnu::cold]] void take_out_asked() noexcept {
    stamp = moment.peak_stamp;
    const auto bytes = static_cast<std::int64_t>(asked.bytes);
    moment.live_at_peak -= bytes;
    --moment.blocks_at_peak;
    moment.categories[asked.category()].bytes -= bytes;
    --moment.categories[asked.category()].blocks;
    for (owner_at_peak& row : owners) {
      if (row.operation != asked.operation()) continue;
      row.bytes -= bytes;
      if (--row.blocks != 0) break;
      row = owners.back();
      owners.pop_back();
      break;
    }
    detail::sort_rows(owners.data(), owners.size(), holds_more);
  }

  /// Keeps the largest `limit` of the blocks but `asked`. Costs a pass over them. False if the system has no memory.
  [[nodiscard, gnu::cold]] bool keep_largest(const live_blocks& live, std::uint32_t limit) noexcept {
    if (!largest.resize(limit)) return false;
    std::uint32_t count = 0;
    const top_blocks_view best{largest.data(), count, limit};
    live.for_each([&](const block& held) {
      if (held.address != asked.address) best.offer(held);
    });
    return largest.resize(count);
  }

  [[gnu::cold]] void forget_holders() noexcept {
    owners.clear();
    largest.clear();
  }

  /// Begins the record of a core to which the holders are added one by one.
  [[gnu::cold]] void begin_on_core(const core_range& full, std::uint64_t in_segment, std::uint64_t at_stamp,
                                   std::uint32_t limit) noexcept {
    is_on_core = true;
    core = full;
    segment = in_segment;
    stamp = at_stamp;
    has_holders = largest.resize(limit);
  }

  /// Adds a block to what was live beside `asked`. Until `end_on_core` an operation's row is where its number says, and the
  /// first `largest_count` of `largest` are a heap.
  [[gnu::cold]] void add_holder(const block& held, std::uint32_t& largest_count) noexcept {
    const auto bytes = static_cast<std::int64_t>(held.bytes);
    moment.live_at_peak += bytes;
    ++moment.blocks_at_peak;
    moment.categories[held.category()].bytes += bytes;
    ++moment.categories[held.category()].blocks;
    const std::uint32_t operation = held.operation();
    has_holders = has_holders && (operation < owners.size() || owners.resize(operation + std::size_t{1}));
    if (!has_holders) return;
    owners[operation] = {operation, owners[operation].bytes + bytes, owners[operation].blocks + 1};
    top_blocks_view{largest.data(), largest_count, static_cast<std::uint32_t>(largest.size())}.offer(held);
  }

  /// Leaves the rows and blocks that there are.
  [[gnu::cold]] void end_on_core(std::uint32_t largest_count) noexcept {
    if (!has_holders) return forget_holders();
    std::size_t count = 0;
    for (const owner_at_peak& row : owners) {
      if (row.blocks != 0) owners[count++] = row;
    }
    (void)owners.resize(count);
    (void)largest.resize(largest_count);
    detail::sort_rows(owners.data(), count, holds_more);
  }
};

}  // namespace memprof

// ---- <memprof/ledger/space_ledger.hpp>
// ---- <memprof/ledger/stream_ledger.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// What was live and reserved for one stream of a device in one pool of its allocator, in bytes.
struct stream_record {
  label name;  ///< as `stream_and_pool` makes it; 0: all streams and pools beyond `stream_ledger::max_rows`
  std::int64_t live;
  std::int64_t peak_live;
  std::int64_t allocation_count;
  std::int64_t reserved;
  std::int64_t peak_reserved;
};

/// A row for each stream and pool of blocks or ranges, up to `max_rows`, and one for all others. What names no stream is in none.
class stream_ledger {
 public:
  static constexpr std::size_t max_rows = 64;

  void allocate(label name, std::int64_t bytes) noexcept {
    if (name == 0) return;
    stream_record& row = row_of(name);
    row.live = detail::add_saturating(row.live, bytes);
    row.peak_live = std::max(row.peak_live, row.live);
    ++row.allocation_count;
  }
  /// Frees more than is live if the block had another name before: no row gets negative.
  void deallocate(label name, std::int64_t bytes) noexcept {
    if (name == 0 || bytes == 0) return;
    stream_record& row = row_of(name);
    row.live -= std::min(row.live, bytes);
  }
  /// What is held for the stream grew or, if `change` is negative, shrank.
  void change_reserved(label name, std::int64_t change) noexcept {
    if (name == 0 || change == 0) return;
    stream_record& row = row_of(name);
    row.reserved = std::max(detail::add_saturating(row.reserved, change), std::int64_t{0});
    row.peak_reserved = std::max(row.peak_reserved, row.reserved);
  }

  /// In the order in which they first occurred.
  [[nodiscard]] const detail::page_array<stream_record>& rows() const noexcept { return rows_; }
  /// Those that have no row of their own. All 0 if there are none.
  [[nodiscard]] const stream_record& further() const noexcept { return further_; }
  [[nodiscard]] bool has_further() const noexcept { return has_further_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return rows_.bytes(); }

 private:
  friend struct detail::frame_parts;

  [[nodiscard]] stream_record& row_of(label name) noexcept {
    if (last_ < rows_.size() && rows_[last_].name == name) return rows_[last_];
    for (std::size_t index = 0; index < rows_.size(); ++index) {
      if (rows_[index].name != name) continue;
      last_ = index;
      return rows_[index];
    }
    if (rows_.size() < max_rows && rows_.push_back({name, 0, 0, 0, 0, 0})) return rows_.back();
    has_further_ = true;
    return further_;
  }

  detail::page_array<stream_record> rows_;
  stream_record further_{};
  std::size_t last_ = 0;  ///< most events have the same name as the one before
  bool has_further_ = false;
};

}  // namespace memprof

// ---- <memprof/ledger/timeline.hpp>
#include <cstddef>
#include <cstdint>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// Live bytes over time in a bounded number of points, each covering the same number of events.
///
/// When the points are used up, neighbours are joined and each covers twice as many, so a maximum is never lost.
class timeline {
 public:
  struct point {
    std::uint64_t stamp;   ///< of the last stamped event before it began
    std::int64_t peak;     ///< greatest value within it, its beginning included
    std::int64_t current;  ///< value at its end
  };

  /// At most `max_points` points, the open one included; at least 2.
  explicit timeline(std::uint32_t max_points) noexcept : max_points_(max_points < 2 ? 2 : max_points & ~1U) {}

  /// Tells that live bytes grew to `live`; `add` of the same event follows.
  void raise(std::int64_t live) noexcept {
    open_.peak = live > open_.peak ? live : open_.peak;  // stored always: whether it grows is anybody's guess
  }

  /// Tells the live bytes after one event.
  void add(std::int64_t live, std::uint64_t stamp) noexcept {
    if (--remaining_ == 0) [[unlikely]]
      close(live, stamp);
  }

  /// How many events each finished point covers.
  [[nodiscard]] std::uint64_t events_per_point() const noexcept { return width_; }
  [[nodiscard]] const detail::page_array<point>& finished() const noexcept { return points_; }
  /// The point that is not full yet; `has_open` says whether any event is in it.
  [[nodiscard]] const point& open() const noexcept { return open_; }
  [[nodiscard]] bool has_open() const noexcept { return remaining_ != width_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return points_.bytes(); }

 private:
  friend struct detail::frame_parts;

  [[gnu::noinline]] void close(std::int64_t live, std::uint64_t stamp) noexcept {
    open_.current = live;
    remaining_ = width_;
    // Without memory for another point this one goes on: coarser, and still no maximum is lost.
    if (!points_.push_back(open_)) return;
    if (points_.size() == max_points_) join_neighbours();
    open_ = {stamp, live, live};
  }

  void join_neighbours() noexcept {
    const std::size_t half = points_.size() / 2;
    for (std::size_t index = 0; index < half; ++index) {
      const point& left = points_[2 * index];
      const point& right = points_[2 * index + 1];
      points_[index] = {left.stamp, left.peak > right.peak ? left.peak : right.peak, right.current};
    }
    while (points_.size() > half) points_.pop_back();
    width_ *= 2;
    remaining_ = width_;
  }

  std::uint64_t remaining_ = 1;
  std::uint64_t width_ = 1;
  std::uint32_t max_points_;
  point open_{0, 0, 0};
  detail::page_array<point> points_;
};

}  // namespace memprof

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// How much detail a ledger keeps. Totals, peaks and live sets do not depend on it.
struct ledger_options {
  std::uint32_t timeline_points = 4096;   ///< per space, at least 2
  std::uint32_t largest_blocks = 10;      ///< kept for each peak
  std::uint32_t owners_per_segment = 32;  ///< operations kept for each segment's peak; the overall peak keeps all
  std::uint32_t kept_segments = 64;       ///< in full; at least 4
  std::uint32_t segment_names = 64;       ///< with a row of their own
  std::uint32_t operations = 4096;        ///< with a node of their own
};

/// What is summed up over all segments of a name, in the order of a space's `by_name`.
enum class segment_number : std::uint8_t {
  segment_peak,
  live_at_peak,
  allocated,
  freed,
  change,
  live_at_end,
  allocation_count,
  deallocation_count
};
inline constexpr std::size_t segment_number_count = 8;

/// Everything the ledger knows of one memory space.
///
/// Two facts keep an event cheap. Frees are `allocated - change`, so only allocations are summed. And a peak is an ordinal: the
/// set that was live at it is the blocks born until then that are live now, and those freed since, of which the largest are kept.
class space_ledger {
 public:
  /// A space that shows up after `segment` segments, of which `kept` have a mark, at the begin of the next, `begin_stamp`.
  space_ledger(const ledger_options& options, std::uint64_t segment, std::size_t kept, std::uint64_t begin_stamp) noexcept
      : peak_stamp_(begin_stamp),
        options_(options),
        segment_(segment),
        line_(options.timeline_points),
        largest_of_finished_(options.largest_blocks) {
    is_usable_ = operations_.resize(1) && freed_since_peak_.resize(options.largest_blocks) && segments_.resize(kept);
  }

  /// False if the system had no memory for it.
  [[nodiscard]] bool is_usable() const noexcept { return is_usable_; }

  /// Gives the space, or each core of it, a capacity in bytes; 0: none. Before its first event.
  void limit(std::int64_t capacity, bool is_per_core) noexcept {
    if (capacity <= 0) return;
    capacity_ = capacity;
    capacity_is_per_core_ = is_per_core;
    (is_per_core ? core_shortfall_above_ : shortfall_above_) = capacity;
  }

  /// The space's part of a memory in which it does not lie alone; null while it has one to itself. The share outlives the space.
  void share(memory_share* part) noexcept { share_ = part; }
  [[nodiscard]] memory_share* shared() const noexcept { return share_; }
  /// The space becomes the active one of the memory that it shares: what it does from now on may raise the joint peak.
  void become_active() noexcept {
    share_->settle(ordinal_, live_, live_blocks_.size());
    joint_peak_above_ = share_->memory().room_of_active();
    watch_above_ = std::min(peak_live_, joint_peak_above_);
    watched_ordinal_ = std::max(peak_ordinal_, share_->ordinal());
  }

  // --- events -------------------------------------------------------------------------------------------------------

  /// Fills a new entry of the table: an allocation by the operation and category in `owner`; the operation's statistics are
  /// `here`.
  [[gnu::always_inline]] void add(block* entry, const event& recorded, operation_stats& here, std::uint64_t owner,
                                  std::uint32_t thread, std::uint64_t stamp) noexcept {
    const auto bytes = static_cast<std::int64_t>(recorded.bytes);
    entry->bytes = recorded.bytes;
    entry->born_thread = ++ordinal_ << block::thread_bits | thread;
    entry->owner = owner;
    // "No operation" and "other" are what the rest of the sum is, so they cost nothing here.
    if (entry->operation() != 0) here.owned.change(epoch_, bytes, 1);
    if (entry->category() != 0) categories_[entry->category()].change(epoch_, bytes, 1);
    room_ -= bytes;
    live_ += bytes;
    if (live_ > watch_above_) {
      watch_above_ = live_;
      watched_ordinal_ = ordinal_;
      if (live_ > joint_peak_above_) [[unlikely]]
        raise_joint_peak(stamp, entry->operation());
      if (live_ > peak_live_) [[likely]] {
        peak_live_ = live_;
        peak_blocks_ = static_cast<std::int64_t>(live_blocks_.size());
        peak_ordinal_ = ordinal_;
        peak_stamp_ = stamp;
        peak_operation_ = entry->operation();
        freed_count_ = 0;
        ++epoch_;
        // Only a new peak can be the first to exceed the capacity: until then every peak was within it.
        if (live_ > shortfall_above_) [[unlikely]]
          note_shortfall(*entry);
      }
    }
    line_.raise(live_);
    line_.add(live_, stamp);
  }

  /// Takes a live block away. The caller still tells the timeline, by `mark_event` or by the allocation that replaces it.
  [[gnu::always_inline]] void remove(const live_blocks::place& found) noexcept {
    const auto bytes = static_cast<std::int64_t>(found->bytes);
    if (found->operation() != 0) operations_[found->operation()].owned.change(epoch_, -bytes, -1);
    if (found->category() != 0) categories_[found->category()].change(epoch_, -bytes, -1);
    live_ -= bytes;
    if (found->born() <= watched_ordinal_) remember_freed(*found.entry);
    live_blocks_.erase(found);
  }

  /// Moves a live block to another category and gives it a name: both say what it was since it was allocated, so the categories
  /// at the open segment's peak change too. Finished segments keep theirs.
  void annotate(const event& recorded) noexcept {
    block* const entry = live_blocks_.find(recorded.address).entry;
    if (entry == nullptr) {
      unknown_annotations.add(0);
      return;
    }
    const label description =
        recorded.label == 0 || recorded.label > block::max_annotation ? entry->annotation() : recorded.label;
    const std::uint32_t category = recorded.tag == 0 ? entry->category() : recorded.tag - 1U;
    if (category != entry->category()) {
      const auto bytes = static_cast<std::int64_t>(entry->bytes);
      const auto move = entry->born() <= peak_ordinal_ ? &owner_stats::correct : &owner_stats::change;
      if (entry->category() != 0) (categories_[entry->category()].*move)(epoch_, -bytes, -1);
      if (category != 0) (categories_[category].*move)(epoch_, bytes, 1);
    }
    entry->owner = block::owner_word(entry->operation(), category, description);
  }

  [[nodiscard, gnu::always_inline]] live_blocks::insertion insert(std::uint64_t address) noexcept {
    return live_blocks_.insert(address);
  }
  [[nodiscard, gnu::always_inline]] live_blocks::place find(std::uint64_t address) noexcept { return live_blocks_.find(address); }
  void prefetch(std::uint64_t address) const noexcept { live_blocks_.prefetch(address); }
  /// Whether the table has outgrown the caches near the core, so that prefetching pays.
  [[nodiscard]] bool is_large() const noexcept { return live_blocks_.bytes() > std::size_t{128} * 1024; }
  void mark_event(std::uint64_t stamp) noexcept { line_.add(live_, stamp); }

  /// Whether the totals have room for so many more bytes; false for impossible sizes as well.
  [[nodiscard]] bool has_room_for(std::uint64_t bytes) const noexcept { return bytes <= static_cast<std::uint64_t>(room_); }

  /// How often statistics may have moved in memory: a reference to them holds while it stays the same.
  [[nodiscard]] std::uint64_t moves() const noexcept { return moves_; }

  /// Looks whether a block on cores, which has just been added here and to `cores()`, is the first beyond the capacity of a core.
  /// Costs a step for each of its cores until one was.
  void check_cores(std::uint64_t address, const core_range& cores, std::uint64_t stamp) noexcept {
    if (core_shortfall_above_ == std::numeric_limits<std::int64_t>::max()) return;
    const core_maxima fullest = cores_.fullest(cores);
    if (fullest.peak.total <= core_shortfall_above_) return;
    note_shortfall_on({fullest.busiest_x, fullest.busiest_y, fullest.busiest_x, fullest.busiest_y}, address, stamp);
  }

  /// What lies on each core, beside the space's totals.
  [[nodiscard]] core_ledger& cores() noexcept { return cores_; }
  [[nodiscard]] const core_ledger& cores() const noexcept { return cores_; }
  /// What an allocator holds of the space for all of it, beside the space's totals.
  [[nodiscard]] reserved_ledger& reserved() noexcept { return reserved_; }
  [[nodiscard]] const reserved_ledger& reserved() const noexcept { return reserved_; }
  /// What of both was for which stream and from which pool.
  [[nodiscard]] stream_ledger& streams() noexcept { return streams_; }
  [[nodiscard]] const stream_ledger& streams() const noexcept { return streams_; }
  /// What streams use, freed blocks among it.
  [[nodiscard]] active_ledger& active() noexcept { return active_; }
  [[nodiscard]] const active_ledger& active() const noexcept { return active_; }
  /// What the device had no memory for.
  [[nodiscard]] out_of_memory_ledger& out_of_memory() noexcept { return out_of_memory_; }
  [[nodiscard]] const out_of_memory_ledger& out_of_memory() const noexcept { return out_of_memory_; }

  /// The statistics of an operation, made when it first does something here; node 0's if there is no memory.
  [[nodiscard]] operation_stats& operation(std::uint32_t node) noexcept {
    if (node >= operations_.size()) {
      ++moves_;
      if (!operations_.resize(node + 1)) return operations_[0];
    }
    return operations_[node];
  }

  // --- segments -----------------------------------------------------------------------------------------------------

  /// Ends the segment that `history` got last. Costs a pass over the operations, whatever is live. False if the system has no
  /// memory.
  bool end_segment(segment_history& history, std::uint64_t stamp) noexcept {
    segment_record record = open_segment();
    const std::uint64_t number = segment_++;
    if (!collect_owners(owner_scratch_)) return false;
    if (record.live_at_peak > overall_peak_) {
      if (overall_peak_ != 0) history.unpin(overall_segment_);
      history.pin(number);
      overall_peak_ = record.live_at_peak;
      overall_segment_ = number;
      overall_owners_.clear();
      if (!overall_owners_.resize(owner_scratch_.size())) return false;
      for (std::size_t row = 0; row < owner_scratch_.size(); ++row) overall_owners_[row] = owner_scratch_[row];
    }
    record.cumulative_peak = overall_peak_;
    keep_owners(record);
    if (!segments_.resize(history.marks().size())) return false;
    segments_.back() = record;
    for (std::uint32_t index = 0; index < freed_count_; ++index) {
      largest_of_finished_.offer(segments_.size() - 1, segments_.size(), freed_since_peak_[index]);
    }
    start_segment(stamp);
    hold_with_failures(history, number);
    const bool is_summed_up = sum_up(history, record);
    const bool is_reserved_kept = reserved_.end_segment(history);
    const bool is_active_kept = active_.end_segment(history);
    return cores_.end_segment(history) && is_reserved_kept && is_active_kept && is_summed_up;
  }

  /// Leaves out the segments that are no longer kept. No segment has begun since the last one ended.
  void compact(const segment_history& history) noexcept {
    largest_of_finished_.compact(
        segments_.size(), [&](std::size_t position) { return !history.marks()[position].is_dropped; }, freed_since_peak_.data());
    history.compact(segments_);
    std::size_t count = 0;
    for (segment_record& record : segments_) {
      for (std::uint32_t row = 0; row < record.owner_count; ++row) owners_[count + row] = owners_[record.first_owner + row];
      record.first_owner = count;
      count += record.owner_count;
    }
    owners_.truncate(count);
    reserved_.compact(history);
    active_.compact(history);
    cores_.compact(history);
  }

  /// The segment that has not ended, as if it ended now, without its owners.
  [[nodiscard]] segment_record open_segment() const noexcept {
    segment_record record{};
    record.live_at_start = start_live_;
    record.live_at_end = live_;
    record.live_at_peak = peak_live_;
    record.allocated = start_room_ - room_;
    record.allocation_count = static_cast<std::int64_t>(ordinal_ - start_ordinal_);
    record.blocks_at_start = start_blocks_;
    record.blocks_at_end = static_cast<std::int64_t>(live_blocks_.size());
    record.blocks_at_peak = peak_blocks_;
    record.peak_ordinal = peak_ordinal_;
    record.peak_stamp = peak_stamp_;
    record.peak_operation = peak_operation_;
    record.categories[0] = {peak_live_, peak_blocks_};
    for (std::size_t index = 1; index < categories_.size(); ++index) {
      record.categories[index] = {categories_[index].live_at_peak(epoch_), categories_[index].blocks_at_peak(epoch_)};
      record.categories[0].bytes -= record.categories[index].bytes;
      record.categories[0].blocks -= record.categories[index].blocks;
    }
    return record;
  }

  /// Fills `rows` with what each operation had live at the open segment's peak, greatest first.
  [[nodiscard]] bool collect_owners(detail::page_array<owner_at_peak>& rows) const noexcept {
    rows.clear();
    owner_at_peak outside{0, peak_live_, peak_blocks_};  // of any operation: what the operations leave
    for (std::size_t node = 1; node < operations_.size(); ++node) {
      const owner_stats& owned = operations_[node].owned;
      const std::int64_t blocks = owned.blocks_at_peak(epoch_);
      if (blocks == 0) continue;
      if (!rows.push_back({static_cast<std::uint32_t>(node), owned.live_at_peak(epoch_), blocks})) return false;
      outside.bytes -= rows.back().bytes;
      outside.blocks -= blocks;
    }
    if (outside.blocks != 0 && !rows.push_back(outside)) return false;
    detail::sort_rows(rows.data(), rows.size(), holds_more);
    return true;
  }

  // --- what reports ask ---------------------------------------------------------------------------------------------

  /// How many segments have ended: the number of the open one.
  [[nodiscard]] std::uint64_t segment() const noexcept { return segment_; }
  /// One for each mark of the history; zeros before the space showed up.
  [[nodiscard]] const detail::page_array<segment_record>& segments() const noexcept { return segments_; }
  [[nodiscard]] const owner_at_peak* owners(const segment_record& record) const noexcept {
    return owners_.data() + record.first_owner;
  }
  /// All owners at the overall peak of the finished segments, and the number of the segment; meaningful if the peak is not 0.
  [[nodiscard]] const detail::page_array<owner_at_peak>& overall_owners() const noexcept { return overall_owners_; }
  [[nodiscard]] std::uint64_t overall_segment() const noexcept { return overall_segment_; }
  [[nodiscard]] std::int64_t overall_peak() const noexcept { return overall_peak_; }
  /// The greatest live bytes, those of the open segment included.
  [[nodiscard]] std::int64_t greatest_live() const noexcept { return std::max(overall_peak_, peak_live_); }
  /// All segments of a name, in the order of `segment_number`.
  [[nodiscard]] const summaries_by_name<segment_number_count>& by_name() const noexcept { return by_name_; }
  /// How the bytes live at the end of the segments of a name grew.
  [[nodiscard]] fitted_line growth(const segment_history& history, std::size_t row) const noexcept {
    return (row < lines_.size() ? lines_[row] : running_line{}).fit(history.rows()[row].steps);
  }
  /// What `limit` set; 0: none.
  [[nodiscard]] std::int64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool capacity_is_per_core() const noexcept { return capacity_is_per_core_; }
  [[nodiscard]] const shortfall_record& first_shortfall() const noexcept { return shortfall_; }
  [[nodiscard]] std::int64_t live() const noexcept { return live_; }
  [[nodiscard]] std::int64_t allocated() const noexcept { return room_at_begin_ - room_; }
  [[nodiscard]] std::uint64_t allocation_count() const noexcept { return ordinal_; }
  [[nodiscard]] const live_blocks& blocks() const noexcept { return live_blocks_; }
  [[nodiscard]] const timeline& line() const noexcept { return line_; }
  [[nodiscard]] std::size_t operation_count() const noexcept { return operations_.size(); }
  [[nodiscard]] const operation_stats& operation(std::size_t node) const noexcept { return operations_[node]; }
  [[nodiscard]] const ledger_options& options() const noexcept { return options_; }
  /// The largest freed blocks of a finished segment's peak; the live ones are `blocks()` born until its `peak_ordinal`.
  [[nodiscard]] const top_blocks_of_segments& largest_of_finished() const noexcept { return largest_of_finished_; }
  /// The same for the open segment.
  void offer_freed_since_peak(top_blocks_view best) const noexcept {
    for (std::uint32_t index = 0; index < freed_count_; ++index) best.offer(freed_since_peak_[index]);
  }

  /// Bytes taken from the system, without the object itself.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return live_blocks_.bytes() + line_.bytes() + operations_.bytes() + freed_since_peak_.bytes() + segments_.bytes() +
           owners_.bytes() + owner_scratch_.bytes() + overall_owners_.bytes() + largest_of_finished_.bytes() +
           shortfall_.bytes() + by_name_.bytes() + lines_.bytes() + cores_.bytes() + reserved_.bytes() + streams_.bytes() +
           active_.bytes() + out_of_memory_.bytes();
  }

  tally unmatched_frees;
  tally replaced_allocations;
  tally mismatched_sizes;
  tally cross_thread_frees;
  tally unknown_annotations;
  tally untracked_allocations;
  tally null_allocations;

 private:
  friend struct detail::frame_parts;

  void start_segment(std::uint64_t stamp) noexcept {
    start_live_ = peak_live_ = live_;
    start_room_ = room_;
    start_ordinal_ = peak_ordinal_ = ordinal_;
    start_blocks_ = peak_blocks_ = static_cast<std::int64_t>(live_blocks_.size());
    peak_stamp_ = stamp;
    peak_operation_ = 0;
    freed_count_ = 0;
    ++epoch_;
    watch_above_ = std::min(peak_live_, joint_peak_above_);
    watched_ordinal_ = ordinal_;
  }

  /// The spaces of the memory hold more than ever before.
  [[gnu::noinline]] void raise_joint_peak(std::uint64_t stamp, std::uint32_t operation) noexcept {
    joint_peak_above_ = live_;
    share_->memory().raise(live_, stamp, segment_, operation);
    share_->begin_peak(ordinal_, live_, live_blocks_.size());
  }

  /// Keeps what was asked for and who held the rest, once: `asked` has just been added, as a new peak. Costs a pass over
  /// operations and live blocks.
  [[gnu::cold, gnu::noinline]] void note_shortfall(const block& asked) noexcept {
    shortfall_above_ = std::numeric_limits<std::int64_t>::max();
    shortfall_.asked = asked;
    shortfall_.segment = segment_;
    shortfall_.moment = open_segment();
    shortfall_.has_holders = collect_owners(shortfall_.owners) && shortfall_.keep_largest(live_blocks_, options_.largest_blocks);
    if (!shortfall_.has_holders) shortfall_.forget_holders();
    shortfall_.take_out_asked();
  }

  /// The same for the first block, at `address`, beyond the capacity of a core, which is `core`. Costs a pass over the blocks on
  /// cores.
  [[gnu::cold, gnu::noinline]] void note_shortfall_on(const core_range& core, std::uint64_t address,
                                                      std::uint64_t stamp) noexcept {
    core_shortfall_above_ = std::numeric_limits<std::int64_t>::max();
    shortfall_.begin_on_core(core, segment_, stamp, options_.largest_blocks);
    std::uint32_t largest_count = 0;
    cores_.for_each_block(core, [&](block live) {
      // Where an event that no `event_sink` sends has taken the block out of the space, nobody owns what still lies on the core.
      const live_blocks::place known = live_blocks_.find(live.address);
      live.owner = known && known->born_thread == live.born_thread ? known->owner : 0;
      if (live.address == address) {
        shortfall_.asked = live;
      } else {
        shortfall_.add_holder(live, largest_count);
      }
    });
    shortfall_.end_on_core(largest_count);
  }

  /// Adds a segment to all of its name.
  [[nodiscard]] bool sum_up(segment_history& history, const segment_record& record) noexcept {
    const segment_mark ended = history.marks()[history.marks().size() - 1];
    const named_segment_row& row = history.rows()[ended.row];
    const std::int64_t change = record.live_at_end - record.live_at_start;
    const auto before = by_name_.of(history, ended.row);
    if (ended.row >= lines_.size() && !lines_.resize(ended.row + 1U)) return false;
    if (!by_name_.add(history, {record.live_at_peak - record.live_at_start, record.live_at_peak, record.allocated,
                                record.allocated - change, change, record.live_at_end, record.allocation_count,
                                record.allocation_count - (record.blocks_at_end - record.blocks_at_start)})) {
      return false;
    }
    const auto sums = by_name_.of(history, ended.row);
    lines_[ended.row].first = sums[static_cast<std::size_t>(segment_number::live_at_end)].first;
    lines_[ended.row].add(record.live_at_end, ended.step, row.steps);
    for (const segment_number held : {segment_number::segment_peak, segment_number::live_at_peak, segment_number::live_at_end}) {
      const running_summary& now = sums[static_cast<std::size_t>(held)];
      const running_summary& then = before[static_cast<std::size_t>(held)];
      if (now.greatest_segment != ended.number || now.greatest == 0) continue;
      if (row.count > 1 && then.greatest != 0) history.release(then.greatest_segment);
      history.hold(ended.number);
    }
    return true;
  }

  /// Keeps a segment, as far as there is room, in which something had no memory.
  void hold_with_failures(segment_history& history, std::uint64_t number) const noexcept {
    if (shortfall_.has_happened() && shortfall_.segment == number) history.pin(number);
    for (const out_of_memory_record& failed : out_of_memory_.kept()) {
      if (failed.segment == number) history.hold(number);
    }
  }

  /// Keeps the greatest rows of `owner_scratch_` for the segment and sums up the others.
  void keep_owners(segment_record& record) noexcept {
    record.first_owner = owners_.size();
    for (const owner_at_peak& row : owner_scratch_) {
      if (record.owner_count < options_.owners_per_segment && owners_.push_back(row)) {
        ++record.owner_count;
      } else {
        record.remaining_bytes += row.bytes;
        ++record.remaining_operations;
      }
    }
  }

  /// A block that was live at the open segment's peak so far, and perhaps at those of finished segments, or at the joint peak of
  /// a shared memory is freed.
  [[gnu::noinline]] void remember_freed(const block& freed) noexcept {
    if (share_ != nullptr) {
      share_->remember_freed(freed);
      if (freed.born() > peak_ordinal_) return;
    }
    top_blocks_view{freed_since_peak_.data(), freed_count_, options_.largest_blocks}.offer(freed);
    if (segments_.empty() || freed.born() > segments_[segments_.size() - 1].peak_ordinal) return;
    const std::size_t first = detail::partition_point(
        segments_.size(), [&](std::size_t index) { return segments_[index].peak_ordinal < freed.born(); });
    largest_of_finished_.offer(first, segments_.size(), freed);
  }

  // The order of the members follows how often an event touches them.
  std::int64_t live_ = 0;
  std::int64_t watch_above_ = 0;  ///< the lesser of the two peaks that live bytes may exceed: the space's own and the joint one
  std::int64_t room_ = std::numeric_limits<std::int64_t>::max();  ///< what `allocated` may still grow by
  std::uint64_t ordinal_ = 0;
  std::uint64_t epoch_ = 1;
  std::uint64_t watched_ordinal_ = 0;  ///< of the newer of both peaks
  std::int64_t peak_live_ = 0;
  std::int64_t joint_peak_above_ = std::numeric_limits<std::int64_t>::max();  ///< while the space is the memory's active one
  memory_share* share_ = nullptr;
  std::uint64_t peak_ordinal_ = 0;
  std::uint64_t peak_stamp_;
  std::int64_t peak_blocks_ = 0;
  std::uint32_t peak_operation_ = 0;
  std::uint32_t freed_count_ = 0;
  live_blocks live_blocks_;
  detail::page_array<operation_stats> operations_;
  std::array<owner_stats, category_names.size()> categories_{};  ///< entry 0 is unused: "other" is what the rest leaves
  ledger_options options_;
  std::uint64_t segment_;  ///< number of the open one
  timeline line_;
  detail::page_array<block> freed_since_peak_;

  std::uint64_t moves_ = 0;
  std::int64_t shortfall_above_ = std::numeric_limits<std::int64_t>::max();  ///< the capacity, until it was exceeded
  std::int64_t capacity_ = 0;
  std::int64_t core_shortfall_above_ = std::numeric_limits<std::int64_t>::max();  ///< the same for a core
  bool capacity_is_per_core_ = false;
  std::int64_t start_live_ = 0;
  std::int64_t start_room_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t room_at_begin_ = std::numeric_limits<std::int64_t>::max();
  std::uint64_t start_ordinal_ = 0;
  std::int64_t start_blocks_ = 0;

  detail::page_array<segment_record> segments_;
  detail::page_array<owner_at_peak> owners_;
  detail::page_array<owner_at_peak> owner_scratch_;
  detail::page_array<owner_at_peak> overall_owners_;
  std::int64_t overall_peak_ = 0;
  std::uint64_t overall_segment_ = 0;
  summaries_by_name<segment_number_count> by_name_;
  detail::page_array<running_line> lines_;  ///< by row
  top_blocks_of_segments largest_of_finished_;
  shortfall_record shortfall_;
  bool is_usable_ = false;
  core_ledger cores_;
  reserved_ledger reserved_;
  stream_ledger streams_;
  active_ledger active_;
  out_of_memory_ledger out_of_memory_;
};

}  // namespace memprof

// ---- <memprof/trace/clock_readings.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// What links the stamps of events to time: readings of both clocks, between which the line is straight.
///
/// The clock of the stamps drifts against the system's by parts per million, which over days is seconds; readings a second apart
/// keep the error below a microsecond. At most `max_kept` are kept: when they are too many, every second one goes, and from then
/// on they stay twice as far apart.
class clock_readings {
 public:
  static constexpr std::size_t max_kept = 4096;

  /// Adds a reading: `ns` nanoseconds after the capture began, the clock of the stamps showed `stamp`. One that does not come
  /// after the last one, or not after the begin, is left out.
  void add(std::uint64_t stamp, std::int64_t ns) noexcept {
    const std::size_t count = kept_.size();
    if (ns < 0) return;
    if (count != 0 && (stamp <= kept_[count - 1].stamp || ns < kept_[count - 1].ns)) return;
    // The last one stands for the present, until the one before is far enough away for it to stay.
    if (count >= 2 && ns - kept_[count - 2].ns < least_distance_ns_) {
      kept_[count - 1] = {stamp, ns};
      return;
    }
    if (count == max_kept) thin_out();
    (void)kept_.push_back({stamp, ns});  // without memory for it the line before goes on
  }

  /// Nanoseconds after the capture began; 0 before the first reading. Without two readings a stamp is a nanosecond.
  [[nodiscard]] std::int64_t to_ns(std::uint64_t stamp) const noexcept {
    constexpr wide most = INT64_MAX;
    if (kept_.empty()) return static_cast<std::int64_t>(std::min<wide>(stamp, most));
    const reading first = kept_[0];
    if (stamp <= first.stamp) return first.ns;
    if (kept_.size() == 1)
      return static_cast<std::int64_t>(std::min<wide>(first.ns + static_cast<wide>(stamp - first.stamp), most));
    const std::size_t after =
        detail::partition_point(kept_.size(), [&](std::size_t index) { return kept_[index].stamp < stamp; });
    const std::size_t right = after < kept_.size() ? after : kept_.size() - 1;
    const reading& left = kept_[right - 1];
    const auto width = static_cast<wide>(kept_[right].stamp - left.stamp);
    const auto rise = static_cast<wide>(kept_[right].ns - left.ns);
    const wide ns = left.ns + static_cast<wide>(stamp - left.stamp) * rise / width;
    return static_cast<std::int64_t>(std::min<wide>(ns, most));
  }

  /// Whether there is any.
  [[nodiscard]] bool empty() const noexcept { return kept_.empty(); }
  /// Nanoseconds after the capture began of the last one.
  [[nodiscard]] std::int64_t last_ns() const noexcept { return kept_.empty() ? 0 : kept_[kept_.size() - 1].ns; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return kept_.bytes(); }

 private:
  friend struct detail::frame_parts;

  __extension__ using wide = __int128;

  struct reading {
    std::uint64_t stamp;
    std::int64_t ns;
  };
  void thin_out() noexcept {
    for (std::size_t index = 1; 2 * index < kept_.size(); ++index) kept_[index] = kept_[2 * index];
    (void)kept_.resize(kept_.size() / 2);
    least_distance_ns_ = kept_.back().ns / static_cast<std::int64_t>(kept_.size());
  }

  detail::page_array<reading> kept_;
  std::int64_t least_distance_ns_ = 0;  ///< of those that stay
};

}  // namespace memprof

// ---- <memprof/trace/frame_bytes.hpp>
// ---- <memprof/trace/varint.hpp>
#include <cstdint>
#include <cstring>

namespace memprof::detail {

/// Bytes that the longest varint of 64 bits takes.
inline constexpr int max_varint_bytes = 10;

/// Values below it are written without a branch on their length.
inline constexpr std::uint64_t max_short_varint = std::uint64_t{1} << 28;

/// Writes `value`, seven bits a byte, lowest first (LEB128, as in Protocol Buffers and DWARF), and returns what follows it. May
/// write up to `max_varint_bytes`, whatever the value.
[[nodiscard, gnu::always_inline]] inline unsigned char* put_varint(unsigned char* out, std::uint64_t value) noexcept {
  if (value < max_short_varint) [[likely]] {
    // Without a branch on the length, which nobody can predict of sizes: four groups at once, of which so many count.
    const auto low = static_cast<std::uint32_t>(value);
    const int extra = (31 - __builtin_clz(low | 1)) / 7;
    std::uint32_t spread = (low & 0x7F) | (low & 0x3F80) << 1 | (low & 0x1FC000) << 2 | (low & 0xFE00000) << 3;
    spread |= 0x00808080U & ((1U << 8 * extra) - 1);
    std::memcpy(out, &spread, sizeof spread);
    return out + extra + 1;
  }
  while (value >= 0x80) {
    *out++ = static_cast<unsigned char>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<unsigned char>(value);
  return out;
}

/// Reads what `put_varint` wrote; null if it does not end before `end` or has more than 64 bits.
[[nodiscard]] inline const unsigned char* get_varint(const unsigned char* in, const unsigned char* end,
                                                     std::uint64_t& value) noexcept {
  if (in != end && *in < 0x80) [[likely]] {
    value = *in;
    return in + 1;
  }
  value = 0;
  for (unsigned shift = 0; in != end && shift < 64; shift += 7) {
    const std::uint64_t bits = *in++;
    if (shift == 63 && bits > 1) return nullptr;
    value |= (bits & 0x7F) << shift;
    if (bits < 0x80) return in;
  }
  return nullptr;
}

/// Small differences of either sign as small numbers.
[[nodiscard]] constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
[[nodiscard]] constexpr std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

}  // namespace memprof::detail

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

/// @file
/// The bytes of a key frame (docs/trace_format.md). A function template that takes a `frame_writer` or a `frame_reader` says once
/// in which order the parts of something come, and serves both.

namespace memprof::detail {

/// What memprof writes into frames and takes from them. Sections of other kinds come behind these.
inline constexpr std::uint32_t frame_revision = 1;

/// The sections of a frame, in this order; those of a space and of its blocks once for each space.
enum class frame_section : std::uint8_t {
  operations = 1,  ///< the tree of operations
  ledger,          ///< what the ledger knows beside its spaces and threads
  space,           ///< what it knows of a space beside its live blocks
  blocks,          ///< the live blocks of a space
  threads,         ///< threads and their open operations
  thread_usage,    ///< what those did so far
  checkpoints,     ///< those that are kept
  memories,        ///< joint peaks of memories that several spaces share
};

/// Appends numbers to a key frame, in pages that the hooks do not see.
class frame_writer {
 public:
  static constexpr bool reads = false;

  explicit frame_writer(page_array<unsigned char>& bytes) noexcept : bytes_(bytes) { bytes_.clear(); }

  /// An integer, as a varint; signed ones in zigzag.
  template <class T>
  void number(const T& value) noexcept {
    static_assert(std::is_integral_v<T>);
    if (!make_room(max_varint_bytes)) return;
    unsigned char* const next = bytes_.data() + used_;
    if constexpr (std::is_signed_v<T>) {
      used_ += static_cast<std::size_t>(put_varint(next, zigzag(value)) - next);
    } else {
      used_ += static_cast<std::size_t>(put_varint(next, value) - next);
    }
  }
  template <class... T>
  void numbers(const T&... values) noexcept {
    (number(values), ...);
  }
  /// Those that are never negative, and those that may be: see `frame_reader`.
  template <class... T>
  void amounts(const T&... values) noexcept {
    (number(values), ...);
  }
  template <class... T>
  void changes(const T&... values) noexcept {
    (number(values), ...);
  }
  void totals(const std::int64_t& value) noexcept { number(value); }
  /// How many rows there are, then each of them.
  template <class Rows, class Each>
  void rows(const Rows& rows, Each&& each) noexcept {
    number(rows.size());
    for (const auto& row : rows) each(row);
  }
  void require(bool) const noexcept {}
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }

  /// A section: a byte that says what it is, and four for the length of what `fill` writes.
  template <class Fill>
  void section(frame_section kind, Fill&& fill) noexcept {
    if (!make_room(section_header)) return;
    bytes_[used_] = static_cast<unsigned char>(kind);
    used_ += section_header;
    const std::size_t begin = used_;
    fill();
    if (used_ - begin > std::numeric_limits<std::uint32_t>::max()) has_failed_ = true;
    if (has_failed_) return;
    for (std::size_t byte = 0; byte < 4; ++byte)
      bytes_[begin - 4 + byte] = static_cast<unsigned char>((used_ - begin) >> (8 * byte));
  }

  /// Ends the frame; false, and it is not to be used, if the system had no memory.
  [[nodiscard]] bool finish() noexcept { return !has_failed_ && bytes_.resize(used_); }

 private:
  static constexpr std::size_t section_header = 5;

  [[nodiscard]] bool make_room(std::size_t size) noexcept {
    if (bytes_.size() - used_ >= size) return true;
    has_failed_ = has_failed_ || !bytes_.resize(bytes_.size() + (bytes_.size() < 65536 ? 65536 : bytes_.size()));
    return !has_failed_;
  }

  page_array<unsigned char>& bytes_;
  std::size_t used_ = 0;
  bool has_failed_ = false;
};

/// Takes the numbers of a key frame again. Whatever the bytes are: after the first fault every number is 0.
///
/// Amounts and changes are so small that the arithmetic of what they go to cannot overflow: a frame of another size has a fault.
class frame_reader {
 public:
  static constexpr bool reads = true;
  /// Greatest amount, and what may be added to one afterwards. The totals of a space may be twice as large.
  static constexpr std::int64_t greatest = std::int64_t{1} << 61;

  frame_reader(const unsigned char* begin, std::size_t size) noexcept : next_(begin), end_(begin + size) {}

  template <class T>
  void number(T& value) noexcept {
    static_assert(std::is_integral_v<T>);
    std::uint64_t read = 0;
    const unsigned char* const behind = get_varint(next_, end_, read);
    if (behind == nullptr) {
      value = 0;
      return fail();
    }
    next_ = behind;
    if constexpr (std::is_signed_v<T>) {
      value = static_cast<T>(unzigzag(read));
      if (value != unzigzag(read)) fail();
    } else {
      value = static_cast<T>(read);
      if (value != read) fail();
    }
    if (has_failed_) value = 0;
  }
  template <class... T>
  void numbers(T&... values) noexcept {
    (number(values), ...);
  }
  template <class... T>
  void amounts(T&... values) noexcept {
    (amount(values), ...);
  }
  template <class... T>
  void changes(T&... values) noexcept {
    (change(values), ...);
  }
  void totals(std::int64_t& value) noexcept {
    number(value);
    if (value >= 0 && value <= 2 * greatest) return;
    value = 0;
    fail();
  }
  template <class Rows, class Each>
  void rows(Rows& rows, Each&& each) noexcept {
    std::size_t count = 0;
    number(count);
    // A row takes a byte or more, so that a lie costs no memory.
    if (count > left() || !rows.resize(count)) fail();
    for (std::size_t index = 0; index < rows.size() && !has_failed_; ++index) each(rows[index]);
    if (has_failed_) rows.clear();
  }
  void require(bool is_sound) noexcept {
    if (!is_sound) fail();
  }
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
  [[nodiscard]] bool is_at_end() const noexcept { return next_ == end_; }
  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - next_); }

  /// The kind of the next section; none of those that there are at the end.
  [[nodiscard]] frame_section next_section() const noexcept { return static_cast<frame_section>(is_at_end() ? 0 : *next_); }

  /// Takes the next section, which has to be of that kind and to be taken whole.
  template <class Fill>
  void section(frame_section kind, Fill&& fill) noexcept {
    const unsigned char* const frame_end = end_;
    enter(kind);
    if (!has_failed_) fill();
    require(is_at_end());
    end_ = frame_end;
    if (has_failed_) next_ = end_;
  }
  void skip_section() noexcept {
    section(next_section(), [&] { next_ = end_; });
  }

 private:
  void enter(frame_section kind) noexcept {
    constexpr std::size_t header = 5;
    if (left() < header || next_section() != kind) return fail();
    std::size_t size = 0;
    for (std::size_t byte = 0; byte < 4; ++byte) size |= std::size_t{next_[1 + byte]} << (8 * byte);
    next_ += header;
    if (size > left()) return fail();
    end_ = next_ + size;
  }
  template <class T>
  void amount(T& value) noexcept {
    number(value);
    if (value < 0 || static_cast<std::uint64_t>(value) > static_cast<std::uint64_t>(greatest)) {
      value = 0;
      fail();
    }
  }
  void change(std::int64_t& value) noexcept {
    number(value);
    if (value > greatest || value < -greatest) {
      value = 0;
      fail();
    }
  }
  void fail() noexcept {
    has_failed_ = true;
    next_ = end_;
  }

  const unsigned char* next_;
  const unsigned char* end_;
  bool has_failed_ = false;
};

/// Amounts that are summed up somewhere: together they may not be more than twice the greatest either.
class frame_sum {
 public:
  template <class State>
  void add(State& state, std::int64_t amount) noexcept {
    if constexpr (State::reads) {
      const auto size = static_cast<std::uint64_t>(amount < 0 ? -amount : amount);
      total_ += size;
      state.require(total_ <= 2 * static_cast<std::uint64_t>(frame_reader::greatest));
      if (state.has_failed()) total_ = 0;
    }
  }

 private:
  std::uint64_t total_ = 0;
};

}  // namespace memprof::detail

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace memprof::detail {

/// The parts of a ledger as a key frame has them: each function says their order once, for a `frame_writer` and a constant part,
/// and for a `frame_reader` and a part that is still empty. What is read is checked so far that whatever events follow, and
/// whatever profile is made, no arithmetic overflows and no index is out of range.
///
/// A friend of all these classes: what a frame has is what they consist of.
struct frame_parts {
  // --- what several parts consist of --------------------------------------------------------------------------------

  template <class State, class Tally>
  static void counted(State& state, Tally& part) noexcept {
    state.amounts(part.count);
    state.number(part.bytes);  // a sum that saturates
    state.require(part.bytes >= 0);
  }

  template <class State, class Operation>
  static void operation(State& state, Operation& node, std::size_t operation_count) noexcept {
    state.number(node);
    state.require(node < operation_count);
  }

  /// A block that is or was live; of one on cores `owner` is the rectangle.
  template <class State, class Block>
  static void known_block(State& state, Block& part, std::size_t operation_count) noexcept {
    state.numbers(part.address, part.born_thread, part.owner);
    state.amounts(part.bytes);
    state.require(part.operation() < operation_count && part.category() < category_names.size());
  }

  template <class State, class Rows>
  static void owners(State& state, Rows& part, std::size_t operation_count) noexcept {
    frame_sum bytes;
    state.rows(part, [&](auto& row) {
      operation(state, row.operation, operation_count);
      state.amounts(row.bytes, row.blocks);
      bytes.add(state, row.bytes);
    });
  }

  template <class State, class Record>
  static void segment(State& state, Record& part, std::size_t operation_count) noexcept {
    state.amounts(part.live_at_start, part.live_at_end, part.live_at_peak);
    state.totals(part.allocated);
    state.amounts(part.allocation_count, part.blocks_at_start, part.blocks_at_end, part.blocks_at_peak);
    state.numbers(part.peak_ordinal, part.peak_stamp);
    operation(state, part.peak_operation, operation_count);
    state.numbers(part.owner_count, part.first_owner);
    state.amounts(part.remaining_bytes, part.remaining_operations, part.cumulative_peak);
    for (auto& held : part.categories) state.amounts(held.bytes, held.blocks);
  }

  // --- segments -----------------------------------------------------------------------------------------------------

  /// Segments, and so steps, are at most so many: the exact sums over them stay in range.
  static constexpr std::uint64_t most_segments = std::uint64_t{1} << 40U;

  /// A sum of 128 bits, of at most 2^`bits`.
  template <class State, class Sum>
  static void wide_sum(State& state, Sum& part, unsigned bits) noexcept {
    auto low = static_cast<std::uint64_t>(part);
    auto high = static_cast<std::int64_t>(part >> 64);
    state.numbers(low, high);
    if constexpr (State::reads) {
      const std::int64_t most = std::int64_t{1} << (bits - 64);
      state.require(high >= -most && high < most);
      part = state.has_failed() ? 0 : static_cast<int128>(static_cast<uint128>(static_cast<int128>(high)) << 64 | low);
    }
  }
  template <class State, class Integer>
  static void wide_integer_of(State& state, Integer& part) noexcept {
    for (auto& limb : part.limbs_) state.number(limb);
  }
  template <class State, class Summary>
  static void summary(State& state, Summary& part) noexcept {
    state.numbers(part.first, part.last, part.least, part.greatest, part.least_segment, part.greatest_segment);
    state.require(part.least_segment < most_segments && part.greatest_segment < most_segments);
    wide_sum(state, part.total, 110);
  }
  template <class State, class Summaries>
  static void summaries(State& state, Summaries& part, std::size_t name_count) noexcept {
    state.rows(part.known_, [&](auto& known) {
      std::uint8_t is_known = known == 0 ? 0 : 1;
      state.number(is_known);
      if constexpr (State::reads) known = is_known == 0 ? 0 : 1;
    });
    state.require(part.known_.size() <= name_count);
    if constexpr (State::reads) {
      if (!state.has_failed()) state.require(part.records_.resize(part.known_.size()));
      if (state.has_failed()) return part.known_.clear();
    }
    for (std::size_t index = 0; index < part.known_.size(); ++index) {
      if (part.known_[index] == 0) continue;
      for (auto& numbers : part.records_[index]) {
        summary(state, numbers);
        for (const std::int64_t number : {numbers.first, numbers.last, numbers.least, numbers.greatest}) {
          state.require(number >= -2 * frame_reader::greatest && number <= 2 * frame_reader::greatest);
        }
      }
    }
  }
  template <class State, class Lines>
  static void growth_lines(State& state, Lines& part, std::size_t name_count) noexcept {
    state.rows(part, [&](auto& line) {
      state.amounts(line.first);
      wide_sum(state, line.sum, 110);
      wide_integer_of(state, line.squares);
      wide_integer_of(state, line.products);
    });
    state.require(part.size() <= name_count);
  }

  /// The segments that are kept in full, and the rows of their names.
  template <class State, class History>
  static void history(State& state, History& part) noexcept {
    state.numbers(part.count_, part.step_);
    state.require(part.count_ < most_segments && part.step_ <= part.count_);
    state.rows(part.rows_, [&](auto& row) {
      state.numbers(row.name, row.stands_for_others, row.count, row.first_number, row.last_number, row.last_step);
      state.require(row.count != 0 && row.count <= part.count_ && row.first_number <= row.last_number &&
                    row.last_number < part.count_ && row.last_step <= part.step_);
      summary(state, row.duration);
      state.numbers(row.steps.first, row.steps.count);
      state.require(row.steps.first <= row.last_step && row.steps.count == row.count);
      wide_sum(state, row.steps.sum, 82);
      wide_sum(state, row.steps.squares, 122);
      if constexpr (State::reads) {
        const auto index = static_cast<std::uint32_t>(&row - part.rows_.data());
        if (row.stands_for_others) {
          state.require(part.others_ == segment_history::no_row);
          part.others_ = index;
        } else if (!state.has_failed()) {
          const live_blocks::insertion made = part.row_index_.insert(segment_history::key_of(row.name));
          state.require(made.is_new);
          if (made.is_new) made.entry->owner = index;
          ++part.named_;
        }
      }
    });
    std::uint64_t next_number = 0;
    state.rows(part.marks_, [&](auto& mark) {
      state.numbers(mark.name, mark.row, mark.begin_stamp, mark.end_stamp, mark.number, mark.step, mark.holds, mark.pins,
                    mark.is_first, mark.is_dropped);
      state.require(mark.row < part.rows_.size() && mark.begin_stamp <= mark.end_stamp && mark.number >= next_number &&
                    mark.number < part.count_ && mark.step <= part.step_);
      next_number = mark.number + 1;
      if constexpr (State::reads) part.dropped_ += mark.is_dropped ? 1 : 0;
    });
  }

  /// The checkpoints that are kept. Where the rows and blocks of each begin follows from their counts.
  template <class State, class Checkpoints>
  static void checkpoints(State& state, Checkpoints& part, std::size_t operation_count) noexcept {
    state.numbers(part.count_, part.stride_);
    state.require(part.count_ < most_segments && std::has_single_bit(part.stride_));
    std::uint64_t next_number = 0;
    std::size_t rows = 0;
    state.rows(part.marks_, [&](auto& mark) {
      state.numbers(mark.name, mark.row_count, mark.number, mark.stamp, mark.bytes, mark.is_first);
      state.amounts(mark.blocks);
      state.require(mark.bytes >= 0 && mark.number >= next_number && mark.number < part.count_);
      next_number = mark.number + 1;
      if constexpr (State::reads) mark.first_row = rows;
      rows += mark.row_count;
    });
    std::size_t blocks = 0;
    state.rows(part.rows_, [&](auto& row) {
      state.numbers(row.space, row.block_count);
      state.amounts(row.bytes, row.blocks);
      state.require(row.space < any_space);
      if constexpr (State::reads) row.first_block = blocks;
      blocks += row.block_count;
    });
    state.rows(part.blocks_, [&](auto& held) { known_block(state, held, operation_count); });
    state.require(part.marks_.size() <= checkpoint_history::most_kept && part.rows_.size() == rows &&
                  part.blocks_.size() == blocks);
    if constexpr (State::reads) {
      if (state.has_failed()) part = Checkpoints{};
    }
  }

  // --- operations ---------------------------------------------------------------------------------------------------

  /// The tree of operations, in the order in which they were first called.
  template <class State, class Follower>
  static void operations(State& state, Follower& part) noexcept {
    auto& tree = part.operations_;
    std::size_t count = tree.size() - 1;
    state.number(count);
    for (std::uint32_t index = 1; index <= count && !state.has_failed(); ++index) {
      operation_tree::node node{};
      if constexpr (!State::reads) node = tree[index];
      state.numbers(node.parent, node.name);
      state.amounts(node.invocations, node.finished);
      if constexpr (State::reads) {
        if (!state.has_failed()) state.require(node.parent < index && tree.child(node.parent, node.name) == index);
        if (!state.has_failed()) tree.nodes_[index] = node;
      }
    }
  }
  template <class State, class Follower>
  static void faults(State& state, Follower& part) noexcept {
    state.amounts(part.unbalanced_, part.too_deep_);
  }

  // --- facets -------------------------------------------------------------------------------------------------------

  template <class State, class Clock>
  static void clock(State& state, Clock& part) noexcept {
    state.amounts(part.least_distance_ns_);
    state.rows(part.kept_, [&](auto& row) {
      state.number(row.stamp);
      state.number(row.ns);
    });
    state.require(part.kept_.size() <= clock_readings::max_kept);
    for (std::size_t index = 0; index < part.kept_.size(); ++index) {
      const auto& row = part.kept_[index];
      state.require(row.ns >= 0);
      if (index != 0) state.require(row.stamp > part.kept_[index - 1].stamp && row.ns >= part.kept_[index - 1].ns);
    }
  }

  template <class State, class Line>
  static void line(State& state, Line& part) noexcept {
    const auto point = [&](auto& row) {
      state.number(row.stamp);
      state.amounts(row.peak, row.current);
    };
    state.amounts(part.width_, part.remaining_);
    state.require(part.remaining_ != 0 && part.remaining_ <= part.width_);
    point(part.open_);
    state.rows(part.points_, point);
    state.require(part.points_.size() < part.max_points_);
  }

  template <class State, class Streams>
  static void streams(State& state, Streams& part) noexcept {
    const auto record = [&](auto& row) {
      state.number(row.name);
      state.amounts(row.live, row.peak_live, row.allocation_count, row.reserved, row.peak_reserved);
    };
    state.rows(part.rows_, record);
    state.require(part.rows_.size() <= stream_ledger::max_rows);
    state.number(part.has_further_);
    record(part.further_);
  }

  template <class State, class Failed>
  static void out_of_memory(State& state, Failed& part, std::size_t operation_count) noexcept {
    state.rows(part.kept_, [&](auto& row) {
      // What the program asked for, and what the device had, may be anything.
      state.numbers(row.requested, row.device_free);
      state.require(row.requested >= 0 && row.device_free >= 0);
      state.amounts(row.live, row.reserved, row.segment);
      state.number(row.stamp);
      operation(state, row.operation, operation_count);
    });
    state.require(part.kept_.size() <= out_of_memory_ledger::max_kept);
    counted(state, part.further_);
  }

  /// All but what it is now, which the caller knows.
  template <class State, class Level>
  static void level(State& state, Level& part, const segment_history& history) noexcept {
    state.amounts(part.peak_, part.segment_peak_);
    state.rows(part.segments_, [&](auto& row) { state.amounts(row.peak, row.current); });
    state.require(part.segments_.size() <= history.marks().size());
    summaries(state, part.by_name_, history.rows().size());
  }

  template <class State, class Active>
  static void active(State& state, Active& part, const segment_history& history) noexcept {
    state.number(part.is_used_);
    state.amounts(part.level_.current_);
    level(state, part.level_, history);
    table_of_blocks(state, part.pending_, [&](auto& freed) { state.amounts(freed.bytes); });
    counted(state, part.unmatched_completions);
    counted(state, part.missing_completions);
  }

  template <class State, class Reserved>
  static void reserved(State& state, Reserved& part, const segment_history& history) noexcept {
    state.number(part.is_used_);
    level(state, part.level_, history);
    std::uint64_t held = 0;
    std::uint64_t reached = 0;
    state.rows(part.ranges_, [&](auto& row) {
      state.numbers(row.begin, row.end);
      state.require(row.begin < row.end && row.begin >= reached);
      reached = row.end;
      held += row.end - row.begin;  // below 2^64: they are disjoint
    });
    if constexpr (State::reads) {
      state.require(held <= static_cast<std::uint64_t>(frame_reader::greatest));
      part.level_.current_ = state.has_failed() ? 0 : static_cast<std::int64_t>(held);
    }
    counted(state, part.unmatched_releases);
    counted(state, part.replaced_reservations);
  }

  template <class State, class Cores>
  static void cores(State& state, Cores& part, const segment_history& history) noexcept {
    const auto usage = [&](auto& row) { state.changes(row.circular_buffers, row.buffers, row.total); };
    state.rows(part.ranges_, [&](auto& cores) {
      state.number(cores);
      state.require(core_range::unpacked(cores).is_valid());
    });
    if (part.ranges_.empty()) return;  // no block has come yet
    state.numbers(part.columns_, part.rows_);
    state.require(part.columns_ <= 256 && part.rows_ <= 256);
    state.rows(part.grid_, [&](auto& core) {
      usage(core.live);
      usage(core.peak);
      usage(core.overall);
    });
    state.require(part.grid_.size() == part.columns_ * part.rows_);
    state.rows(part.segments_, [&](auto& row) {
      usage(row.peak);
      state.numbers(row.busiest_x, row.busiest_y);
    });
    state.require(part.segments_.size() <= history.marks().size());
    summaries(state, part.by_name_, history.rows().size());
    frame_sum bytes;
    for (auto& table : part.blocks_) {
      table_of_blocks(state, table, [&](auto& held) {
        state.numbers(held.born_thread, held.owner);
        state.amounts(held.bytes);
        bytes.add(state, static_cast<std::int64_t>(held.bytes));
        const core_range at = core_range::unpacked(static_cast<std::uint32_t>(held.owner));
        state.require(at.is_valid() && at.x1 < part.columns_ && at.y1 < part.rows_);
      });
    }
    if constexpr (State::reads) {
      const std::size_t circular = part.blocks_[static_cast<std::size_t>(buffer_kind::circular_buffer)].size();
      state.require(part.ended_.reserve(circular + 1));
      for (const std::uint32_t known : part.ranges_) state.require(part.known_ranges_.insert(known).is_new);
    }
  }

  /// A table's blocks in no order: the address, then what `rest` says.
  template <class State, class Table, class Rest>
  static void table_of_blocks(State& state, Table& table, Rest&& rest) noexcept {
    std::size_t count = table.size();
    state.number(count);
    std::uint64_t last = 0;
    if constexpr (State::reads) {
      for (; count != 0 && !state.has_failed(); --count) {
        std::int64_t distance = 0;
        state.number(distance);
        if (state.has_failed()) break;
        const live_blocks::insertion made = table.insert(last += static_cast<std::uint64_t>(distance));
        state.require(made.is_new);
        if (state.has_failed()) break;
        *made.entry = {last, 0, 0, 0};
        rest(*made.entry);
      }
    } else {
      table.for_each([&](const block& held) {
        state.number(static_cast<std::int64_t>(held.address - last));
        last = held.address;
        rest(held);
      });
    }
  }

  // --- a space ------------------------------------------------------------------------------------------------------

  template <class State, class Space>
  static void space(State& state, Space& part, std::size_t operation_count, const segment_history& history) noexcept {
    const std::size_t segment_count = history.marks().size();
    totals(state, part);
    owner_statistics(state, part, operation_count);
    state.rows(part.owners_, [&](auto& row) {
      operation(state, row.operation, operation_count);
      state.amounts(row.bytes, row.blocks);
    });
    state.rows(part.segments_, [&](auto& record) {
      segment(state, record, operation_count);
      state.require(record.first_owner <= part.owners_.size() && record.owner_count <= part.owners_.size() - record.first_owner);
    });
    state.require(part.segments_.size() <= segment_count);
    state.amounts(part.overall_peak_, part.overall_segment_);
    summaries(state, part.by_name_, history.rows().size());
    growth_lines(state, part.lines_, history.rows().size());
    owners(state, part.overall_owners_, operation_count);
    state.number(part.freed_count_);
    state.require(part.freed_count_ <= part.options_.largest_blocks);
    if (state.has_failed()) return;
    for (std::uint32_t index = 0; index < part.freed_count_; ++index)
      known_block(state, part.freed_since_peak_[index], operation_count);
    largest_of_finished(state, part.largest_of_finished_, operation_count, segment_count);
    shortfall(state, part, operation_count);
    line(state, part.line_);
    for (auto* unusual : {&part.unmatched_frees, &part.replaced_allocations, &part.mismatched_sizes, &part.cross_thread_frees,
                          &part.unknown_annotations, &part.untracked_allocations, &part.null_allocations}) {
      counted(state, *unusual);
    }
    cores(state, part.cores_, history);
    reserved(state, part.reserved_, history);
    streams(state, part.streams_);
    active(state, part.active_, history);
    out_of_memory(state, part.out_of_memory_, operation_count);
  }

  template <class State, class Space>
  static void totals(State& state, Space& part) noexcept {
    std::int64_t allocated = part.allocated();
    std::int64_t start_allocated = part.room_at_begin_ - part.start_room_;
    state.totals(allocated);
    state.totals(start_allocated);
    state.require(start_allocated <= allocated);
    if constexpr (State::reads) {
      part.room_ = std::min(std::numeric_limits<std::int64_t>::max() - allocated, frame_reader::greatest);
      part.room_at_begin_ = part.room_ + allocated;
      part.start_room_ = part.room_at_begin_ - start_allocated;
    }
    state.amounts(part.ordinal_, part.start_ordinal_, part.peak_ordinal_);
    state.require(part.ordinal_ < std::uint64_t{1} << 43U && part.start_ordinal_ <= part.ordinal_);
    state.amounts(part.peak_live_, part.peak_blocks_, part.start_live_, part.start_blocks_);
    if constexpr (State::reads) {
      part.watch_above_ = part.peak_live_;
      part.watched_ordinal_ = part.peak_ordinal_;
    }
    state.numbers(part.peak_stamp_, part.peak_operation_);
  }

  /// What operations and categories had at the open segment's peak, and the statistics of operations. What they have now comes
  /// with the blocks.
  template <class State, class Space>
  static void owner_statistics(State& state, Space& part, std::size_t operation_count) noexcept {
    state.require(part.peak_operation_ < operation_count);
    frame_sum at_peak;
    const auto owned = [&](auto& stats) {
      std::int64_t live = stats.live_at_peak(part.epoch_);
      std::int64_t blocks = stats.blocks_at_peak(part.epoch_);
      state.amounts(live, blocks);
      at_peak.add(state, live);
      if constexpr (State::reads) stats = {0, live, part.epoch_, 0, blocks};
    };
    for (auto& category : part.categories_) owned(category);
    at_peak = {};
    frame_sum allocated;
    frame_sum freed;
    state.rows(part.operations_, [&](auto& stats) {
      owned(stats.owned);
      state.totals(stats.allocated);
      state.totals(stats.freed);
      allocated.add(state, stats.allocated);
      freed.add(state, stats.freed);
      state.amounts(stats.allocation_count, stats.deallocation_count, stats.finished, stats.peak, stats.self_peak);
      state.changes(stats.max_delta);
      state.amounts(stats.changing);
      if (stats.changing == 0) return;
      for (auto* run : {&stats.first, &stats.last, &stats.largest}) {
        state.numbers(run->begin_stamp, run->end_stamp, run->thread);
        state.changes(run->delta);
        state.amounts(run->peak);
      }
    });
    state.require(!part.operations_.empty() && part.operations_.size() <= operation_count);
  }

  template <class State, class Largest>
  static void largest_of_finished(State& state, Largest& part, std::size_t operation_count, std::size_t segment_count) noexcept {
    std::size_t level = 0;
    for (auto& counts : part.counts_) {
      auto& blocks = part.blocks_[level];
      std::size_t count = counts.size();
      state.number(count);
      state.require(count <= (segment_count >> level) + 1);
      if constexpr (State::reads) {
        if (!state.has_failed()) state.require(blocks.resize(count * part.limit_) && counts.resize(count));
        if (state.has_failed()) return;
      }
      for (std::size_t index = 0; index < count; ++index) {
        state.number(counts[index]);
        state.require(counts[index] <= part.limit_);
        if (state.has_failed()) return;
        for (std::size_t row = 0; row < counts[index]; ++row)
          known_block(state, blocks[index * part.limit_ + row], operation_count);
      }
      ++level;
    }
  }

  template <class State, class Space>
  static void shortfall(State& state, Space& part, std::size_t operation_count) noexcept {
    auto& first = part.shortfall_;
    known_block(state, first.asked, operation_count);
    if (!first.has_happened()) return;
    if constexpr (State::reads) {
      part.shortfall_above_ = part.core_shortfall_above_ = std::numeric_limits<std::int64_t>::max();
      state.require(part.capacity_ != 0);
    }
    state.amounts(first.segment);
    state.number(first.stamp);
    segment(state, first.moment, operation_count);
    state.numbers(first.is_on_core, first.core.x0, first.core.y0, first.core.x1, first.core.y1, first.has_holders);
    owners(state, first.owners, operation_count);
    state.rows(first.largest, [&](auto& held) { known_block(state, held, operation_count); });
  }

  /// The live blocks of a space: each with its address, bytes, allocation's number, thread, operation, category, annotation.
  template <class State, class Space>
  static void blocks(State& state, Space& part) noexcept {
    std::uint64_t last_born = 0;
    std::uint64_t live = 0;
    table_of_blocks(state, part.live_blocks_, [&](auto& held) {
      std::uint64_t born = held.born();
      auto distance = static_cast<std::int64_t>(born - last_born);
      std::uint32_t thread = held.thread();
      std::uint32_t node = held.operation();
      std::uint32_t category = held.category();
      label annotation = held.annotation();
      state.amounts(held.bytes);
      state.numbers(distance, thread, node, category, annotation);
      if constexpr (State::reads) {
        born = last_born + static_cast<std::uint64_t>(distance);
        state.require(born <= part.ordinal_ && thread <= block::max_thread && node < part.operations_.size() &&
                      category < category_names.size() && annotation <= block::max_annotation);
        if (state.has_failed()) return;
        live += held.bytes;
        state.require(live <= static_cast<std::uint64_t>(frame_reader::greatest));
        if (state.has_failed()) return;
        held.born_thread = born << block::thread_bits | thread;
        held.owner = block::owner_word(node, category, annotation);
        for (owner_stats* owner : {&part.operations_[node].owned, &part.categories_[category]}) {
          owner->live += static_cast<std::int64_t>(held.bytes);
          ++owner->blocks;
        }
      }
      last_born = born;
    });
    if constexpr (State::reads) {
      part.live_ = static_cast<std::int64_t>(live);
      state.require(part.live_ <= part.allocated());
    }
  }

  // --- memories that several spaces share ---------------------------------------------------------------------------

  template <class State, class Memory>
  static void memory(State& state, Memory& part, std::size_t operation_count, const segment_history& history) noexcept {
    wide_sum(state, part.peak, 72);
    state.numbers(part.is_known, part.lone_space, part.peak_space, part.peak_stamp, part.peak_segment, part.is_pinned,
                  part.pinned_segment);
    state.require(part.peak >= 0 && part.peak_segment <= history.count() && part.pinned_segment <= history.count());
    operation(state, part.peak_operation, operation_count);
    if constexpr (State::reads) part.peaks = 1;
  }

  template <class State, class Share>
  static void share(State& state, Share& part, std::uint64_t last_born, std::size_t operation_count) noexcept {
    std::uint8_t is_unchanged = part.is_unchanged_since_peak() ? 1 : 0;
    state.number(is_unchanged);
    if constexpr (State::reads) {
      part.seen_ = is_unchanged != 0 ? 0 : part.memory().peaks;
      part.epoch_ = 1;
    }
    if (is_unchanged != 0) return;
    state.amounts(part.ordinal_, part.live_, part.blocks_);
    state.require(part.ordinal_ <= last_born);
    frame_sum bytes;
    const auto freed = [&](auto& row) {
      category_at_peak sum = part.current(row);
      state.amounts(sum.bytes, sum.blocks);
      bytes.add(state, sum.bytes);
      if constexpr (State::reads) row = {sum.bytes, sum.blocks, part.epoch_};
    };
    for (auto& row : part.by_category_) freed(row);
    bytes = {};
    state.rows(part.by_operation_, freed);
    state.require(part.by_operation_.size() <= operation_count);
    state.number(part.freed_count_);
    state.require(part.freed_count_ <= part.limit_);
    if (state.has_failed()) return;
    for (std::uint32_t index = 0; index < part.freed_count_; ++index)
      known_block(state, part.freed_largest_[index], operation_count);
  }

  // --- a thread -----------------------------------------------------------------------------------------------------

  /// The open operations of a thread, outermost first: node, name, number, category.
  template <class State, class Stack>
  static void open_operations(State& state, Stack& part, std::size_t operation_count) noexcept {
    state.rows(part.scopes_, [&](auto& scope) {
      operation(state, scope.operation, operation_count);
      state.numbers(scope.name, scope.number, scope.tag, scope.begin_stamp);
      state.require(scope.tag <= category_names.size());
    });
    state.require(part.scopes_.size() <= scope_stack::max_depth);
  }

  /// What they did in each space; `is_space(id)` says which there are.
  template <class State, class Stack, class IsSpace>
  static void usages(State& state, Stack& part, IsSpace&& is_space) noexcept {
    std::uint32_t used = part.used_count_;
    state.number(used);
    for (std::uint32_t index = 0; index < used && !state.has_failed(); ++index) {
      std::uint8_t space = part.used_[index & 0xFFU];
      state.number(space);
      if constexpr (State::reads) {
        state.require(is_space(space) && part.by_space_[space] == nullptr);
        if (!state.has_failed()) state.require(part.in_space(space) != nullptr);
        if (state.has_failed()) return;
      }
      frame_sum bytes;
      for (auto& usage : *part.by_space_[space]) {
        state.changes(usage.self_net, usage.inner_net);
        state.amounts(usage.self_max, usage.max_net);
        for (const std::int64_t part_of_net : {usage.self_net, usage.inner_net, usage.max_net}) bytes.add(state, part_of_net);
      }
    }
  }
};

}  // namespace memprof::detail

// ---- <memprof/ledger/ledger.hpp>
// ---- <memprof/ledger/allocator_event.hpp>
// ---- <memprof/ledger/thread_state.hpp>
// ---- <memprof/ledger/category_tag.hpp>
#include <cstdint>

namespace memprof {

/// Whether an event's tag names a category; 0 does not, and what is out of range is taken for 0.
[[nodiscard]] inline bool is_category(std::uint16_t tag) noexcept { return tag - 1U < category_names.size(); }
[[nodiscard]] inline std::uint32_t category_of(std::uint16_t tag) noexcept { return is_category(tag) ? tag - 1U : 0U; }

}  // namespace memprof

// ---- <memprof/ledger/operation_follower.hpp>
#include <cstddef>
#include <cstdint>

namespace memprof {

namespace detail {
struct frame_parts;
}

/// The thread whose events a ring holds, and its open operations.
struct followed_thread {
  explicit followed_thread(std::uint32_t ring) noexcept : thread(ring) {}

  std::uint32_t thread;                 ///< its number; before its first `thread_begin` that of its ring
  std::uint32_t unfollowed_scopes = 0;  ///< open, but deeper than `scope_stack::max_depth`
  scope_stack scopes;
};

/// The rules by which events open and close operations, whoever folds them.
///
/// Operations have numbers, because they may end after the one around them, and on another thread than they began on, as those of
/// coroutines do. `finish(thread, scope, space, usage)` is called for each space that a thread had touched when one of its
/// operations closes.
class operation_follower {
 public:
  /// With a tree of at most so many operations.
  explicit operation_follower(std::uint32_t limit = ~std::uint32_t{0}) noexcept : operations_(limit) {}

  [[nodiscard]] const operation_tree& operations() const noexcept { return operations_; }
  /// Operations whose begin or end is missing.
  [[nodiscard]] std::uint64_t unbalanced() const noexcept { return unbalanced_; }
  /// Operations that began where so many were open already that they are not followed.
  [[nodiscard]] std::uint64_t too_deep() const noexcept { return too_deep_; }

  /// Applies a `scope_begin` at `stamp`. False if it must be rejected: it has no number, or the system no memory.
  template <class Finish>
  [[nodiscard, gnu::always_inline]] bool begin(followed_thread& on, const event& begun, const std::uint64_t& stamp,
                                               Finish&& finish) noexcept {
    const auto number = static_cast<std::uint32_t>(begun.address);
    const auto outer = static_cast<std::uint32_t>(begun.address >> 32);
    if (number == 0 || outer != on.scopes.innermost_number()) [[unlikely]] {
      if (number == 0) return false;
      close_lost(on, outer, finish);
    }
    if (on.scopes.depth() >= scope_stack::max_depth) {
      ++on.unfollowed_scopes;
      ++too_deep_;
      return true;
    }
    const std::uint16_t tag = is_category(begun.tag) ? begun.tag : on.scopes.tag();
    const std::uint32_t operation = operations_.child(on.scopes.operation(), begun.label);
    operations_.count_invocation(operation);
    return on.scopes.push({operation, begun.label, number, tag, stamp});
  }

  /// Applies a `scope_end`. `thread_of(number)` is where the thread of that number is followed, or null.
  template <class Finish, class ThreadOf>
  [[gnu::always_inline]] void end(followed_thread& on, const event& ended, Finish&& finish, ThreadOf&& thread_of) noexcept {
    if (ended.address == on.scopes.innermost_number() && !on.scopes.empty() && on.scopes.innermost().name == ended.label)
        [[likely]]
      return close_innermost(on, finish);
    const auto thread = static_cast<std::uint32_t>(ended.address >> 32);
    followed_thread* const owner = thread == 0 ? &on : thread_of(thread);
    if (owner == nullptr) return;  // the thread has gone, and its operations with it
    const std::size_t index = owner->scopes.find(static_cast<std::uint32_t>(ended.address));
    if (index != owner->scopes.depth() && owner->scopes[index].name == ended.label) {
      close(*owner, index, finish);
    } else if (owner->unfollowed_scopes != 0) {
      --owner->unfollowed_scopes;
    } else {
      ++unbalanced_;
    }
  }

  /// Applies a `thread_begin`: what was open on the ring's last thread has gone with it.
  template <class Finish>
  void begin_thread(followed_thread& on, std::uint64_t number, std::uint32_t greatest, Finish&& finish) noexcept {
    while (!on.scopes.empty()) close_innermost(on, finish);
    on.unfollowed_scopes = 0;
    on.thread = number < greatest ? static_cast<std::uint32_t>(number) : greatest;
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return operations_.bytes(); }

 private:
  friend struct detail::frame_parts;

  /// Closes the scopes within the one of number `outer`, the thread's innermost: their ends were dropped.
  template <class Finish>
  [[gnu::cold, gnu::noinline]] void close_lost(followed_thread& on, std::uint32_t outer, Finish&& finish) noexcept {
    const std::size_t kept = outer == 0 ? 0 : on.scopes.find(outer) + 1;
    for (; kept < on.scopes.depth(); ++unbalanced_) close_innermost(on, finish);
  }

  template <class Finish>
  [[gnu::always_inline]] void close_innermost(followed_thread& on, Finish&& finish) noexcept {
    operations_.count_finished(on.scopes.operation());
    on.scopes.close_innermost(
        [&](const open_scope& scope, std::uint8_t space, const scope_usage& usage) { finish(on.thread, scope, space, usage); });
  }

  template <class Finish>
  [[gnu::noinline]] void close(followed_thread& on, std::size_t index, Finish&& finish) noexcept {
    operations_.count_finished(on.scopes[index].operation);
    on.scopes.close(index, [&](const open_scope& scope, std::uint8_t space, const scope_usage& usage) {
      finish(on.thread, scope, space, usage);
    });
  }

  operation_tree operations_;
  std::uint64_t unbalanced_ = 0;
  std::uint64_t too_deep_ = 0;
};

}  // namespace memprof

#include <cstdint>

namespace memprof {

/// One thread of a ledger: its open operations, and what its next event most likely needs. The pointers hold until a scope begins
/// or ends or the space's statistics move, so that a run goes on where the thread's last one stopped.
///
/// Blocks come and go on behalf of its innermost operation, in the space to which the ledger has turned it. Stamps are taken by
/// reference, so that they are loaded only where they are needed: a copy costs an instruction at every event.
struct thread_state : followed_thread {
  /// What a run has turned to before its first event in a space: equal to no event's space, `any_space` included.
  static constexpr std::uint32_t no_space = 256;

  using followed_thread::followed_thread;

  /// False if the event must be rejected: the totals have no room for so many bytes.
  [[nodiscard, gnu::always_inline]] bool allocate(const event& recorded, const std::uint64_t& stamp) noexcept {
    space_ledger& account = *space;
    // One test for both, since neither ever happens.
    if (static_cast<unsigned>(!account.has_room_for(recorded.bytes)) | static_cast<unsigned>(recorded.address == 0)) [[unlikely]]
      return reject(recorded);
    live_blocks::insertion made = account.insert(recorded.address);
    if (!made.is_new) [[unlikely]] {
      if (made.entry == nullptr) {
        account.untracked_allocations.add(recorded.bytes);
        return true;
      }
      account.replaced_allocations.add(made.entry->bytes);
      release(account.find(recorded.address));
      made = account.insert(recorded.address);
    }
    const std::uint64_t owned_by = is_category(recorded.tag) ? with_category(recorded.tag) : owner;
    account.add(made.entry, recorded, *here, owned_by, thread, stamp);
    const auto bytes = static_cast<std::int64_t>(recorded.bytes);
    here->allocated += bytes;
    ++here->allocation_count;
    usage->allocate(bytes);
    return true;
  }

  [[gnu::always_inline]] void deallocate(const event& recorded, const std::uint64_t& stamp) noexcept {
    space_ledger& account = *space;
    const live_blocks::place entry = account.find(recorded.address);
    if (!entry) [[unlikely]] {
      if (recorded.address != 0) account.unmatched_frees.add(recorded.bytes);  // to free a null pointer is to do nothing
      account.mark_event(stamp);
      return;
    }
    if (recorded.bytes != 0 && recorded.bytes != entry->bytes) [[unlikely]] {
      account.mismatched_sizes.add(recorded.bytes > entry->bytes ? recorded.bytes - entry->bytes : entry->bytes - recorded.bytes);
    }
    take_away(entry);
    account.mark_event(stamp);
  }

  /// Frees a live block. The caller still tells the timeline.
  [[gnu::always_inline]] void take_away(const live_blocks::place& entry) noexcept {
    if (entry->thread() != thread) space->cross_thread_frees.add(entry->bytes);
    release(entry);
  }

  [[nodiscard]] std::uint64_t with_category(std::uint16_t tag) const noexcept {
    return block::owner_word(static_cast<std::uint32_t>(owner), category_of(tag), 0);
  }

  std::uint32_t space_id = no_space;
  space_ledger* space = nullptr;
  std::uint64_t moves = 0;
  bool prefetches = false;
  operation_stats* here = nullptr;
  scope_usage* usage = nullptr;
  std::uint64_t owner = 0;  ///< `block::owner_word` of the innermost operation and its category

 private:
  /// An allocation that is none: at a null address it has failed, and that is all there is to it.
  [[gnu::cold, gnu::noinline]] bool reject(const event& recorded) noexcept {
    if (recorded.address != 0) return false;
    space->null_allocations.add(recorded.bytes);
    return true;
  }

  [[gnu::always_inline]] void release(const live_blocks::place& entry) noexcept {
    const auto bytes = static_cast<std::int64_t>(entry->bytes);
    space->remove(entry);
    here->freed += bytes;
    ++here->deallocation_count;
    usage->deallocate(bytes);
  }
};

}  // namespace memprof

#include <cstdint>
#include <limits>

/// @file
/// What an allocator of a device tells beyond plain blocks: for which stream and from which pool, what it takes from the device
/// and gives back, which freed blocks streams still use, and when the device has no more.

namespace memprof {

/// Whether the event is one of these.
[[nodiscard]] inline bool is_allocator_event(event_kind kind) noexcept {
  return (kind >= event_kind::reserve && kind <= event_kind::out_of_memory) || kind == event_kind::complete_deallocation;
}

namespace detail {

/// The bytes that live at the event's address; 0 if nothing does.
[[nodiscard]] inline std::int64_t live_bytes_at(space_ledger& space, std::uint64_t address) noexcept {
  const live_blocks::place found = space.find(address);
  return found ? static_cast<std::int64_t>(found->bytes) : 0;
}

[[nodiscard]] inline bool allocate_on_stream(thread_state& run, const event& recorded, std::uint64_t stamp) noexcept {
  const std::int64_t replaced = live_bytes_at(*run.space, recorded.address);
  const std::uint64_t count = run.space->allocation_count();
  if (!run.allocate(recorded, stamp)) return false;
  stream_ledger& streams = run.space->streams();
  streams.deallocate(recorded.label, replaced);
  active_ledger& active = run.space->active();
  active.deallocate(replaced);
  if (run.space->allocation_count() == count) return true;
  streams.allocate(recorded.label, static_cast<std::int64_t>(recorded.bytes));
  active.allocate(recorded.address, static_cast<std::int64_t>(recorded.bytes));
  return true;
}

/// False if the system has no memory to keep a block that is freed and still in use.
[[nodiscard]] inline bool deallocate_on_stream(thread_state& run, const event& recorded, std::uint64_t stamp) noexcept {
  space_ledger& space = *run.space;
  const live_blocks::place freed = space.find(recorded.address);
  const std::uint64_t bytes = freed ? freed->bytes : 0;
  space.streams().deallocate(recorded.label, static_cast<std::int64_t>(bytes));
  const bool is_request = recorded.tag != 0;
  if (is_request && !freed) space.active().note_unknown_request();
  const bool is_kept = is_request && freed && space.active().request(recorded.address, bytes);
  if (!is_kept) space.active().deallocate(static_cast<std::int64_t>(bytes));
  run.deallocate(recorded, stamp);
  return is_kept || !is_request || !freed;
}

[[nodiscard]] inline bool change_reserved(space_ledger& space, const event& recorded) noexcept {
  reserved_ledger& held = space.reserved();
  const std::int64_t before = held.current();
  const bool is_applied = recorded.kind == event_kind::reserve ? held.reserve(recorded.address, recorded.bytes)
                                                               : held.release(recorded.address, recorded.bytes);
  if (is_applied) space.streams().change_reserved(recorded.label, held.current() - before);
  return is_applied;
}

[[nodiscard]] inline bool note_out_of_memory(thread_state& run, const event& recorded, std::uint64_t stamp) noexcept {
  constexpr auto greatest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (recorded.bytes > greatest || recorded.address > greatest) return false;
  space_ledger& space = *run.space;
  space.out_of_memory().add({static_cast<std::int64_t>(recorded.bytes), static_cast<std::int64_t>(recorded.address), space.live(),
                             space.reserved().current(), stamp, space.segment(), run.scopes.operation()});
  return true;
}

}  // namespace detail

/// Applies such an event to the space to which the thread has been turned. False if it must be rejected.
[[nodiscard]] inline bool apply_allocator_event(thread_state& run, const event& recorded, std::uint64_t stamp) noexcept {
  switch (recorded.kind) {
    case event_kind::allocate_on_stream: return detail::allocate_on_stream(run, recorded, stamp);
    case event_kind::deallocate_on_stream: return detail::deallocate_on_stream(run, recorded, stamp);
    case event_kind::complete_deallocation: run.space->active().complete(recorded.address, recorded.bytes); return true;
    case event_kind::out_of_memory: return detail::note_out_of_memory(run, recorded, stamp);
    default: return detail::change_reserved(*run.space, recorded);
  }
}

}  // namespace memprof

// ---- <memprof/ledger/per_core_event.hpp>
#include <cstdint>

namespace memprof {

/// An event about blocks on cores, and what it does to a space.
///
/// In the space as a whole a block on cores is an ordinary one, as large as its parts together; `space_ledger::cores` has the
/// parts.
class per_core_event {
 public:
  explicit per_core_event(const event& recorded) noexcept
      : part_(recorded), whole_(recorded), cores_(core_range::unpacked(recorded.label)) {
    whole_.tag = recorded.tag & 0xFFU;
    is_possible_ = cores_.is_valid() && !__builtin_mul_overflow(recorded.bytes, cores_.count(), &whole_.bytes);
  }

  /// False if no such event can be: its kind, rectangle, kind of buffer or size.
  [[nodiscard]] bool is_possible() const noexcept {
    switch (part_.kind) {
      case event_kind::allocate_on_cores:
        return is_possible_ && part_.address != 0 && part_.tag >> 8U <= static_cast<unsigned>(buffer_kind::circular_buffer);
      case event_kind::deallocate_on_cores: return is_possible_;
      case event_kind::deallocate_circular_buffers: return cores_.is_valid();
      default: return false;
    }
  }

  /// What applying a possible event costs; `space` may be null: it is not there yet.
  [[nodiscard]] std::uint64_t steps(const space_ledger* space) const noexcept {
    if (part_.kind == event_kind::allocate_on_cores) return cores_.count();
    if (space == nullptr) return 0;
    return part_.kind == event_kind::deallocate_on_cores ? space->cores().grid_size() : space->blocks().size();
  }

  /// Applies a possible event to the space to which the thread has been turned. False if it must be rejected: the totals have no
  /// room for so many bytes, or the system no memory.
  [[nodiscard]] bool apply(thread_state& run, std::uint64_t stamp) const noexcept {
    switch (part_.kind) {
      case event_kind::allocate_on_cores: return allocate(run, stamp);
      case event_kind::deallocate_on_cores:
        run.space->cores().deallocate(part_.address);
        run.deallocate(whole_, stamp);
        break;
      default: deallocate_circular_buffers(run, stamp); break;
    }
    return true;
  }

 private:
  [[nodiscard]] bool allocate(thread_state& run, std::uint64_t stamp) const noexcept {
    space_ledger& space = *run.space;
    const std::uint64_t born_thread = (space.allocation_count() + 1) << block::thread_bits | run.thread;
    const auto kind = static_cast<buffer_kind>(part_.tag >> 8U);
    // Asked before, so that both accounts have the block or neither.
    if (!space.has_room_for(whole_.bytes) || !space.cores().allocate(part_.address, part_.bytes, cores_, kind, born_thread)) {
      return false;
    }
    (void)run.allocate(whole_, stamp);
    space.check_cores(part_.address, cores_, stamp);
    return true;
  }

  void deallocate_circular_buffers(thread_state& run, std::uint64_t stamp) const noexcept {
    for (const std::uint64_t address : run.space->cores().deallocate_circular_buffers(cores_)) {
      const live_blocks::place entry = run.space->find(address);
      if (entry) run.take_away(entry);  // else an event that no `event_sink` sends freed it as an ordinary block
    }
    run.space->mark_event(stamp);
  }

  event part_;   ///< as recorded: `bytes` on each core, the kind of buffer in `tag`
  event whole_;  ///< as the space sees it
  core_range cores_;
  bool is_possible_;
};

}  // namespace memprof

// ---- <memprof/ledger/range_deallocation.hpp>
#include <cstdint>

namespace memprof {

/// Whether a `deallocate_range` frees the block at `address`.
[[nodiscard]] inline bool is_in_range(const event& recorded, std::uint64_t address) noexcept {
  return recorded.tag != 0 || (address >= recorded.address && address - recorded.address < recorded.bytes);
}

/// Applies a `deallocate_range` to the space to which the thread has been turned: an arena that gives back all its blocks at
/// once. Costs a pass over the live blocks of the space. False, and nothing changed, if the system has no memory for the
/// addresses.
[[nodiscard]] inline bool deallocate_range(thread_state& run, const event& recorded, std::uint64_t stamp) noexcept {
  space_ledger& space = *run.space;
  detail::page_array<std::uint64_t> addresses;
  bool has_memory = true;
  space.blocks().for_each([&](const block& live) {
    if (is_in_range(recorded, live.address)) has_memory = has_memory && addresses.push_back(live.address);
  });
  if (!has_memory) return false;
  for (const std::uint64_t address : addresses) {
    space.cores().deallocate(address);
    run.take_away(space.find(address));
  }
  space.mark_event(stamp);
  return true;
}

}  // namespace memprof

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace memprof {

namespace detail {
template <class State, class Ledger>
class ledger_frame;
}

/// A fold over events: the only place that knows what a peak is.
///
/// No threads, no clock, no I/O, no globals: the same events in the same order give the same result, live or replayed from a
/// file. Memory is bounded by live blocks, threads, and the numbers in `ledger_options`, never by the number of events, segments
/// or names. Not synchronised. It survives any input: what is impossible or unusual is counted.
class ledger {
 public:
  static constexpr std::uint32_t max_spaces = any_space;

  explicit ledger(const ledger_options& options = {}, std::uint64_t begin_stamp = 0) noexcept
      : options_(options),
        begin_stamp_(begin_stamp),
        stamp_(begin_stamp),
        segment_begin_(begin_stamp),
        operations_(options.operations),
        history_(options.kept_segments, options.segment_names) {}
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;
  ~ledger() { forget(); }

  /// Gives a memory space, or each core of it, a capacity in bytes; 0: none. The first allocation that exceeds it is kept with
  /// who held the rest, and events go on; that of a core is compared with blocks on cores alone. False, and nothing changed, if
  /// the space has had events already or the system has no memory.
  [[nodiscard]] bool limit(std::uint8_t space, std::int64_t capacity, bool is_per_core = false) noexcept {
    space_setting* const setting = setting_of(space);
    if (setting == nullptr) return false;
    setting->capacity = capacity;
    setting->is_per_core = is_per_core;
    return true;
  }

  /// Says in which memory a space lies: `host_memory`, a name, or 0 for one that it has to itself, as by default. Where two or
  /// more spaces lie in one, its joint peak is found too. False as for `limit`.
  [[nodiscard]] bool place(std::uint8_t space, label memory) noexcept {
    space_setting* const setting = setting_of(space);
    if (setting == nullptr) return false;
    setting->memory = memory;
    return true;
  }

  /// Bounds the time that events take which cost more than a step: the ends of segments and of operations on other threads,
  /// blocks on many cores, reservations among many. Those beyond `steps` in all, and 512 for each event, are rejected.
  void limit_work(std::uint64_t steps) noexcept { work_limit_ = steps; }
  /// Whether any were.
  [[nodiscard]] bool is_overworked() const noexcept { return is_overworked_; }

  /// Forgets all but the options, limits and places.
  void forget() noexcept {
    for (space_ledger* space : spaces_) {
      if (space != nullptr) destroy(space->shared());
    }
    for (shared_memory* memory : memories_) destroy(memory);
    memories_.clear();
    for (space_ledger*& space : spaces_) {
      destroy(space);
      space = nullptr;
    }
    for (thread_state* thread : threads_) destroy(thread);
    threads_.clear();
    history_.~segment_history();
    new (&history_) segment_history{options_.kept_segments, options_.segment_names};
    checkpoints_ = checkpoint_history{};
    operations_ = operation_follower{options_.operations};
    clock_ = clock_readings{};
    stamp_ = segment_begin_ = 0;
    events_ = events_of_frame_ = rejected_events_ = dropped_events_ = reentrant_events_ = missing_events_ = other_names_ = 0;
    are_more_missing_ = has_ended_ = is_behind_ = false;
  }

  /// Applies events [first, last) of one thread at a time, which `ring` stands for, in order. Constant time an event but for
  /// `scope_end` and growing tables.
  void apply(const event* first, const event* last, std::uint32_t ring) noexcept {
    thread_state* const state = find_thread(ring);
    events_ += static_cast<std::uint64_t>(last - first);
    if (state == nullptr) {
      rejected_events_ += static_cast<std::uint64_t>(last - first);
      return;
    }
    thread_state& run = *state;
    if (run.space != nullptr) {
      if (run.moves != run.space->moves()) run.space_id = thread_state::no_space;
      if (run.space->shared() != nullptr) activate(*run.space);
      run.prefetches = run.space->is_large();
    }
    for (const event* recorded = first; recorded != last; ++recorded) {
      if (run.prefetches && last - recorded > prefetch_distance) {
        // Nearly always the next events are of the same space; for another the guess only costs a cache line.
        run.space->prefetch(recorded[prefetch_distance].address);
      }
      // An event that was published late takes effect when it is applied, so no time runs backwards.
      if (recorded->stamp > stamp_) stamp_ = recorded->stamp;
      switch (recorded->kind) {
        case event_kind::allocate:
          if (enter(run, recorded->space) && !run.allocate(*recorded, stamp_)) ++rejected_events_;
          break;
        case event_kind::deallocate:
          if (enter(run, recorded->space)) run.deallocate(*recorded, stamp_);
          break;
        default:
          if (recorded->kind == event_kind::scope_begin) {
            begin_scope(run, *recorded);
          } else if (recorded->kind == event_kind::scope_end) {
            end_scope(run, *recorded);
          } else {
            apply_control(run, *recorded);
          }
          break;
      }
    }
  }

  /// Ends the segment at `stamp`. Costs a pass over the operations of each space and the segments that are kept; live blocks are
  /// not looked at.
  void end_segment(label name, std::uint64_t stamp) noexcept {
    if (stamp > stamp_) stamp_ = stamp;
    if (name == memprof::other_names) ++other_names_;
    if (!take_work(work_of_segment_end()) || !history_.add(name, segment_begin_, stamp_)) {
      ++rejected_events_;
      return;
    }
    segment_begin_ = stamp_;
    for (space_ledger* space : spaces_) {
      if (space != nullptr && !space->end_segment(history_, stamp_)) ++rejected_events_;
    }
    pin_joint_peaks();
    history_.drop_surplus();
    if (!history_.is_sparse()) return;
    for (space_ledger* space : spaces_) {
      if (space != nullptr) space->compact(history_);
    }
    history_.compact_marks();
  }

  /// Counts the peaks of the operations that are open, which otherwise wait for their end. Idempotent.
  void settle_open_scopes() noexcept {
    for (const thread_state* thread : threads_) {
      if (thread == nullptr) continue;
      const scope_stack& open = thread->scopes;
      open.for_each_space([&](std::uint8_t space, const space_scopes& scopes) {
        std::int64_t inner_max = 0;
        for (std::size_t depth = open.depth(); depth > 0; --depth) {
          inner_max = scopes[depth].max_with(inner_max);
          spaces_[space]->operation(open[depth - 1].operation).note_peak(inner_max, scopes[depth].self_max);
        }
      });
    }
  }

  [[nodiscard]] const operation_tree& operations() const noexcept { return operations_.operations(); }
  /// The finished segments.
  [[nodiscard]] const segment_history& segments() const noexcept { return history_; }
  [[nodiscard]] const checkpoint_history& checkpoints() const noexcept { return checkpoints_; }
  /// The ledger of a memory space, or null if no event named it.
  [[nodiscard]] const space_ledger* space(std::size_t id) const noexcept { return spaces_[id]; }
  /// The memories in which more than one space lies: the host's first, the others in the order of their labels.
  [[nodiscard]] const detail::page_array<shared_memory*>& memories() const noexcept { return memories_; }
  [[nodiscard]] std::uint64_t begin_stamp() const noexcept { return begin_stamp_; }
  [[nodiscard]] std::uint64_t segment_begin() const noexcept { return segment_begin_; }
  /// Stamp of the last event that had one.
  [[nodiscard]] std::uint64_t last_stamp() const noexcept { return stamp_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  [[nodiscard]] std::uint64_t rejected_events() const noexcept { return rejected_events_; }
  [[nodiscard]] std::uint64_t unbalanced_scopes() const noexcept { return operations_.unbalanced(); }
  [[nodiscard]] std::uint64_t too_deep_scopes() const noexcept { return operations_.too_deep(); }
  /// Events with a name for which the process had no room.
  [[nodiscard]] std::uint64_t other_names() const noexcept { return other_names_; }
  /// Events that never came, by cause: dropped ones, those of signal handlers that interrupted the profiler, and those that the
  /// trace lacks.
  [[nodiscard]] std::uint64_t dropped_events() const noexcept { return dropped_events_; }
  [[nodiscard]] std::uint64_t reentrant_events() const noexcept { return reentrant_events_; }
  [[nodiscard]] std::uint64_t missing_events() const noexcept { return missing_events_; }
  /// Whether there are others, of which nobody knows how many.
  [[nodiscard]] bool are_more_missing() const noexcept { return are_more_missing_; }
  /// Whether events are missing since the last key frame: the next one knows better. Also before the first event.
  [[nodiscard]] bool is_behind() const noexcept { return is_behind_ || events_ == 0; }
  /// What turns stamps into time.
  [[nodiscard]] const clock_readings& clock() const noexcept { return clock_; }
  /// The thread whose events a ring holds, and its open operations; null if there were no events.
  [[nodiscard]] const followed_thread* thread(std::size_t ring) const noexcept {
    return ring < threads_.size() ? threads_[ring] : nullptr;
  }
  /// Whether the capture's last event has come.
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  [[nodiscard]] const ledger_options& options() const noexcept { return options_; }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t total = sizeof(ledger) + operations_.bytes() + history_.bytes() + checkpoints_.bytes() + clock_.bytes() +
                        threads_.bytes() + settings_.bytes();
    total += memories_.bytes() + memories_.size() * sizeof(shared_memory);
    for (const space_ledger* space : spaces_) {
      if (space == nullptr) continue;
      total += sizeof(space_ledger) + space->bytes();
      if (space->shared() != nullptr) total += sizeof(memory_share) + space->shared()->bytes();
    }
    for (const thread_state* thread : threads_) total += thread == nullptr ? 0 : sizeof(thread_state) + thread->scopes.bytes();
    return total;
  }

 private:
  template <class State, class Ledger>
  friend class detail::ledger_frame;

  static constexpr std::uint64_t unlimited_work = ~std::uint64_t{0};
  /// Far enough for a cache miss to be over when its event comes; near enough that a short run profits.
  static constexpr std::ptrdiff_t prefetch_distance = 8;

  /// Counts what an operation did in a space while it was open.
  struct finish_operation {
    ledger& owner;

    void operator()(std::uint32_t thread, const open_scope& scope, std::uint8_t space, const scope_usage& usage) const noexcept {
      owner.spaces_[space]
          ->operation(scope.operation)
          .finish({scope.begin_stamp, owner.stamp_, usage.net(), usage.max_net, thread}, usage.self_max);
    }
  };

  /// What is said of a space before its first event.
  struct space_setting {
    std::int64_t capacity;  ///< 0: none
    bool is_per_core;
    label memory;  ///< 0: one of its own
  };

  /// Null if the space has had events already or the system has no memory.
  [[nodiscard]] space_setting* setting_of(std::uint8_t space) noexcept {
    if (spaces_[space] != nullptr) return nullptr;
    if (space >= settings_.size() && !settings_.resize(std::size_t{space} + 1)) return nullptr;
    return &settings_[space];
  }

  /// Turns the run to a memory space; false, and the event is counted as rejected, if there is no memory for a new one.
  [[nodiscard]] bool enter(thread_state& run, std::uint8_t space) noexcept {
    if (run.space_id == space) [[likely]]
      return true;
    return enter_other(run, space);
  }

  [[gnu::noinline]] bool enter_other(thread_state& run, std::uint8_t id) noexcept {
    space_ledger* const space = spaces_[id] != nullptr || id == any_space ? spaces_[id] : make_space(id);
    space_scopes* const usage = space == nullptr ? nullptr : run.scopes.in_space(id);
    if (usage == nullptr) {
      ++rejected_events_;
      return false;
    }
    if (space->shared() != nullptr) activate(*space);
    run.space_id = id;
    run.space = space;
    run.prefetches = space->is_large();
    run.usage = &usage->back();
    run.owner = block::owner_word(run.scopes.operation(), category_of(run.scopes.tag()), 0);
    run.here = &space->operation(run.scopes.operation());
    run.moves = space->moves();
    return true;
  }

  [[gnu::noinline]] void apply_control(thread_state& run, const event& recorded) noexcept {
    switch (recorded.kind) {
      case event_kind::annotate:
        if (recorded.label == memprof::other_names) ++other_names_;
        if (recorded.tag > category_names.size()) {
          ++rejected_events_;
        } else if (space_ledger* const space =
                       recorded.space == any_space ? space_of(recorded.address) : spaces_[recorded.space]) {
          space->annotate(recorded);
        } else {
          ++rejected_events_;
        }
        break;
      case event_kind::thread_begin:
        run.space_id = thread_state::no_space;
        // Threads beyond the last number are taken for one: a program has a million before.
        operations_.begin_thread(run, recorded.address, block::max_thread, finish_operation{*this});
        break;
      default: apply_rare(run, recorded); break;  // apart from the others, to which a larger switch would cost instructions
    }
  }

  [[gnu::noinline]] void apply_rare(thread_state& run, const event& recorded) noexcept {
    if (recorded.kind == event_kind::deallocate_range) {
      if (enter(run, recorded.space) && !deallocate_range(run, recorded, stamp_)) ++rejected_events_;
      return;
    }
    if (is_allocator_event(recorded.kind)) {
      if (enter(run, recorded.space) &&
          (!take_work(run.space->reserved().ranges() / 4) || !apply_allocator_event(run, recorded, stamp_))) {
        ++rejected_events_;
      }
      return;
    }
    if (recorded.kind >= event_kind::segment_end) return apply_to_capture(recorded);
    const per_core_event change{recorded};
    if (!change.is_possible() || !take_work(change.steps(spaces_[recorded.space]))) {
      ++rejected_events_;
    } else if (enter(run, recorded.space) && !change.apply(run, stamp_)) {
      ++rejected_events_;
    }
  }

  /// What the capture itself says, on whatever thread.
  void apply_to_capture(const event& recorded) noexcept {
    switch (recorded.kind) {
      case event_kind::segment_end: end_segment(recorded.label, stamp_); break;
      case event_kind::clock_reading: clock_.add(recorded.stamp, static_cast<std::int64_t>(recorded.address)); break;
      case event_kind::lost_events:
        dropped_events_ = recorded.address;
        reentrant_events_ = recorded.bytes;
        are_more_missing_ = recorded.tag != 0;
        break;
      case event_kind::capture_end: has_ended_ = true; break;
      case event_kind::gap:
        if (__builtin_add_overflow(missing_events_, recorded.bytes, &missing_events_)) missing_events_ = UINT64_MAX;
        is_behind_ = true;
        break;
      case event_kind::checkpoint: add_checkpoint(recorded.label); break;
      default: ++rejected_events_; break;
    }
  }

  /// Keeps what is live now. Costs a pass over the live blocks.
  void add_checkpoint(label name) noexcept {
    constexpr std::size_t blocks_a_step = 8;
    if (name == memprof::other_names) ++other_names_;
    std::size_t blocks = 0;
    for (const space_ledger* space : spaces_) blocks += space == nullptr ? 0 : space->blocks().size();
    if (!take_work(blocks / blocks_a_step) || !checkpoints_.begin(name, stamp_)) {
      ++rejected_events_;
      return;
    }
    for (std::uint8_t id = 0; id < max_spaces; ++id) {
      const space_ledger* const space = spaces_[id];
      if (space == nullptr || checkpoints_.add(id, space->blocks(), space->live(), options_.largest_blocks)) continue;
      checkpoints_.abandon();
      ++rejected_events_;
      return;
    }
  }

  [[gnu::noinline]] void begin_scope(thread_state& run, const event& recorded) noexcept {
    run.space_id = thread_state::no_space;
    if (recorded.label == memprof::other_names) [[unlikely]]
      ++other_names_;
    if (!operations_.begin(run, recorded, stamp_, finish_operation{*this})) ++rejected_events_;
  }

  [[gnu::noinline]] void end_scope(thread_state& run, const event& recorded) noexcept {
    run.space_id = thread_state::no_space;
    operations_.end(run, recorded, finish_operation{*this},
                    [this](std::uint32_t number) { return turn_thread_of_number(number); });
  }

  /// The thread of that number, which will look anew at the space that it has turned to.
  [[nodiscard]] thread_state* turn_thread_of_number(std::uint32_t number) noexcept {
    if (!take_work(8 * threads_.size())) return nullptr;  // each a page of its own
    for (thread_state* thread : threads_) {
      if (thread == nullptr || thread->thread != number) continue;
      thread->space_id = thread_state::no_space;
      return thread;
    }
    return nullptr;
  }

  [[nodiscard]] bool take_work(std::uint64_t steps) noexcept {
    constexpr std::uint64_t for_each_event = 512;
    if (work_limit_ == unlimited_work) return true;
    if (work_done_ + steps > work_limit_ + for_each_event * (events_ - events_of_frame_)) {
      is_overworked_ = true;
      return false;
    }
    work_done_ += steps;
    return true;
  }
  [[nodiscard]] std::uint64_t work_of_segment_end() const noexcept {
    std::uint64_t steps = 0;
    for (const space_ledger* space : spaces_) {
      if (space != nullptr) steps += space->operation_count() + space->cores().grid_size();
    }
    return steps;
  }

  [[nodiscard]] thread_state* find_thread(std::uint32_t ring) noexcept {
    if (ring < threads_.size() && threads_[ring] != nullptr) [[likely]]
      return threads_[ring];
    if (ring > block::max_thread || (ring >= threads_.size() && !threads_.resize(ring + 1))) return nullptr;
    return threads_[ring] = make<thread_state>(ring);
  }

  /// The space in which a block lives at `address`; else the first space, which will count the miss, and before any had an event
  /// that is `cpu`. Null if the system has no memory for it.
  [[nodiscard]] space_ledger* space_of(std::uint64_t address) noexcept {
    space_ledger* first = nullptr;
    for (space_ledger* space : spaces_) {
      if (space == nullptr) continue;
      if (space->find(address)) return space;
      if (first == nullptr) first = space;
    }
    return first == nullptr ? make_space(cpu_space) : first;
  }

  [[nodiscard]] space_ledger* make_space(std::uint8_t id) noexcept {
    space_ledger* const space = make<space_ledger>(options_, history_.count(), history_.marks().size(), segment_begin_);
    if (space == nullptr) return nullptr;
    if (!space->is_usable()) {
      destroy(space);
      return nullptr;
    }
    spaces_[id] = space;
    if (id < settings_.size()) {
      space->limit(settings_[id].capacity, settings_[id].is_per_core);
      if (settings_[id].memory != 0) join_memory(id, *space);
    }
    return space;
  }

  // --- memories that several spaces share ---------------------------------------------------------------------------

  /// Makes a space the one that changes in the memory which it shares. Before its events.
  void activate(space_ledger& space) noexcept {
    memory_share& share = *space.shared();
    shared_memory& memory = share.memory();
    if (memory.active == &space) return;
    if (memory.active != nullptr) memory.others += memory.active->live();
    memory.others -= space.live();
    memory.active = &space;
    memory.active_id = share.space();
    space.become_active();
  }

  /// A new space: if it is not the first in its memory, that is shared from now on.
  void join_memory(std::uint8_t id, space_ledger& space) noexcept {
    const label name = settings_[id].memory;
    for (std::size_t other = 0; other < settings_.size(); ++other) {
      if (other == id || settings_[other].memory != name || spaces_[other] == nullptr) continue;
      shared_memory* const memory = memory_of(static_cast<std::uint8_t>(other));
      if (memory != nullptr && !share(*memory, id, space)) memory->is_known = false;
      if (memory != nullptr) return;
      settings_[id].memory = 0;  // without memory for it, the joint peak is not followed
      return;
    }
  }

  /// The memory of a space that was the only one in it; null if the system has no memory for what is known of it.
  [[nodiscard]] shared_memory* memory_of(std::uint8_t id) noexcept {
    space_ledger& space = *spaces_[id];
    if (space.shared() != nullptr) return &space.shared()->memory();
    if (!memories_.reserve(memories_.size() + 1)) return nullptr;
    auto* const memory = make<shared_memory>(settings_[id].memory);
    if (memory == nullptr) return nullptr;
    if (!share(*memory, id, space)) {
      destroy(memory);
      return nullptr;
    }
    memory->others = space.live();
    memory->peak = space.greatest_live();
    if (memory->peak != 0) memory->lone_space = id;
    (void)memories_.push_back(memory);
    // In an order that does not depend on which memory was shared first: the host's, then by label.
    const auto rank = [](const shared_memory* of) { return of->name == host_memory ? 0 : of->name; };
    for (std::size_t at = memories_.size() - 1; at > 0 && rank(memories_[at]) < rank(memories_[at - 1]); --at)
      std::swap(memories_[at], memories_[at - 1]);
    return memory;
  }

  [[nodiscard]] bool share(shared_memory& memory, std::uint8_t id, space_ledger& space) noexcept {
    auto* const part = make<memory_share>(&memory, id, options_.largest_blocks);
    if (part == nullptr) return false;
    if (!part->is_usable()) {
      destroy(part);
      return false;
    }
    part->begin_peak(0, 0, 0);
    space.share(part);
    return true;
  }

  /// Keeps the segments with joint peaks. A segment has just ended.
  void pin_joint_peaks() noexcept {
    for (shared_memory* memory : memories_) {
      if (memory->lone_space != any_space || memory->peak == 0 || memory->peak_segment + 1 != history_.count()) continue;
      if (memory->is_pinned) history_.unpin(memory->pinned_segment);
      memory->is_pinned = true;
      memory->pinned_segment = memory->peak_segment;
      history_.pin(memory->peak_segment);
    }
  }

  template <class T, class... Arguments>
  [[nodiscard]] static T* make(const Arguments&... arguments) noexcept {
    void* const pages = detail::map_pages(sizeof(T));
    return pages == nullptr ? nullptr : new (pages) T(arguments...);
  }

  template <class T>
  static void destroy(T* object) noexcept {
    if (object == nullptr) return;
    object->~T();
    detail::unmap_pages(object, sizeof(T));
  }

  ledger_options options_;
  std::uint64_t begin_stamp_;
  std::uint64_t stamp_;
  std::uint64_t segment_begin_;
  std::uint64_t events_ = 0;
  std::uint64_t rejected_events_ = 0;
  std::uint64_t dropped_events_ = 0;
  std::uint64_t reentrant_events_ = 0;
  std::uint64_t missing_events_ = 0;
  std::uint64_t other_names_ = 0;
  std::uint64_t work_limit_ = unlimited_work;
  std::uint64_t work_done_ = 0;
  std::uint64_t events_of_frame_ = 0;  ///< of `events_` those before the key frame
  bool is_overworked_ = false;
  bool are_more_missing_ = false;
  bool has_ended_ = false;
  bool is_behind_ = false;
  clock_readings clock_;
  space_ledger* spaces_[max_spaces + 1] = {};  // the last one stays null: `any_space`
  operation_follower operations_;
  segment_history history_;
  checkpoint_history checkpoints_;
  detail::page_array<thread_state*> threads_;   ///< by ring
  detail::page_array<space_setting> settings_;  ///< by space. Empty unless `limit` or `place` was called
  detail::page_array<shared_memory*> memories_;
};

}  // namespace memprof

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// @file
/// A ledger as a key frame of a trace: whoever reads it goes on from there as if it had seen all events before.

namespace memprof {
namespace detail {

/// The ledger's sections of a frame, for writing and reading.
template <class State, class Ledger>
class ledger_frame {
 public:
  ledger_frame(State& state, Ledger& events) noexcept : state_(state), events_(events) {}

  void transfer() noexcept {
    std::uint32_t revision = frame_revision;
    state_.number(revision);
    state_.require(revision != 0 && revision <= frame_revision);
    state_.section(frame_section::operations, [this] { frame_parts::operations(state_, events_.operations_); });
    state_.section(frame_section::ledger, [this] { capture(); });
    if constexpr (State::reads) {
      while (state_.next_section() == frame_section::space) space(0);
    } else {
      for (std::size_t id = 0; id < ledger::max_spaces; ++id) {
        if (events_.spaces_[id] != nullptr) space(static_cast<std::uint8_t>(id));
      }
    }
    state_.section(frame_section::threads, [this] { threads(&ledger_frame::open_operations); });
    state_.section(frame_section::thread_usage, [this] { threads(&ledger_frame::usages); });
    state_.section(frame_section::checkpoints,
                   [this] { frame_parts::checkpoints(state_, events_.checkpoints_, operation_count()); });
    state_.section(frame_section::memories, [this] { memories(); });
    if constexpr (State::reads) {
      settle_memories();
      state_.require(state_.is_at_end());
      events_.events_of_frame_ = events_.events_;
    }
  }

 private:
  [[nodiscard]] std::size_t operation_count() const noexcept { return events_.operations().size(); }

  void capture() noexcept {
    state_.numbers(events_.stamp_, events_.segment_begin_, events_.dropped_events_, events_.reentrant_events_,
                   events_.missing_events_, events_.other_names_, events_.are_more_missing_, events_.has_ended_);
    state_.amounts(events_.events_, events_.rejected_events_);
    frame_parts::faults(state_, events_.operations_);
    frame_parts::clock(state_, events_.clock_);
    frame_parts::history(state_, events_.history_);
    state_.require(events_.segment_begin_ <= events_.stamp_);
  }

  void space(std::uint8_t id) noexcept {
    state_.section(frame_section::space, [&] {
      state_.number(id);
      if constexpr (State::reads) {
        state_.require(id < ledger::max_spaces && events_.spaces_[id] == nullptr);
        if (state_.has_failed() || events_.make_space(id) == nullptr) return state_.require(false);
      }
      frame_parts::space(state_, *events_.spaces_[id], operation_count(), events_.history_);
    });
    state_.section(frame_section::blocks, [&] {
      std::uint8_t same = id;
      state_.number(same);
      state_.require(same == id);
      if (!state_.has_failed()) frame_parts::blocks(state_, *events_.spaces_[id]);
    });
  }

  /// Calls `part(ring, thread)` for each thread.
  template <class Part>
  void threads(Part&& part) noexcept {
    std::size_t count = 0;
    for (const thread_state* thread : events_.threads_) count += thread == nullptr ? 0 : 1;
    if constexpr (State::reads) {
      state_.number(count);
      for (; count != 0 && !state_.has_failed(); --count) {
        std::uint32_t ring = 0;
        state_.number(ring);
        thread_state* const thread = state_.has_failed() ? nullptr : events_.find_thread(ring);
        state_.require(thread != nullptr);
        if (!state_.has_failed()) (this->*part)(*thread);
      }
    } else {
      state_.number(count);
      for (std::uint32_t ring = 0; ring < events_.threads_.size(); ++ring) {
        if (events_.threads_[ring] == nullptr) continue;
        state_.number(ring);
        (this->*part)(*events_.threads_[ring]);
      }
    }
  }

  using thread_part = std::conditional_t<State::reads, thread_state, const thread_state>;

  void open_operations(thread_part& thread) noexcept {
    state_.numbers(thread.thread, thread.unfollowed_scopes);
    state_.require(thread.thread <= block::max_thread);
    frame_parts::open_operations(state_, thread.scopes, operation_count());
  }
  void usages(thread_part& thread) noexcept {
    frame_parts::usages(state_, thread.scopes, [this](std::uint8_t id) { return events_.spaces_[id] != nullptr; });
  }

  void memories() noexcept {
    std::size_t count = events_.memories_.size();
    state_.number(count);
    state_.require(count == events_.memories_.size());
    for (auto* memory : events_.memories_) {
      if (state_.has_failed()) return;
      frame_parts::memory(state_, *memory, operation_count(), events_.history_);
      for (std::size_t id = 0; id < ledger::max_spaces; ++id) {
        auto* const space = events_.spaces_[id];
        if (space == nullptr || space->shared() == nullptr || &space->shared()->memory() != memory) continue;
        frame_parts::share(state_, *space->shared(), space->allocation_count(), operation_count());
      }
      for (const std::uint8_t id : {memory->peak_space, memory->lone_space})
        state_.require(id == any_space || events_.spaces_[id] != nullptr);
      state_.require(memory->lone_space != any_space || memory->peak_space != any_space || memory->peak == 0);
    }
  }
  /// No space is active yet.
  void settle_memories() noexcept {
    for (shared_memory* memory : events_.memories_) {
      memory->active = nullptr;
      memory->others = 0;
    }
    for (const space_ledger* space : events_.spaces_) {
      if (space != nullptr && space->shared() != nullptr) space->shared()->memory().others += space->live();
    }
    for (shared_memory* memory : events_.memories_) state_.require(memory->peak >= memory->others || !memory->is_known);
  }

  State& state_;
  Ledger& events_;
};

}  // namespace detail

/// Writes what a ledger knows as the bytes of a key frame. False if the system has no memory for it. Linear in the live blocks,
/// operations and segments.
[[nodiscard]] inline bool write_key_frame(const ledger& events, detail::page_array<unsigned char>& bytes) noexcept {
  detail::frame_writer out{bytes};
  detail::ledger_frame{out, events}.transfer();
  return out.finish();
}

/// Lets a ledger know what another one did when it wrote the frame, and nothing else; its options and limits must be those of
/// that one. False, and the ledger is as one that has seen nothing, if the frame is damaged or the system has no memory for it. A
/// frame of another revision, as a newer memprof writes, is left alone.
[[nodiscard]] inline bool read_key_frame(ledger& events, const unsigned char* bytes, std::size_t size) noexcept {
  std::uint32_t revision = 0;
  detail::frame_reader{bytes, size}.number(revision);
  if (revision > detail::frame_revision) return true;
  events.forget();
  detail::frame_reader in{bytes, size};
  detail::ledger_frame{in, events}.transfer();
  if (in.has_failed()) events.forget();
  return !in.has_failed();
}

}  // namespace memprof

// ---- <memprof/trace/definitions.hpp>
// ---- <memprof/trace/coding.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// @file
/// What the encoder and the decoder of a trace have in common: docs/trace_format.md describes the bytes.
///
/// Training repeats itself: blocks of the same sizes come back at the same addresses in every step. So both sides keep the
/// allocations that they met last, each in the slot that its address names, and an allocation or a free that its slot foretells
/// is two bytes.

namespace memprof::detail {

/// The first byte of a record. Its top bit says that it is a stamp; else the upper nibble is one of these, and the lower one
/// belongs to it.
enum class opcode : std::uint8_t {
  control = 0x00,
  allocate_known = 0x10,    ///< as the slot says. The lower nibble and one byte: the slot
  free_known = 0x20,        ///< of the slot's block, with its bytes; likewise
  free_known_bare = 0x30,   ///< of the slot's block, without bytes; likewise
  allocate_resized = 0x40,  ///< as the slot says but for the bytes, a varint; likewise
  begin_known = 0x50,       ///< an operation within the innermost, by its place among the recent names
  end_innermost = 0x60,
  any_event = 0x70,  ///< the lower nibble: the kind, or 15 and one byte; then a byte of `event_field` and these fields
};

/// Records of the control nibble. Those below `first_ring` have their length behind the first byte, as a varint.
enum class control : std::uint8_t {
  name = 1,   ///< id, text
  space = 2,  ///< id, label of its name, capacity in bytes, 1 if that is of each core
  header = 3,
  facts = 4,
  key_frame = 5,   ///< a part of what is known at this moment: `key_frame_part`
  position = 6,    ///< a ring, and how many of its events come before this record or are missing
  ring = 7,        ///< the events that follow are of this ring: a varint
  first_ring = 8,  ///< 8 to 15: they are of the ring at this place among the recent ones
};

/// Fields of `opcode::any_event`, in this order; those that are left out are 0, the space that of the last one.
enum event_field : std::uint8_t {
  distance_of_16 = 1,  ///< the address differs from the last one by a multiple of 16: the sixteenth, zigzag
  distance = 2,        ///< the address differs from the last one by this: zigzag
  bytes_field = 4,
  space_field = 8,
  label_field = 16,
  tag_field = 32,
};

/// The state that one record leaves to the next. It begins anew with each chunk, so that chunks can be read alone.
class coding_state {
 public:
  static constexpr std::size_t slot_count = 4096;
  static constexpr std::size_t ring_count = 8;
  static constexpr std::size_t name_count = 15;
  static constexpr std::size_t followed_depth = 16;

  /// An allocation as its event, but for the stamp.
  struct block_slot {
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint64_t rest;
  };

  /// What a ring's next begin or end of an operation most likely says.
  struct ring_state {
    std::uint32_t ring;
    std::uint32_t last_number;
    std::uint32_t depth;
    struct {
      std::uint32_t number;
      std::uint32_t label;
    } open[followed_depth];

    [[nodiscard]] std::uint32_t innermost() const noexcept { return depth == 0 ? 0 : open[depth - 1].number; }

    void begin(std::uint32_t number, std::uint32_t label) noexcept {
      last_number = number;
      if (depth == followed_depth) {
        std::memmove(open, open + 1, sizeof open - sizeof open[0]);
        --depth;
      }
      open[depth++] = {number, label};
    }
    void end(std::uint32_t number) noexcept {
      while (depth != 0 && open[depth - 1].number >= number) --depth;
    }
  };

  void restart() noexcept { std::memset(static_cast<void*>(this), 0, sizeof *this); }

  [[nodiscard]] static std::size_t slot_of(std::uint64_t address) noexcept {
    return std::size_t{address * 0x9E3779B97F4A7C15U >> 52};
  }

  /// The last fields of the free that belongs to an allocation: of the next kind, without a category.
  [[nodiscard]] static std::uint64_t rest_of_free(std::uint64_t rest) noexcept {
    return (rest & 0x0000'FFFF'FFFF'FFFFU) + (std::uint64_t{1} << 32);
  }

  [[nodiscard]] static bool is_allocation(std::uint8_t kind) noexcept {
    return kind == static_cast<std::uint8_t>(event_kind::allocate) ||
           kind == static_cast<std::uint8_t>(event_kind::allocate_on_cores) ||
           kind == static_cast<std::uint8_t>(event_kind::allocate_on_stream);
  }

  /// The recent ring of that id; `ring_count` if it is none of them.
  [[nodiscard]] std::size_t place_of_ring(std::uint32_t ring) const noexcept {
    for (std::size_t place = 0; place < ring_count; ++place) {
      if (rings[place].ring == ring && place < rings_used) return place;
    }
    return ring_count;
  }
  /// Makes a ring one of the recent ones, in place of the one that came first.
  std::size_t add_ring(std::uint32_t ring) noexcept {
    const std::size_t place = next_ring;
    next_ring = (next_ring + 1) % ring_count;
    if (rings_used < ring_count) ++rings_used;
    rings[place] = {};
    rings[place].ring = ring;
    return place;
  }

  /// The place of an operation's name and category among the recent ones; `name_count` if it is not there.
  [[nodiscard]] std::size_t place_of_name(std::uint64_t label_and_tag) const noexcept {
    for (std::size_t place = 0; place < name_count; ++place) {
      if (names[place] == label_and_tag) return place;
    }
    return name_count;
  }
  void add_name(std::uint64_t label_and_tag) noexcept {
    names[next_name] = label_and_tag;
    next_name = (next_name + 1) % name_count;
  }

  block_slot slots[slot_count] = {};
  std::uint64_t last_stamp = 0;
  std::uint64_t last_address = 0;
  ring_state rings[ring_count] = {};
  std::uint64_t names[name_count] = {};
  std::size_t rings_used = 0;
  std::size_t next_ring = 0;
  std::size_t next_name = 0;
  std::uint8_t last_space = 0;
};

/// The fields of an event after its bytes, as the word that they are in memory: label, kind, space, tag.
[[nodiscard]] inline std::uint64_t rest_of_event(const event& source) noexcept {
  std::uint64_t rest;
  std::memcpy(&rest, &source.label, sizeof rest);
  return rest;
}
inline void set_rest(event& target, std::uint64_t rest) noexcept { std::memcpy(&target.label, &rest, sizeof rest); }

}  // namespace memprof::detail

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// @file
/// The records of a trace that are no events, as bytes: docs/trace_format.md.

namespace memprof {

/// A memory space of a trace.
struct space_definition {
  std::uint8_t id = 0;
  label name = 0;
  std::int64_t capacity = 0;  ///< bytes; 0: no limit
  bool is_per_core = false;   ///< the capacity is that of each core
  label memory = 0;           ///< in which it lies with others: `host_memory` or a name; 0: it has one to itself

  bool operator==(const space_definition&) const = default;
};

/// Some bytes of a key frame: what is live at that moment of the trace, and what the ledger of the capture knew then. Whoever has
/// seen all events before needs none; whoever begins there, or behind a gap, goes on from it as if it had.
struct key_frame_part {
  std::uint64_t index = 0;  ///< among the parts of the frame, from 0
  bool is_last = false;
  std::string_view bytes;
};

/// Whoever takes a trace record by record, in order. One that has also `bool key_frame(key_frame_part)` takes key frames, and
/// returns whether they are sound.
template <class T>
concept trace_visitor = requires(T visitor, const capture_info& info, std::string_view text, fact_table facts,
                                 const event* events) {
  visitor.info(info);
  visitor.name(label{}, text);
  visitor.space(space_definition{});
  visitor.facts(static_cast<fact_table&&>(facts), bool{});  // false: the rows go on those of the table that came before
  visitor.events(events, events, std::uint32_t{});
};

namespace detail {

/// Appends numbers and text to the payload of a record.
class payload_writer {
 public:
  payload_writer& number(std::uint64_t value) {
    unsigned char bytes[max_varint_bytes];
    const unsigned char* const end = put_varint(bytes, value);
    text_.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(end - bytes));
    return *this;
  }
  payload_writer& signed_number(std::int64_t value) { return number(zigzag(value)); }
  payload_writer& text(std::string_view value) {
    number(value.size());
    text_.append(value);
    return *this;
  }
  payload_writer& real(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) text_ += static_cast<char>(bits >> shift);
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const noexcept { return text_; }

 private:
  std::string text_;
};

/// Takes them again. Behind the end, or behind a fault, everything is 0 and empty.
class payload_reader {
 public:
  explicit payload_reader(std::string_view payload) noexcept
      : next_(reinterpret_cast<const unsigned char*>(payload.data())), end_(next_ + payload.size()) {}

  [[nodiscard]] std::uint64_t number() noexcept {
    std::uint64_t value = 0;
    const unsigned char* const behind = get_varint(next_, end_, value);
    if (behind == nullptr) return fail();
    next_ = behind;
    return value;
  }
  [[nodiscard]] std::int64_t signed_number() noexcept { return unzigzag(number()); }
  [[nodiscard]] std::string_view text() noexcept {
    const std::uint64_t size = number();
    if (size > left()) return fail(), std::string_view{};
    const std::string_view value{reinterpret_cast<const char*>(next_), static_cast<std::size_t>(size)};
    next_ += size;
    return value;
  }
  [[nodiscard]] double real() noexcept {
    if (left() < 8) return fail(), 0;
    std::uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 8) bits |= std::uint64_t{*next_++} << shift;
    return std::bit_cast<double>(bits);
  }
  [[nodiscard]] bool is_at_end() const noexcept { return next_ == end_; }
  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - next_); }
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }

 private:
  std::uint64_t fail() noexcept {
    has_failed_ = true;
    next_ = end_;
    return 0;
  }

  const unsigned char* next_;
  const unsigned char* end_;
  bool has_failed_ = false;
};

/// Calls `visit(tag, field)` for each field of a capture's information. Tags are for good: a new field gets a new one.
template <class Info, class Visitor>
void for_each_info_field(Info& info, Visitor&& visit) {
  visit(1, info.library_version);
  visit(2, info.mode);
  visit(3, info.device);
  visit(4, info.begin_unix_ns);
  visit(5, info.begin_stamp);
  visit(6, info.timeline_points);
  visit(7, info.largest_blocks);
  visit(8, info.owners_per_segment);
  visit(9, info.process.id);
  visit(10, info.process.host);
  visit(11, info.process.command_line);
  visit(12, info.process.rank);
  visit(13, info.process.world_size);
  visit(14, info.process.local_rank);
  visit(15, info.kept_segments);
  visit(16, info.segment_names);
  visit(17, info.operations);
}

/// A field's tag, then its value as text: the digits of a number's varint, or the characters.
[[nodiscard]] inline std::string encode_info(const capture_info& info) {
  payload_writer out;
  for_each_info_field(info, [&]<class Field>(unsigned tag, const Field& field) {
    out.number(tag);
    if constexpr (std::is_same_v<Field, std::string>) {
      out.text(field);
    } else {
      out.text(payload_writer{}.signed_number(static_cast<std::int64_t>(field)).bytes());
    }
  });
  return out.bytes();
}

[[nodiscard]] inline bool decode_info(std::string_view payload, capture_info& info) {
  payload_reader in{payload};
  bool is_sound = true;
  while (!in.is_at_end()) {
    const std::uint64_t read_tag = in.number();
    const std::string_view value = in.text();
    for_each_info_field(info, [&]<class Field>(unsigned tag, Field& field) {
      if (tag != read_tag) return;
      if constexpr (std::is_same_v<Field, std::string>) {
        field = value;
      } else {
        const std::int64_t number = payload_reader{value}.signed_number();
        field = static_cast<Field>(number);
        is_sound = is_sound && static_cast<std::int64_t>(field) == number;
      }
    });
  }
  return is_sound && !in.has_failed() && info.mode <= run_mode::no_dispatch && info.largest_blocks <= max_largest_blocks;
}

inline void put_row(payload_writer& out, const std::vector<fact_value>& row) {
  for (const fact_value& value : row) {
    out.number(value.index());
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      out.signed_number(*integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      out.real(*real);
    } else {
      out.text(*std::get_if<std::string>(&value));
    }
  }
}

/// Takes a value as `put_row` wrote it; false if it is of no known type.
[[nodiscard]] inline bool get_fact(payload_reader& in, fact_value& value) {
  switch (in.number()) {
    case 0: value = in.signed_number(); return true;
    case 1: value = in.real(); return true;
    case 2: value = std::string{in.text()}; return true;
    default: return false;
  }
}

/// Calls `visit(payload)` for the records of a table that is `fitted`: some of its rows each. The first replaces the table, the
/// others add to it.
template <class Visitor>
void for_each_part(const fact_table& table, Visitor&& visit) {
  constexpr std::size_t enough = std::size_t{64} * 1024;
  std::size_t row = 0;
  do {
    payload_writer rows;
    const std::size_t first = row;
    while (row < table.rows.size() && rows.bytes().size() < enough) put_row(rows, table.rows[row++]);
    payload_writer out;
    out.text(table.name).number(first).number(table.columns.size());
    for (const std::string& column : table.columns) out.text(column);
    out.number(row - first);
    visit(out.bytes() + rows.bytes());
  } while (row < table.rows.size());
}

/// Reads a part; `first` is the index of its first row in the table.
[[nodiscard]] inline bool decode_facts(std::string_view payload, fact_table& table, std::uint64_t& first) {
  payload_reader in{payload};
  table.name = in.text();
  first = in.number();
  // Numbers of columns and rows are bounded by the bytes that are there, so that a lie costs no memory.
  const std::uint64_t columns = in.number();
  if (columns > max_fact_columns) return false;
  for (std::uint64_t column = 0; column < columns && !in.has_failed(); ++column) {
    table.columns.emplace_back(in.text());
  }
  const std::uint64_t rows = in.number();
  if (table.columns.empty() && rows != 0) return false;
  for (std::uint64_t row = 0; row < rows && !in.has_failed(); ++row) {
    std::vector<fact_value>& values = table.rows.emplace_back(table.columns.size());
    for (fact_value& value : values) {
      if (!get_fact(in, value)) return false;
    }
  }
  return !in.has_failed();
}

/// Puts a part of a table where it belongs among those that came before.
inline void merge_facts(std::vector<fact_table>& tables, fact_table&& part, bool is_first) {
  std::size_t index = 0;
  while (index < tables.size() && tables[index].name != part.name) ++index;
  if (index == tables.size()) {
    if (index < max_fact_tables) tables.push_back(std::move(part));
  } else if (is_first || tables[index].columns != part.columns) {
    tables[index] = std::move(part);
  } else {
    for (auto& row : part.rows) tables[index].rows.push_back(std::move(row));
  }
}

/// Hands a record of the control nibble to a visitor; false if it is none that can be. Kinds that are not known are skipped.
template <class Visitor>
[[nodiscard]] bool visit_definition(control kind, std::string_view payload, Visitor& visitor) {
  payload_reader in{payload};
  switch (kind) {
    case control::name: {
      const std::uint64_t id = in.number();
      if (in.has_failed() || id == 0 || id > 0xFFFF'FFFFU) return false;
      visitor.name(static_cast<label>(id), payload.substr(payload.size() - in.left()));
      return true;
    }
    case control::space: {
      space_definition space;
      const std::uint64_t id = in.number();
      const std::uint64_t name = in.number();
      space.capacity = in.signed_number();
      space.is_per_core = in.number() != 0;
      // Older traces have no memory; theirs was the host's for the space that is always there.
      const std::uint64_t memory = in.is_at_end() ? (id == cpu_space ? 1 : 0) : in.number();
      if (in.has_failed() || id >= any_space || name > 0xFFFF'FFFFU || memory > host_memory || space.capacity < 0) return false;
      space.memory = memory == 1 ? host_memory : memory == 0 ? 0 : static_cast<label>(memory - 1);
      space.id = static_cast<std::uint8_t>(id);
      space.name = static_cast<label>(name);
      visitor.space(space);
      return true;
    }
    case control::header: {
      capture_info info;
      if (!decode_info(payload, info)) return false;
      visitor.info(info);
      return true;
    }
    case control::facts: {
      fact_table table;
      std::uint64_t first = 0;
      if (!decode_facts(payload, table, first)) return false;
      visitor.facts(std::move(table), first == 0);
      return true;
    }
    case control::key_frame: {
      key_frame_part part;
      part.index = in.number();
      part.is_last = in.number() != 0;
      part.bytes = payload.substr(payload.size() - in.left());
      if (in.has_failed()) return false;
      if constexpr (requires { visitor.key_frame(part); }) return visitor.key_frame(part);
      return true;
    }
    default: return true;
  }
}

/// The payload of a name, and of a space: small, and made without taking memory from the heap.
class small_payload {
 public:
  small_payload& number(std::uint64_t value) noexcept {
    size_ = static_cast<std::size_t>(put_varint(bytes_ + size_, value) - bytes_);
    return *this;
  }
  [[nodiscard]] std::string_view view() const noexcept { return {reinterpret_cast<const char*>(bytes_), size_}; }

 private:
  unsigned char bytes_[5 * max_varint_bytes];
  std::size_t size_ = 0;
};

/// Calls `visit(head, bytes)` for the records of a key frame: the two parts of the payload of each.
template <class Visitor>
void for_each_key_frame_part(const page_array<unsigned char>& frame, Visitor&& visit) noexcept {
  constexpr std::size_t most = std::size_t{64} * 1024;
  std::size_t begin = 0;
  for (std::uint64_t index = 0; begin < frame.size(); ++index) {
    const std::size_t size = frame.size() - begin < most ? frame.size() - begin : most;
    const bool is_last = begin + size == frame.size();
    const small_payload head = small_payload{}.number(index).number(is_last ? 1 : 0);
    visit(head.view(), std::string_view{reinterpret_cast<const char*>(frame.data() + begin), size});
    begin += size;
  }
}

[[nodiscard]] inline small_payload encode_space(const space_definition& space) noexcept {
  small_payload out;
  out.number(space.id).number(space.name).number(zigzag(space.capacity)).number(space.is_per_core ? 1 : 0);
  out.number(space.memory == host_memory ? 1 : space.memory == 0 ? 0 : space.memory + std::uint64_t{1});
  return out;
}

}  // namespace detail
}  // namespace memprof

// ---- <memprof/trace/key_frame_collector.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memprof::detail {

/// Puts the parts of a key frame together.
class key_frame_collector {
 public:
  /// Adds a part; true if the frame is whole now. A part without those before it is of no use, and nothing is lost by waiting for
  /// the next frame.
  [[nodiscard]] bool add(const key_frame_part& part) noexcept {
    if (part.index == 0) {
      bytes_.clear();
      next_ = 0;
    }
    const std::size_t filled = bytes_.size();
    if (part.index != next_ || !bytes_.resize(filled + part.bytes.size())) return false;
    if (!part.bytes.empty()) std::memcpy(bytes_.data() + filled, part.bytes.data(), part.bytes.size());
    ++next_;
    return part.is_last;
  }

  [[nodiscard]] const unsigned char* data() const noexcept { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  void clear() noexcept {
    bytes_ = {};
    next_ = none;
  }

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  page_array<unsigned char> bytes_;
  std::uint64_t next_ = none;
};

}  // namespace memprof::detail

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof {

/// A trace as far as it has come, folded: the ledger of its events, and what explains them. What a profile is made of.
///
/// A capture feeds one while it records, and a trace that is read, from memory or a file, feeds another in the same way: both
/// give the same profile. Not synchronised.
class trace_fold {
 public:
  trace_fold() noexcept = default;
  /// Takes names from `names`, which must outlive it, in place of the trace's own records of them.
  explicit trace_fold(const label_table& names) noexcept : borrowed_names_(&names) {}
  trace_fold(const trace_fold&) = delete;
  trace_fold& operator=(const trace_fold&) = delete;

  /// As `ledger::limit_work`. Before the first record.
  void limit_work(std::uint64_t steps) noexcept { work_limit_ = steps; }
  /// Keeps so many segments in full, whatever the capture did; 0: as many as it did. Before the first record.
  void keep_segments(std::uint32_t count) noexcept { kept_segments_ = count; }

  // --- a trace_visitor ----------------------------------------------------------------------------------------------

  void info(const capture_info& info) {
    const std::string encoded = detail::encode_info(info);
    info_.clear();
    if (info_.resize(encoded.size())) std::memcpy(info_.data(), encoded.data(), encoded.size());
    if (!events_) begin(info);
  }
  void name(label id, std::string_view text) noexcept {
    // Ids are 1, 2, 3, ...: a name that comes again, as where a trace goes on after a gap, is known.
    if (borrowed_names_ == nullptr && id == own_names_.size() + 1) own_names_.append(text);
  }
  void space(const space_definition& space) noexcept {
    space_names_[space.id] = space.name;
    if (!events_) begin({});
    if (space.capacity != 0) (void)events_->limit(space.id, space.capacity, space.is_per_core);
    if (space.memory != 0) (void)events_->place(space.id, space.memory);
  }
  void facts(fact_table&& table, bool is_first) { detail::merge_facts(facts_, std::move(table), is_first); }
  void events(const event* first, const event* last, std::uint32_t ring) noexcept {
    if (!events_) begin({});
    events_->apply(first, last, ring);
  }
  /// Goes on from a key frame if events are missing before it.
  bool key_frame(const key_frame_part& part) noexcept {
    if (!events().is_behind()) return true;
    if (!frame_.add(part)) return true;
    const bool is_sound = read_key_frame(events(), frame_.data(), frame_.size());
    frame_.clear();
    if (is_sound) return true;
    const event gap{0, 0, 1, 0, event_kind::gap, any_space, 0};
    events().apply(&gap, &gap + 1, no_ring_id);
    return false;
  }

  // --- what a profile asks ------------------------------------------------------------------------------------------

  [[nodiscard]] capture_info info() const {
    capture_info decoded;
    (void)detail::decode_info({info_.data(), info_.size()}, decoded);
    return decoded;
  }
  [[nodiscard]] name_view names() const noexcept { return borrowed_names_ != nullptr ? *borrowed_names_ : name_view{own_names_}; }
  /// By id of the space.
  [[nodiscard]] const label* space_names() const noexcept { return space_names_; }
  [[nodiscard]] const std::vector<fact_table>& facts() const noexcept { return facts_; }
  [[nodiscard]] ledger& events() noexcept {
    if (!events_) begin({});
    return *events_;
  }

  /// Writes a key frame of the trace up to now; all its names must be known to whoever reads it. False if the system has no
  /// memory for it.
  [[nodiscard]] bool write_key_frame(detail::page_array<unsigned char>& bytes) noexcept {
    return memprof::write_key_frame(events(), bytes);
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return sizeof(trace_fold) + (events_ ? events_->bytes() - sizeof(ledger) : 0) + own_names_.bytes() + info_.bytes();
  }

 private:
  void begin(const capture_info& info) noexcept {
    events_.emplace(
        ledger_options{info.timeline_points, info.largest_blocks, info.owners_per_segment,
                       kept_segments_ == 0 ? info.kept_segments : kept_segments_, info.segment_names, info.operations},
        info.begin_stamp);
    if (work_limit_) events_->limit_work(*work_limit_);
  }

  const label_table* borrowed_names_ = nullptr;
  label_table own_names_;
  detail::page_array<char> info_;  ///< encoded: while a capture is active it holds nothing that `operator new` gave
  label space_names_[any_space + 1] = {};
  std::vector<fact_table> facts_;
  std::optional<std::uint64_t> work_limit_;
  std::uint32_t kept_segments_ = 0;
  std::optional<ledger> events_;
  detail::key_frame_collector frame_;
};
static_assert(trace_visitor<trace_fold>);

}  // namespace memprof

// ---- <memprof/trace/decoder.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof::detail {

/// Turns the bytes of a trace's chunks back into events and definitions.
///
/// It takes any bytes: what is no record ends the chunk there, and what came before has been handed on.
class trace_decoder {
 public:
  /// Begins a chunk.
  void restart() noexcept {
    state_.restart();
    ring_ = nullptr;
  }

  /// Hands the records in [in, end) to `visitor`: `events(first, last, ring)` for runs of one ring's events, at most `batch` at a
  /// time, and `definition(control, payload)` for the others. Returns where it stopped: `end`, or the first record that is none.
  template <class Visitor>
  [[nodiscard]] const unsigned char* decode(const unsigned char* in, const unsigned char* end, Visitor& visitor) {
    event batch[batch_size];
    std::size_t count = 0;
    std::uint64_t stamp = 0;
    const unsigned char* record = in;
    const auto hand_on = [&] {
      if (count != 0) visitor.events(batch, batch + count, ring_->ring);
      count = 0;
    };
    while (in != end) {
      record = in;
      const unsigned char first = *in++;
      if (first >= 0x80) {
        std::uint64_t change = first & 0x3FU;
        if ((first & 0x40U) != 0) {
          std::uint64_t upper = 0;
          in = get_varint(in, end, upper);
          if (in == nullptr) break;
          change |= upper << 6;
        }
        state_.last_stamp += static_cast<std::uint64_t>(unzigzag(change));
        stamp = state_.last_stamp;
        continue;
      }
      if (first < 0x10) {
        hand_on();
        in = take_control(first, in, end, visitor);
        if (in == nullptr) break;
        continue;
      }
      if (ring_ == nullptr) {
        in = nullptr;
        break;
      }
      event& next = batch[count];
      in = take_event(first, in, end, next);
      if (in == nullptr) break;
      next.stamp = stamp;
      stamp = 0;
      if (++count == batch_size) hand_on();
    }
    hand_on();
    return in == nullptr ? record : in;
  }

 private:
  static constexpr std::size_t batch_size = 256;

  template <class Visitor>
  [[nodiscard]] const unsigned char* take_control(unsigned char first, const unsigned char* in, const unsigned char* end,
                                                  Visitor& visitor) {
    constexpr auto first_ring = static_cast<unsigned char>(control::first_ring);
    if (first >= first_ring) {
      const std::size_t place = first - first_ring;
      if (place >= state_.rings_used) return nullptr;
      ring_ = &state_.rings[place];
      return in;
    }
    std::uint64_t value = 0;
    in = get_varint(in, end, value);
    if (in == nullptr || first == 0) return nullptr;
    if (first == static_cast<unsigned char>(control::ring)) {
      if (value > 0xFFFF'FFFFU) return nullptr;
      ring_ = &state_.rings[state_.add_ring(static_cast<std::uint32_t>(value))];
      return in;
    }
    if (value > static_cast<std::uint64_t>(end - in)) return nullptr;
    visitor.definition(static_cast<control>(first), std::string_view{reinterpret_cast<const char*>(in), std::size_t{value}});
    return in + value;
  }

  [[nodiscard, gnu::always_inline]] const unsigned char* take_event(unsigned char first, const unsigned char* in,
                                                                    const unsigned char* end, event& next) noexcept {
    const auto code = static_cast<opcode>(first & 0xF0U);
    if (code <= opcode::allocate_resized) {
      if (in == end) return nullptr;
      coding_state::block_slot& slot = state_.slots[(first & 0x0FU) << 8 | *in++];
      next.address = slot.address;
      next.bytes = slot.bytes;
      set_rest(next, slot.rest);
      if (code == opcode::allocate_known) return in;
      if (code == opcode::allocate_resized) {
        in = get_varint(in, end, next.bytes);
        if (in != nullptr) slot.bytes = next.bytes;
        return in;
      }
      set_rest(next, coding_state::rest_of_free(slot.rest));
      if (code == opcode::free_known_bare) next.bytes = 0;
      return in;
    }
    if (code == opcode::any_event) return take_any(first & 0x0FU, in, end, next);
    return take_scope(first, in, next);
  }

  [[nodiscard]] const unsigned char* take_scope(unsigned char first, const unsigned char* in, event& next) noexcept {
    coding_state::ring_state& ring = *ring_;
    next.bytes = 0;
    if (static_cast<opcode>(first & 0xF0U) == opcode::end_innermost) {
      if (ring.depth == 0 || (first & 0x0FU) != 0) return nullptr;
      const auto ended = ring.open[ring.depth - 1];
      next.address = ended.number;
      next.label = ended.label;
      next.kind = event_kind::scope_end;
      next.space = any_space;
      next.tag = 0;
      ring.end(ended.number);
      return in;
    }
    const std::size_t place = first & 0x0FU;
    if (place == coding_state::name_count) return nullptr;
    set_rest(next, state_.names[place]);
    next.kind = event_kind::scope_begin;
    next.space = any_space;
    next.address = scope_address(ring.last_number + 1, ring.innermost());
    ring.begin(ring.last_number + 1, next.label);
    return in;
  }

  [[nodiscard]] const unsigned char* take_any(unsigned kind, const unsigned char* in, const unsigned char* end,
                                              event& next) noexcept {
    if (kind == 15) {
      if (in == end) return nullptr;
      kind = *in++;
    }
    if (in == end) return nullptr;
    const unsigned present = *in++;
    std::uint64_t value = 0;
    const auto take = [&] {
      if (in != nullptr) in = get_varint(in, end, value);
      return in != nullptr ? value : 0;
    };
    const bool is_memory = has_address(static_cast<event_kind>(kind));
    next.address = is_memory ? state_.last_address : 0;
    if ((present & distance_of_16) != 0) {
      next.address += static_cast<std::uint64_t>(unzigzag(take())) * 16;
    } else if ((present & distance) != 0) {
      next.address += static_cast<std::uint64_t>(unzigzag(take()));
    }
    next.bytes = (present & bytes_field) != 0 ? take() : 0;
    if ((present & space_field) != 0) {
      if (in == nullptr || in == end) return nullptr;
      state_.last_space = *in++;
    }
    const std::uint64_t label = (present & label_field) != 0 ? take() : 0;
    const std::uint64_t tag = (present & tag_field) != 0 ? take() : 0;
    if (in == nullptr || label > 0xFFFF'FFFFU || tag > 0xFFFFU || (present & 0xC0U) != 0) return nullptr;
    next.label = static_cast<std::uint32_t>(label);
    next.kind = static_cast<event_kind>(kind);
    next.space = state_.last_space;
    next.tag = static_cast<std::uint16_t>(tag);
    note(next);
    return in;
  }

  /// What the encoder has noted of an event that it wrote out.
  void note(const event& taken) noexcept {
    if (has_address(taken.kind)) state_.last_address = taken.address;
    const std::uint64_t rest = rest_of_event(taken);
    if (taken.kind == event_kind::scope_begin) {
      ring_->begin(static_cast<std::uint32_t>(taken.address), taken.label);
      const std::uint64_t label_and_tag = rest & 0xFFFF'0000'FFFF'FFFFU;
      if (state_.place_of_name(label_and_tag) == coding_state::name_count) state_.add_name(label_and_tag);
    } else if (taken.kind == event_kind::scope_end) {
      if (taken.address >> 32 == 0) ring_->end(static_cast<std::uint32_t>(taken.address));
    } else if (coding_state::is_allocation(static_cast<std::uint8_t>(taken.kind))) {
      state_.slots[coding_state::slot_of(taken.address)] = {taken.address, taken.bytes, rest};
    }
  }

  coding_state state_;
  coding_state::ring_state* ring_ = nullptr;
};

}  // namespace memprof::detail

// ---- <memprof/trace/kept_facts.hpp>
// ---- <memprof/trace/trace.hpp>
// ---- <memprof/trace/encoder.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace memprof::detail {

/// Where encoded records go.
struct encoded_bytes {
  unsigned char* next;
  unsigned char* end;

  [[nodiscard]] std::size_t room() const noexcept { return static_cast<std::size_t>(end - next); }
};

/// Turns events into the bytes of a trace, in the form that docs/trace_format.md describes: two to six bytes an event.
class trace_encoder {
 public:
  /// A record of an event takes at most that many bytes, with the stamp and the ring before it.
  static constexpr std::size_t max_event_bytes = 64;

  /// Begins a chunk.
  void restart() noexcept {
    state_.restart();
    ring_ = nullptr;
  }

  /// Writes as many of the events [first, last) of a ring as `out` has room for, and returns the first that is not written.
  [[nodiscard]] const event* encode(const event* first, const event* last, std::uint32_t ring, encoded_bytes& out) noexcept {
    if (out.room() < max_event_bytes) return first;
    unsigned char* next = turn_to(ring, out.next);
    const unsigned char* const full = out.end - max_event_bytes;
    for (; first != last && next <= full; ++first) next = put(*first, next);
    out.next = next;
    return first;
  }

  /// Writes a record of the control nibble with its length, for which `out` must have room. Its payload may come in two parts.
  static void put_control(control kind, std::string_view payload, std::string_view more, encoded_bytes& out) noexcept {
    *out.next++ = static_cast<unsigned char>(kind);
    out.next = put_varint(out.next, payload.size() + more.size());
    for (const std::string_view part : {payload, more}) {
      if (!part.empty()) std::memcpy(out.next, part.data(), part.size());
      out.next += part.size();
    }
  }
  [[nodiscard]] static constexpr std::size_t control_bytes(std::size_t payload) noexcept {
    return payload + 1 + max_varint_bytes;
  }

 private:
  [[nodiscard]] unsigned char* turn_to(std::uint32_t ring, unsigned char* out) noexcept {
    if (ring_ != nullptr && ring_->ring == ring) return out;
    std::size_t place = state_.place_of_ring(ring);
    if (place != coding_state::ring_count) {
      *out++ = static_cast<unsigned char>(static_cast<std::size_t>(control::first_ring) + place);
    } else {
      *out++ = static_cast<unsigned char>(control::ring);
      out = put_varint(out, ring);
      place = state_.add_ring(ring);
    }
    ring_ = &state_.rings[place];
    return out;
  }

  [[nodiscard, gnu::always_inline]] unsigned char* put(const event& source, unsigned char* out) noexcept {
    if (source.stamp != 0) out = put_stamp(source.stamp, out);
    const std::uint64_t rest = rest_of_event(source);
    if (source.kind == event_kind::scope_begin || source.kind == event_kind::scope_end) [[unlikely]]
      return put_scope(source, rest, out);
    const std::size_t place = coding_state::slot_of(source.address);
    coding_state::block_slot& slot = state_.slots[place];
    if (slot.address == source.address) {
      if (slot.rest == rest) {
        if (slot.bytes == source.bytes) return put_slot(opcode::allocate_known, place, out);
        slot.bytes = source.bytes;
        return put_varint(put_slot(opcode::allocate_resized, place, out), source.bytes);
      }
      if (coding_state::rest_of_free(slot.rest) == rest) {
        if (slot.bytes == source.bytes) return put_slot(opcode::free_known, place, out);
        if (source.bytes == 0) return put_slot(opcode::free_known_bare, place, out);
      }
    }
    if (coding_state::is_allocation(static_cast<std::uint8_t>(source.kind))) slot = {source.address, source.bytes, rest};
    return put_any(source, out);
  }

  [[nodiscard]] static unsigned char* put_slot(opcode code, std::size_t place, unsigned char* out) noexcept {
    out[0] = static_cast<unsigned char>(static_cast<std::size_t>(code) | place >> 8);
    out[1] = static_cast<unsigned char>(place);
    return out + 2;
  }

  /// The difference to the last stamp: its lowest six bits here, the others behind if there are any.
  [[nodiscard]] unsigned char* put_stamp(std::uint64_t stamp, unsigned char* out) noexcept {
    const std::uint64_t change = zigzag(static_cast<std::int64_t>(stamp - state_.last_stamp));
    state_.last_stamp = stamp;
    if (change < 0x40) {
      *out++ = static_cast<unsigned char>(0x80 | change);
      return out;
    }
    *out++ = static_cast<unsigned char>(0xC0 | (change & 0x3F));
    return put_varint(out, change >> 6);
  }

  [[nodiscard, gnu::noinline]] unsigned char* put_scope(const event& source, std::uint64_t rest, unsigned char* out) noexcept {
    const auto number = static_cast<std::uint32_t>(source.address);
    const auto other = static_cast<std::uint32_t>(source.address >> 32);
    coding_state::ring_state& ring = *ring_;
    if (source.kind == event_kind::scope_end) {
      const bool is_innermost = other == 0 && ring.depth != 0 && ring.innermost() == number &&
                                ring.open[ring.depth - 1].label == source.label && source.bytes == 0 && source.tag == 0 &&
                                source.space == any_space;
      if (other == 0) ring.end(number);
      if (!is_innermost) return put_any(source, out);
      *out++ = static_cast<unsigned char>(opcode::end_innermost);
      return out;
    }
    const bool is_next =
        number == ring.last_number + 1 && other == ring.innermost() && source.bytes == 0 && source.space == any_space;
    ring.begin(number, source.label);
    const std::uint64_t label_and_tag = (rest & 0xFFFF'0000'FFFF'FFFFU);
    const std::size_t place = state_.place_of_name(label_and_tag);
    if (is_next && place != coding_state::name_count) {
      *out++ = static_cast<unsigned char>(static_cast<std::size_t>(opcode::begin_known) | place);
      return out;
    }
    if (place == coding_state::name_count) state_.add_name(label_and_tag);
    return put_any(source, out);
  }

  [[nodiscard, gnu::noinline]] unsigned char* put_any(const event& source, unsigned char* out) noexcept {
    const auto kind = static_cast<std::uint8_t>(source.kind);
    if (kind < 15) {
      *out++ = static_cast<unsigned char>(static_cast<std::uint8_t>(opcode::any_event) | kind);
    } else {
      *out++ = static_cast<unsigned char>(static_cast<std::uint8_t>(opcode::any_event) | 15U);
      *out++ = kind;
    }
    unsigned char* const fields = out++;
    unsigned present = 0;
    const bool is_memory = has_address(source.kind);
    const auto change = static_cast<std::int64_t>(source.address - (is_memory ? state_.last_address : 0));
    if (is_memory) state_.last_address = source.address;
    if (change != 0 && change % 16 == 0) {
      present |= distance_of_16;
      out = put_varint(out, zigzag(change / 16));
    } else if (change != 0) {
      present |= distance;
      out = put_varint(out, zigzag(change));
    }
    if (source.bytes != 0) {
      present |= bytes_field;
      out = put_varint(out, source.bytes);
    }
    if (source.space != state_.last_space) {
      present |= space_field;
      *out++ = state_.last_space = source.space;
    }
    if (source.label != 0) {
      present |= label_field;
      out = put_varint(out, source.label);
    }
    if (source.tag != 0) {
      present |= tag_field;
      out = put_varint(out, source.tag);
    }
    *fields = static_cast<unsigned char>(present);
    return out;
  }

  coding_state state_;
  coding_state::ring_state* ring_ = nullptr;
};

}  // namespace memprof::detail

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

namespace memprof {

class trace;

namespace detail {

/// The beginning of a trace of which the oldest events are dropped: what is known of them, and all that is no event.
class trace_head {
 public:
  trace_head() = default;
  trace_head(const trace_head&) = delete;
  trace_head& operator=(const trace_head&) = delete;

  virtual void info(const capture_info& info) = 0;
  virtual void name(label id, std::string_view text) noexcept = 0;
  virtual void space(const space_definition& space) noexcept = 0;
  virtual void facts(fact_table&& table) = 0;
  /// Takes the oldest chunk of events, and returns how many those were.
  virtual std::uint64_t drop(const unsigned char* bytes, std::size_t size) noexcept = 0;
  /// Events that are dropped.
  [[nodiscard]] virtual std::uint64_t dropped() const noexcept = 0;
  /// Writes what comes before the first chunk that is kept.
  virtual void write(trace& beginning) = 0;
  /// Bytes taken from the system.
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;
  virtual void destroy() noexcept = 0;

 protected:
  ~trace_head() = default;
};

}  // namespace detail

/// Everything that happened in a capture, in the order in which its ledger saw it, and all that it takes to understand it: names,
/// memory spaces, threads, the process, clock readings, facts. It can be folded again and again, by another ledger or a model of
/// an allocator, and written to a file.
///
/// `capture_options::trace` has a capture fill one; `trace_writer` makes one of anything else. Some three bytes an event, in
/// pages that the hooks do not see. Not synchronised: read it when the capture has ended.
class trace {
 public:
  /// Keeps at most about `max_bytes`. What comes after is counted and left out, so that a beginning without gaps is kept.
  explicit trace(std::size_t max_bytes = std::numeric_limits<std::size_t>::max()) noexcept : max_bytes_(max_bytes) {}
  trace(trace&& other) noexcept { swap(other); }
  trace& operator=(trace&& other) noexcept {
    swap(other);
    return *this;
  }
  ~trace() {
    for (const chunk& each : chunks_) detail::unmap_pages(each.bytes, chunk_bytes_);
    detail::unmap_pages(encoder_, sizeof(detail::trace_encoder));
    if (head_ != nullptr) head_->destroy();
  }

  /// Keeps the newest events within `max_bytes` instead, in chunks of `chunk_bytes`; the oldest chunk goes to `head`, which is
  /// destroyed with the trace. Before the first record.
  void keep_newest(std::size_t max_bytes, std::size_t chunk_bytes, detail::trace_head* head) noexcept {
    max_bytes_ = max_bytes;
    chunk_bytes_ = chunk_bytes;
    head_ = head;
  }

  // --- writing ------------------------------------------------------------------------------------------------------

  /// Adds events [first, last) of one thread, for which `ring` stands.
  void events(const event* first, const event* last, std::uint32_t ring) noexcept {
    while (first != last) {
      const event* const done = has_room(detail::trace_encoder::max_event_bytes) ? encode(first, last, ring) : first;
      size_ += static_cast<std::uint64_t>(done - first);
      if (done != last && !begin_chunk()) {
        left_out_ += static_cast<std::uint64_t>(last - done);
        return;
      }
      first = done;
    }
  }
  void info(const capture_info& info) {
    if (head_ != nullptr) return head_->info(info);
    define(detail::control::header, detail::encode_info(info));
  }
  /// Names come before the first event that uses them, and their ids are 1, 2, 3, ...
  void name(label id, std::string_view text) noexcept {
    if (head_ != nullptr) return head_->name(id, text);
    const detail::small_payload number = detail::small_payload{}.number(id);
    define(detail::control::name, number.view(), text);
  }
  void space(const space_definition& space) noexcept {
    if (head_ != nullptr) return head_->space(space);
    define(detail::control::space, detail::encode_space(space).view());
  }
  /// Replaces the table of that name.
  void facts(const fact_table& table) {
    if (head_ != nullptr) return head_->facts(fitted(table));
    detail::for_each_part(fitted(table), [&](std::string_view payload) { define(detail::control::facts, payload); });
  }

  /// What `write_key_frame` made of a ledger that has seen just the events up to here.
  void key_frame(const detail::page_array<unsigned char>& frame) noexcept {
    if (head_ != nullptr) return;  // it makes its own
    detail::for_each_key_frame_part(
        frame, [this](std::string_view head, std::string_view bytes) { define(detail::control::key_frame, head, bytes); });
  }

  /// So many events of the ring come before this record, whether they are here or not: for a trace that begins in the middle.
  void position(std::uint32_t ring, std::uint64_t events) noexcept {
    if (head_ == nullptr) define(detail::control::position, detail::small_payload{}.number(ring).number(events).view());
  }

  // --- reading ------------------------------------------------------------------------------------------------------

  /// Hands everything to `visitor`, record by record, in order. If something was left out, a `gap` is the last event.
  template <trace_visitor Visitor>
  void visit(Visitor& visitor) const {
    struct adapter {
      Visitor& visitor;
      void events(const event* first, const event* last, std::uint32_t ring) { visitor.events(first, last, ring); }
      void definition(detail::control kind, std::string_view payload) { (void)detail::visit_definition(kind, payload, visitor); }
    };
    if (head_ != nullptr) {
      trace beginning;
      head_->write(beginning);
      beginning.visit(visitor);
    }
    adapter adapted{visitor};
    void* const pages = detail::map_pages(sizeof(detail::trace_decoder));
    if (pages == nullptr) detail::raise("trace: the system has no memory to decode it");
    const unmapped_at_end<detail::trace_decoder> decoder{new (pages) detail::trace_decoder};
    for (const chunk& each : chunks_) {
      decoder.object->restart();
      (void)decoder.object->decode(each.bytes, each.bytes + each.used, adapted);
    }
    if (left_out_ != 0) {
      const event gap{0, 0, left_out_, 0, event_kind::gap, any_space, 0};
      visitor.events(&gap, &gap + 1, no_ring_id);
    }
  }

  /// Events that are kept.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return chunks_.empty() && head_ == nullptr; }
  /// Events that came after those that are kept.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }
  /// Events that came before those that are kept (`capture_options::trace_limit`). A profile of the trace counts them all the
  /// same.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return head_ == nullptr ? 0 : head_->dropped(); }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return chunks_.size() * chunk_bytes_ + chunks_.bytes() + (head_ == nullptr ? 0 : head_->bytes());
  }
  /// Bytes that records take.
  [[nodiscard]] std::size_t encoded_bytes() const noexcept {
    std::size_t total = 0;
    for (const chunk& each : chunks_) total += each.used;
    return total;
  }

  /// Calls `visit(bytes, size)` for each of the pieces of the encoding that can be read alone (docs/trace_format.md).
  template <class Visitor>
  void for_each_chunk(Visitor&& visit) const {
    if (head_ != nullptr) {
      trace beginning;
      head_->write(beginning);
      beginning.for_each_chunk(visit);
    }
    for (const chunk& each : chunks_) visit(each.bytes, each.used);
  }

 private:
  struct chunk {
    unsigned char* bytes;
    std::size_t used;
  };

  template <class T>
  struct unmapped_at_end {
    T* object;
    explicit unmapped_at_end(T* made) noexcept : object(made) {}
    unmapped_at_end(const unmapped_at_end&) = delete;
    unmapped_at_end& operator=(const unmapped_at_end&) = delete;
    ~unmapped_at_end() { detail::unmap_pages(object, sizeof(T)); }
  };

  [[nodiscard]] bool has_room(std::size_t bytes) const noexcept {
    return !chunks_.empty() && chunk_bytes_ - chunks_[chunks_.size() - 1].used >= bytes;
  }

  [[nodiscard]] const event* encode(const event* first, const event* last, std::uint32_t ring) noexcept {
    chunk& open = chunks_.back();
    detail::encoded_bytes out{open.bytes + open.used, open.bytes + chunk_bytes_};
    const event* const done = encoder_->encode(first, last, ring, out);
    open.used = static_cast<std::size_t>(out.next - open.bytes);
    return done;
  }

  void define(detail::control kind, std::string_view payload, std::string_view more = {}) noexcept {
    if (left_out_ != 0) return;
    const std::size_t size = payload.size() + more.size();
    if (detail::trace_encoder::control_bytes(size) > chunk_bytes_) return;  // no record is as long
    if (!has_room(detail::trace_encoder::control_bytes(size)) && !begin_chunk()) {
      ++left_out_;
      return;
    }
    chunk& open = chunks_.back();
    detail::encoded_bytes out{open.bytes + open.used, open.bytes + chunk_bytes_};
    detail::trace_encoder::put_control(kind, payload, more, out);
    open.used = static_cast<std::size_t>(out.next - open.bytes);
  }

  [[nodiscard]] bool begin_chunk() noexcept {
    if (left_out_ != 0) return false;
    if (encoder_ == nullptr) {
      void* const pages = detail::map_pages(sizeof(detail::trace_encoder));
      if (pages == nullptr) return false;
      encoder_ = new (pages) detail::trace_encoder;
    }
    if (!add_chunk() && !recycle_oldest()) return false;
    encoder_->restart();
    return true;
  }

  [[nodiscard]] bool add_chunk() noexcept {
    if ((chunks_.size() + 1) * chunk_bytes_ > max_bytes_) return false;
    void* const pages = detail::map_pages(chunk_bytes_);
    if (pages == nullptr) return false;
    if (chunks_.push_back({static_cast<unsigned char*>(pages), 0})) return true;
    detail::unmap_pages(pages, chunk_bytes_);
    return false;
  }

  [[nodiscard]] bool recycle_oldest() noexcept {
    if (head_ == nullptr || chunks_.empty()) return false;
    const chunk oldest = chunks_[0];
    size_ -= head_->drop(oldest.bytes, oldest.used);
    chunks_.erase(0);
    return chunks_.push_back({oldest.bytes, 0});
  }

  void swap(trace& other) noexcept {
    std::swap(max_bytes_, other.max_bytes_);
    std::swap(size_, other.size_);
    std::swap(left_out_, other.left_out_);
    std::swap(chunks_, other.chunks_);
    std::swap(encoder_, other.encoder_);
    std::swap(chunk_bytes_, other.chunk_bytes_);
    std::swap(head_, other.head_);
  }

  std::size_t max_bytes_ = std::numeric_limits<std::size_t>::max();
  std::uint64_t size_ = 0;
  std::uint64_t left_out_ = 0;
  detail::page_array<chunk> chunks_;
  detail::trace_encoder* encoder_ = nullptr;
  std::size_t chunk_bytes_ = std::size_t{256} * 1024;
  detail::trace_head* head_ = nullptr;  ///< null: nothing is dropped
};

}  // namespace memprof

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::detail {

/// The newest table of each name. Encoded, in pages: whoever destroys it need not hide it from the hooks.
class kept_facts {
 public:
  void put(const fact_table& table) {
    encoded_.facts(table);
    // Tables come again whenever a profile is asked for.
    if (encoded_.encoded_bytes() > 2 * newest_bytes_ + std::size_t{256} * 1024) forget_old();
  }
  /// In the order in which they came first.
  [[nodiscard]] std::vector<fact_table> tables() const {
    collector found;
    encoded_.visit(found);
    return std::move(found.tables);
  }
  /// Records of the tables; of some tables older rows come first.
  [[nodiscard]] const trace& encoded() const noexcept { return encoded_; }

 private:
  struct collector {
    std::vector<fact_table> tables;
    void info(const capture_info&) {}
    void name(label, std::string_view) {}
    void space(const space_definition&) {}
    void facts(fact_table&& table, bool is_first) { merge_facts(tables, std::move(table), is_first); }
    void events(const event*, const event*, std::uint32_t) {}
  };

  void forget_old() {
    trace newest;
    for (const fact_table& table : tables()) newest.facts(table);
    encoded_ = std::move(newest);
    newest_bytes_ = encoded_.encoded_bytes();
  }

  trace encoded_;
  std::size_t newest_bytes_ = 0;
};

}  // namespace memprof::detail

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

namespace memprof::detail {

/// Follows the events that a trace drops with a ledger of its own, so that the rest can begin with a key frame. Dropping costs
/// what folding the events costs, a chunk at a time; the frame is made when the trace is read.
class folded_head final : public trace_head {
 public:
  /// Null if the system has no memory for it. In pages of its own: `operator new` is what may be watched.
  [[nodiscard]] static folded_head* make() noexcept {
    void* const pages = map_pages(sizeof(folded_head));
    return pages == nullptr ? nullptr : new (pages) folded_head;
  }

  void info(const capture_info& info) override { fold_.info(info); }
  void name(label id, std::string_view text) noexcept override {
    fold_.name(id, text);
    names_ = std::max(names_, id);
  }
  void space(const space_definition& space) noexcept override {
    fold_.space(space);
    spaces_[space.id] = space;
    is_space_[space.id] = true;
  }
  void facts(fact_table&& table) override { facts_.put(table); }

  std::uint64_t drop(const unsigned char* bytes, std::size_t size) noexcept override {
    const std::uint64_t before = dropped_;
    events_only each{*this};
    decoder_.restart();
    (void)decoder_.decode(bytes, bytes + size, each);
    return dropped_ - before;
  }
  [[nodiscard]] std::uint64_t dropped() const noexcept override { return dropped_; }

  void write(trace& beginning) override {
    beginning.info(fold_.info());
    for (label id = 1; id <= names_; ++id) beginning.name(id, fold_.names().text(id));
    for (std::size_t id = 0; id < any_space; ++id) {
      if (is_space_[id]) beginning.space(spaces_[id]);
    }
    for (const fact_table& table : facts_.tables()) beginning.facts(table);
    if (dropped_ == 0) return;
    const event gap{0, 0, dropped_, 0, event_kind::gap, any_space, 0};
    beginning.events(&gap, &gap + 1, no_ring_id);
    page_array<unsigned char> frame;
    if (fold_.write_key_frame(frame)) beginning.key_frame(frame);  // else the gap says that events are missing
  }

  [[nodiscard]] std::size_t bytes() const noexcept override {
    return sizeof(folded_head) - sizeof(trace_fold) + fold_.bytes() + facts_.encoded().bytes();
  }
  void destroy() noexcept override {
    this->~folded_head();
    unmap_pages(this, sizeof(folded_head));
  }

 private:
  struct events_only {
    folded_head& owner;
    void events(const event* first, const event* last, std::uint32_t ring) noexcept {
      owner.fold_.events(first, last, ring);
      owner.dropped_ += static_cast<std::uint64_t>(last - first);
    }
    void definition(control, std::string_view) noexcept {}  // none goes into a chunk
  };

  folded_head() = default;
  ~folded_head() = default;

  trace_fold fold_;
  trace_decoder decoder_;
  std::uint64_t dropped_ = 0;
  label names_ = 0;
  kept_facts facts_;
  space_definition spaces_[any_space] = {};
  bool is_space_[any_space] = {};
};

/// Lets a trace keep the newest events within `bytes`: at least 64 KiB. False if the system has no memory for it.
[[nodiscard]] inline bool limit_trace(trace& target, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t smallest = 4096;
  constexpr std::uint64_t largest = std::uint64_t{256} * 1024;
  folded_head* const head = folded_head::make();
  if (head == nullptr) return false;
  target.keep_newest(std::size_t{bytes}, std::size_t{std::clamp(bytes / 16, smallest, largest)}, head);
  return true;
}

/// The least that `capture_options::trace_limit` may be.
inline constexpr std::uint64_t least_trace_limit = std::uint64_t{64} * 1024;

}  // namespace memprof::detail

// ---- <memprof/record/capture_state.hpp>
// ---- <memprof/profile/build.hpp>
// ---- <memprof/profile/core_peaks.hpp>
// ---- <memprof/profile/segment_rows.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The part of `profile/build.hpp` about which segments there are. Templates for the reason given there.

namespace memprof {

/// The name in a profile of the segment that has not ended yet.
inline constexpr std::string_view open_segment_name = "OPEN_SEGMENT";

/// The name in a profile of segments whose names are too many.
inline constexpr std::string_view other_segments_name = "other segments";

namespace detail {

[[nodiscard]] inline value_summary to_value_summary(const running_summary& of) {
  return {of.first,
          of.last,
          of.least,
          of.greatest,
          of.sum(),
          static_cast<std::int64_t>(of.least_segment),
          static_cast<std::int64_t>(of.greatest_segment)};
}

/// The summary of one value alone.
[[nodiscard]] inline value_summary summary_of(std::int64_t value, std::int64_t number) {
  return {value, value, value, value, value, number, number};
}

/// The segments of a profile: where the ledger has those that are kept, and perhaps one that is still open.
template <class History>
class segment_rows {
 public:
  segment_rows(const History& history, bool has_open) : history_(history), has_open_(has_open) {
    positions_ = std::vector<std::size_t>(history.kept());
    std::size_t kept = 0;
    for (std::size_t position = 0; position < history.marks().size(); ++position) {
      if (!history.marks()[position].is_dropped) positions_[kept++] = position;
    }
  }

  [[nodiscard]] const History& history() const { return history_; }
  [[nodiscard]] bool has_open() const { return has_open_; }
  /// How many the profile has, and how many of them have ended.
  [[nodiscard]] std::size_t size() const { return positions_.size() + (has_open_ ? 1 : 0); }
  [[nodiscard]] std::size_t finished() const { return positions_.size(); }
  [[nodiscard]] std::size_t position(std::size_t index) const { return positions_[index]; }
  /// How many names there are; the last is that of the open segment, if there is one.
  [[nodiscard]] std::size_t names() const { return history_.rows().size() + (has_open_ ? 1 : 0); }
  [[nodiscard]] std::int64_t open_number() const { return static_cast<std::int64_t>(history_.count()); }

  /// The number, or -1 for what came behind the last segment of a finished profile: that is in none.
  [[nodiscard]] std::int64_t number_of(std::uint64_t segment) const {
    return segment < history_.count() || has_open_ ? static_cast<std::int64_t>(segment) : -1;
  }
  /// Where the profile has the segment of that number; -1 if it does not.
  [[nodiscard]] std::int64_t index_of(std::uint64_t number) const {
    for (std::size_t index = 0; index < positions_.size(); ++index) {
      if (history_.marks()[positions_[index]].number == number) return static_cast<std::int64_t>(index);
    }
    return has_open_ && number == history_.count() ? static_cast<std::int64_t>(positions_.size()) : -1;
  }

 private:
  const History& history_;
  bool has_open_;
  std::vector<std::size_t> positions_;
};

[[nodiscard]] inline std::string segment_name(label name, name_view labels) {
  return std::string{name == other_names ? other_segments_name : labels.text(name)};
}

/// `open_end` is the stamp until which the open segment has come.
template <class Rows>
[[nodiscard]] std::vector<segment> build_segments(const Rows& rows, name_view labels, const clock_readings& time,
                                                  std::uint64_t open_begin, std::uint64_t open_end) {
  const auto& history = rows.history();
  std::vector<segment> result(rows.size());
  for (std::size_t index = 0; index < rows.finished(); ++index) {
    const segment_mark& mark = history.marks()[rows.position(index)];
    result[index] = {segment_name(mark.name, labels), time.to_ns(mark.begin_stamp), time.to_ns(mark.end_stamp),
                     static_cast<std::int64_t>(mark.number), static_cast<std::int64_t>(mark.step)};
  }
  if (rows.has_open()) {
    result[rows.finished()] = {std::string{open_segment_name}, time.to_ns(open_begin), time.to_ns(open_end), rows.open_number(),
                               static_cast<std::int64_t>(history.step())};
  }
  return result;
}

/// `begin` is the capture's first stamp; `segments` are those that are kept.
template <class Rows>
[[nodiscard]] std::vector<named_segments> build_names(const Rows& rows, name_view labels, const clock_readings& time,
                                                      std::uint64_t begin, const std::vector<segment>& segments) {
  const auto& history = rows.history();
  const auto duration = [&](std::int64_t ticks) {
    return time.to_ns(begin + static_cast<std::uint64_t>(ticks)) - time.to_ns(begin);
  };
  std::vector<named_segments> result(rows.names());
  for (std::size_t row = 0; row < history.rows().size(); ++row) {
    const named_segment_row& known = history.rows()[row];
    value_summary took = to_value_summary(known.duration);
    for (std::int64_t* const value : {&took.first, &took.last, &took.least, &took.greatest, &took.sum}) *value = duration(*value);
    result[row] = {segment_name(known.name, labels),
                   known.stands_for_others,
                   static_cast<std::int64_t>(known.count),
                   0,
                   static_cast<std::int64_t>(known.first_number),
                   static_cast<std::int64_t>(known.last_number),
                   took};
  }
  for (std::size_t index = 0; index < rows.finished(); ++index) ++result[history.marks()[rows.position(index)].row].kept;
  if (rows.has_open()) {
    const segment& open = segments.back();
    result.back() = {open.name, false, 1, 1, open.number, open.number, summary_of(open.end_ns - open.begin_ns, open.number)};
  }
  return result;
}

/// Calls `fill(row, summaries)` for each name with its `Count` summaries; `open` has the numbers of the open segment.
template <class Rows, class ByName, std::size_t Count, class Fill>
void for_each_name(const Rows& rows, const ByName& by_name, const std::array<std::int64_t, Count>& open, Fill&& fill) {
  std::array<value_summary, Count> values;
  for (std::size_t row = 0; row < rows.history().rows().size(); ++row) {
    const auto sums = by_name.of(rows.history(), row);
    for (std::size_t index = 0; index < Count; ++index) values[index] = to_value_summary(sums[index]);
    fill(row, values);
  }
  if (!rows.has_open()) return;
  for (std::size_t index = 0; index < Count; ++index) values[index] = summary_of(open[index], rows.open_number());
  fill(rows.names() - 1, values);
}

}  // namespace detail

}  // namespace memprof

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// @file
/// The part of `profile/build.hpp` about memory that each core has of its own. Templates for the reason given there.

namespace memprof::detail {

/// "3-4": column, then row.
template <class Coordinate>
[[nodiscard]] std::string core_text(Coordinate x, Coordinate y) {
  return std::to_string(x).append(1, '-').append(std::to_string(y));
}

/// "[0-0 - 7-7]", as tt-metal writes a rectangle of cores.
template <class Range>
[[nodiscard]] std::string core_range_text(const Range& cores) {
  std::string text{'['};
  return text.append(core_text(cores.x0, cores.y0)).append(" - ").append(core_text(cores.x1, cores.y1)).append(1, ']');
}

template <class Maxima>
[[nodiscard]] core_peaks to_core_peaks(const Maxima& greatest) {
  core_peaks result{greatest.peak.circular_buffers, greatest.peak.buffers, greatest.peak.total, {}};
  if (greatest.peak.total != 0) result.busiest_core = core_text(greatest.busiest_x, greatest.busiest_y);
  return result;
}

/// The rows of all rectangles, the greatest total first.
template <class Cores>
[[nodiscard]] std::vector<core_range_peaks> build_core_ranges(const Cores& cores) {
  struct row {
    std::uint32_t packed;
    core_maxima greatest;
  };
  std::vector<row> rows(cores.ranges().size());
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const std::uint32_t packed = cores.ranges()[index];
    rows[index] = {packed, cores.overall(core_range::unpacked(packed))};
  }
  sort_rows(rows.data(), rows.size(), [](const row& left, const row& right) {
    const core_usage& of_left = left.greatest.peak;
    const core_usage& of_right = right.greatest.peak;
    return of_left.total != of_right.total ? of_left.total > of_right.total : left.packed < right.packed;
  });
  std::vector<core_range_peaks> result(rows.size());
  for (std::size_t index = 0; index < rows.size(); ++index) {
    result[index] = {core_range_text(core_range::unpacked(rows[index].packed)), to_core_peaks(rows[index].greatest)};
  }
  return result;
}

/// What one space held on each core. Costs a pass over the cores of each rectangle.
template <class Cores, class Rows>
[[nodiscard]] core_profile build_cores(const Cores& cores, const Rows& rows, const std::vector<named_segments>& names) {
  core_profile result;
  if (!cores.is_used()) return result;
  result.peaks = to_core_peaks(cores.overall(any_core));
  const auto open = cores.open_segment();
  result.segments = std::vector<core_peaks>(rows.size());
  for (std::size_t index = 0; index < rows.finished(); ++index) {
    const std::size_t position = rows.position(index);
    if (position < cores.segments().size()) result.segments[index] = to_core_peaks(cores.segments()[position]);
  }
  if (rows.has_open()) result.segments[rows.finished()] = to_core_peaks(open);
  result.segments_by_name = std::vector<named_core_peaks>(rows.names());
  for_each_name(rows, cores.by_name(), std::array{open.peak.circular_buffers, open.peak.buffers, open.peak.total},
                [&](std::size_t row, const auto& values) {
                  result.segments_by_name[row] = {names[row].name, values[0], values[1], values[2]};
                });
  result.ranges = build_core_ranges(cores);
  return result;
}

}  // namespace memprof::detail

// ---- <memprof/profile/device_events.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::detail {

/// The names of a row, as `stream_and_pool` joined them.
inline void name_stream(stream_usage& row, std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && text[end] != name_separator) ++end;
  row.stream = text.substr(0, end);
  if (end < text.size()) row.pool = text.substr(end + 1);
}

[[nodiscard]] inline stream_usage to_stream_usage(const stream_record& record) {
  return {{}, {}, record.peak_live, record.live, record.allocation_count, record.peak_reserved, record.reserved, false};
}

/// The streams of a space, most reserved first, of equal ones those with the most live bytes, then those that came first.
template <class Streams>
[[nodiscard]] std::vector<stream_usage> build_streams(const Streams& streams, name_view labels) {
  const std::size_t count = streams.rows().size();
  std::vector<std::size_t> order(count);
  for (std::size_t index = 0; index < count; ++index) order[index] = index;
  sort_rows(order.data(), count, [&](std::size_t left, std::size_t right) {
    const stream_record& a = streams.rows()[left];
    const stream_record& b = streams.rows()[right];
    if (a.peak_reserved != b.peak_reserved) return a.peak_reserved > b.peak_reserved;
    return a.peak_live != b.peak_live ? a.peak_live > b.peak_live : left < right;
  });
  std::vector<stream_usage> rows(count + (streams.has_further() ? 1 : 0));
  for (std::size_t row = 0; row < count; ++row) {
    rows[row] = to_stream_usage(streams.rows()[order[row]]);
    name_stream(rows[row], labels.text(streams.rows()[order[row]].name));
  }
  if (streams.has_further()) {
    rows[count] = to_stream_usage(streams.further());
    rows[count].stream = "other streams";
    rows[count].stands_for_others = true;
  }
  return rows;
}

/// What failed in a space.
template <class Failed, class Rows>
[[nodiscard]] std::vector<out_of_memory_failure> build_out_of_memory(const Failed& failed, const clock_readings& time,
                                                                     const std::vector<std::string>& paths,
                                                                     const Rows& segments) {
  std::vector<out_of_memory_failure> rows(failed.kept().size());
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const out_of_memory_record& record = failed.kept()[index];
    rows[index] = {record.requested, record.device_free, record.live, record.reserved, {}, -1, time.to_ns(record.stamp)};
    if (record.operation != 0) rows[index].operation = paths[record.operation];
    rows[index].segment = segments.index_of(record.segment);
    rows[index].segment_number = segments.number_of(record.segment);
  }
  return rows;
}

}  // namespace memprof::detail

// ---- <memprof/profile/first_shortfall.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// @file
/// What a space's first shortfall was in words of the profile, and what would have prevented it. Templates, like all that builds
/// profiles, so that only units that read one pay for compiling them.

namespace memprof::detail {

/// The least of `owners`, greatest first, that held `missing` bytes: see `capacity_shortfall::remedy`. Of equally large ones the
/// first.
template <class Owners>
[[nodiscard]] Owners least_to_free(const Owners& owners, std::int64_t missing) {
  std::size_t first = 0;
  std::size_t count = 0;
  for (std::size_t row = 0; row < owners.size() && owners[row].bytes >= missing; ++row) {
    if (count != 0 && owners[row].bytes == owners[first].bytes) continue;
    first = row;
    count = 1;
  }
  if (count == 0) {
    for (; count < owners.size() && missing > 0; ++count) missing -= owners[count].bytes;
    if (missing > 0) return {};
  }
  Owners rows(count);
  for (std::size_t row = 0; row < count; ++row) rows[row] = owners[first + row];
  return rows;
}

/// The first shortfall of a space that had one. `held` was live beside it.
template <class Space, class Rows>
[[nodiscard]] capacity_shortfall build_first_shortfall(const Space& space, const clock_readings& time,
                                                       const std::vector<std::string>& paths, live_set held, const Rows& rows) {
  const shortfall_record& shortfall = space.first_shortfall();
  capacity_shortfall result;
  result.requested = static_cast<std::int64_t>(shortfall.asked.bytes);
  if (shortfall.is_on_core) result.core = core_text(shortfall.core.x0, shortfall.core.y0);
  if (shortfall.asked.operation() != 0) result.operation = paths[shortfall.asked.operation()];
  result.category = static_cast<category>(shortfall.asked.category());
  result.segment = rows.index_of(shortfall.segment);
  result.time_ns = time.to_ns(shortfall.stamp);
  result.free = space.capacity() - held.bytes;
  result.shortfall = result.requested - result.free;
  result.holders_known = shortfall.has_holders;
  result.remedy = least_to_free(held.by_operation, result.shortfall);
  result.held = std::move(held);
  return result;
}

}  // namespace memprof::detail

// ---- <memprof/profile/joint_peaks.hpp>
// ---- <memprof/profile/live_sets.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::detail {

/// What is known of a block.
[[nodiscard]] inline live_block describe_block(const block& live, const std::vector<std::string>& paths, name_view labels) {
  live_block result;
  result.address = live.address;
  result.bytes = static_cast<std::int64_t>(live.bytes);
  result.operation = paths[live.operation()];
  result.category = static_cast<memprof::category>(live.category());
  std::string_view annotation = labels.text(live.annotation());
  const auto next_field = [&] {
    const std::size_t end = std::min(annotation.find('\x1f'), annotation.size());
    const std::string_view field = annotation.substr(0, end);
    annotation.remove_prefix(std::min(end + 1, annotation.size()));
    return std::string{field};
  };
  result.name = next_field();
  result.shape = next_field();
  result.dtype = next_field();
  result.requires_grad = requires_grad_from_string(next_field());
  return result;
}

/// Rows for the categories that had blocks, greatest first.
[[nodiscard]] inline std::vector<owned_bytes> rows_of_categories(
    const std::array<category_at_peak, category_names.size()>& categories) {
  std::size_t order[category_names.size()];
  std::size_t count = 0;
  for (std::size_t index = 0; index < category_names.size(); ++index) {
    if (categories[index].blocks != 0) order[count++] = index;
  }
  sort_rows(order, count, [&](std::size_t left, std::size_t right) {
    const std::int64_t more = categories[left].bytes - categories[right].bytes;
    return more != 0 ? more > 0 : left < right;
  });
  std::vector<owned_bytes> rows(count);
  for (std::size_t row = 0; row < count; ++row) {
    const category_at_peak& held = categories[order[row]];
    rows[row] = {std::string{category_names[order[row]]}, held.bytes, held.blocks};
  }
  return rows;
}

/// Puts together, for each segment of one space, what was live at its peak.
///
/// The ledger kept the owners, and the largest of the blocks that were freed since. Those that are still live are found here,
/// in one pass over the live blocks: a block was live at the peaks of all segments from the first whose peak came after its
/// birth.
///
/// A template, like all that builds profiles, so that only units that read one pay for compiling it.
template <class Space>
class live_set_builder {
 public:
  live_set_builder(const Space& space, const std::vector<std::string>& operation_paths, name_view labels)
      : space_(space), paths_(operation_paths), labels_(labels), still_live_(space.options().largest_blocks) {
    peak_ordinals_ = std::vector<std::uint64_t>(space.segments().size() + 1, space.open_segment().peak_ordinal);
    for (std::size_t index = 0; index < space.segments().size(); ++index)
      peak_ordinals_[index] = space.segments()[index].peak_ordinal;
    space.blocks().for_each([&](const block& live) {
      const std::size_t first =
          partition_point(peak_ordinals_.size(), [&](std::size_t index) { return peak_ordinals_[index] < live.born(); });
      still_live_.offer(first, peak_ordinals_.size(), live);
    });
  }

  /// The live set at the peak of finished segment `index` (within `space.segments()`).
  [[nodiscard]] live_set at_finished(std::size_t index) const {
    const segment_record& record = space_.segments()[index];
    live_set set = totals_of(record);
    set.by_operation = named(space_.owners(record), record.owner_count);
    set.remaining_bytes = record.remaining_bytes;
    set.remaining_operations = record.remaining_operations;
    set.largest_blocks = largest([&](top_blocks_view best) {
      space_.largest_of_finished().collect(index, best);
      still_live_.collect(index, best);
    });
    return set;
  }

  /// The live set at the peak of the segment that is still open, with all its owners.
  [[nodiscard]] live_set at_open() const {
    live_set set = totals_of(space_.open_segment());
    detail::page_array<owner_at_peak> owners;
    if (!space_.collect_owners(owners)) set.remaining_bytes = set.bytes;
    set.by_operation = named(owners.data(), owners.size());
    set.largest_blocks = largest([&](top_blocks_view best) {
      space_.offer_freed_since_peak(best);
      still_live_.collect(peak_ordinals_.size() - 1, best);
    });
    return set;
  }

  /// What was live when the capacity was first exceeded, without the block that was asked for.
  [[nodiscard]] live_set at_first_shortfall() const {
    const shortfall_record& shortfall = space_.first_shortfall();
    live_set set = totals_of(shortfall.moment);
    if (!shortfall.has_holders) set.remaining_bytes = set.bytes;
    set.by_operation = named(shortfall.owners.data(), shortfall.owners.size());
    set.largest_blocks = largest([&](top_blocks_view best) {
      for (const block& held : shortfall.largest) best.offer(held);
    });
    return set;
  }

  /// Replaces the kept owners of the overall peak's segment by all of them.
  [[nodiscard]] live_set with_all_owners(live_set set) const {
    set.remaining_bytes = set.remaining_operations = 0;
    set.by_operation = named(space_.overall_owners().data(), space_.overall_owners().size());
    return set;
  }

 private:
  [[nodiscard]] static live_set totals_of(const segment_record& record) {
    live_set set;
    set.bytes = record.live_at_peak;
    set.blocks = record.blocks_at_peak;
    set.by_category = rows_of_categories(record.categories);
    return set;
  }

  [[nodiscard]] std::vector<owned_bytes> named(const owner_at_peak* owners, std::size_t count) const {
    std::vector<owned_bytes> rows(count);
    for (std::size_t row = 0; row < count; ++row)
      rows[row] = {paths_[owners[row].operation], owners[row].bytes, owners[row].blocks};
    return rows;
  }

  /// The largest of the blocks that `offer` offers.
  template <class Offer>
  [[nodiscard]] std::vector<live_block> largest(Offer&& offer) const {
    std::vector<block> room(space_.options().largest_blocks);
    std::uint32_t count = 0;
    offer(top_blocks_view{room.data(), count, space_.options().largest_blocks});
    sort_rows(room.data(), count, is_larger);
    std::vector<live_block> result(count);
    for (std::uint32_t index = 0; index < count; ++index) result[index] = describe_block(room[index], paths_, labels_);
    return result;
  }

  const Space& space_;
  const std::vector<std::string>& paths_;
  name_view labels_;
  std::vector<std::uint64_t> peak_ordinals_;
  top_blocks_of_segments still_live_;
};

}  // namespace memprof::detail

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// @file
/// The joint peaks of memories in which several spaces lie, as a profile has them.

namespace memprof::detail {

/// Adds up what the spaces of one memory had at its joint peak. Costs a pass over the live blocks of each.
template <class Ledger>
class joint_peak_builder {
 public:
  joint_peak_builder(const Ledger& events, const shared_memory& memory)
      : events_(events), memory_(memory), by_operation_(events.operations().size()), largest_(events.options().largest_blocks) {}

  /// Calls `visit(id, space)` for each space that lies in the memory.
  template <class Visitor>
  void for_each_space(Visitor&& visit) const {
    for (std::size_t id = 0; id < Ledger::max_spaces; ++id) {
      const auto* const space = events_.space(id);
      if (space != nullptr && space->shared() != nullptr && &space->shared()->memory() == &memory_) visit(id, *space);
    }
  }

  /// What a space had; the owners are added to those of the others.
  [[nodiscard]] category_at_peak add(std::size_t id, const space_ledger& space) {
    const memory_share& share = *space.shared();
    const bool is_unchanged = share.is_unchanged_since_peak();
    const std::uint64_t last_born = is_unchanged ? space.allocation_count() : share.ordinal();
    const auto offer = [&](block held) {
      // Among blocks of equal size those of earlier spaces come first, and then those that were allocated earlier.
      held.born_thread = std::uint64_t{id} << 48U | held.born();
      top_blocks_view{largest_.data(), largest_count_, static_cast<std::uint32_t>(largest_.size())}.offer(held);
    };
    space.blocks().for_each([&](const block& live) {
      if (live.born() > last_born) return;
      const category_at_peak held{static_cast<std::int64_t>(live.bytes), 1};
      add_to(by_operation_[live.operation()], held);
      add_to(by_category_[live.category()], held);
      offer(live);
    });
    if (!is_unchanged) {
      for (std::size_t node = 0; node < share.operation_count(); ++node)
        add_to(by_operation_[node], share.freed_of_operation(node));
      for (std::size_t index = 0; index < by_category_.size(); ++index)
        add_to(by_category_[index], share.freed_of_category(index));
      share.for_each_large_freed(offer);
    }
    const category_at_peak held = is_unchanged ? category_at_peak{space.live(), static_cast<std::int64_t>(space.blocks().size())}
                                               : category_at_peak{share.live(), share.blocks()};
    add_to(total_, held);
    return held;
  }

  [[nodiscard]] live_set build(const std::vector<std::string>& paths, name_view labels) {
    live_set set;
    set.bytes = set.remaining_bytes = total_.bytes;
    set.blocks = total_.blocks;
    std::vector<owner_at_peak> owners(by_operation_.size());
    std::size_t count = 0;
    for (std::size_t node = 0; node < by_operation_.size(); ++node) {
      const category_at_peak& held = by_operation_[node];
      if (held.blocks != 0) owners[count++] = {static_cast<std::uint32_t>(node), held.bytes, held.blocks};
      set.remaining_bytes = std::max(subtract_saturating(set.remaining_bytes, held.bytes), std::int64_t{0});
    }
    sort_rows(owners.data(), count, holds_more);
    set.by_operation = std::vector<owned_bytes>(count);
    for (std::size_t row = 0; row < count; ++row)
      set.by_operation[row] = {paths[owners[row].operation], owners[row].bytes, owners[row].blocks};
    set.by_category = rows_of_categories(by_category_);
    sort_rows(largest_.data(), largest_count_, is_larger);
    set.largest_blocks = std::vector<live_block>(largest_count_);
    for (std::uint32_t index = 0; index < largest_count_; ++index)
      set.largest_blocks[index] = describe_block(largest_[index], paths, labels);
    return set;
  }

 private:
  static void add_to(category_at_peak& sum, const category_at_peak& more) noexcept {
    sum.bytes = add_saturating(sum.bytes, more.bytes);
    sum.blocks += more.blocks;
  }

  const Ledger& events_;
  const shared_memory& memory_;
  category_at_peak total_{};
  std::vector<category_at_peak> by_operation_;
  std::array<category_at_peak, category_names.size()> by_category_{};
  std::vector<block> largest_;
  std::uint32_t largest_count_ = 0;
};

/// One memory; `spaces` are those of the profile, and `index_of[id]` says where each is.
template <class Ledger, class Rows>
[[nodiscard]] memory_profile build_memory(const Ledger& events, const shared_memory& memory, name_view labels,
                                          const clock_readings& time, const std::vector<std::string>& paths, const Rows& rows,
                                          const std::vector<space_profile>& spaces,
                                          const std::array<std::size_t, Ledger::max_spaces>& index_of) {
  joint_peak_builder<Ledger> parts{events, memory};
  memory_profile result;
  result.name = memory.name == host_memory ? host_memory_name : labels.text(memory.name);
  std::size_t count = 0;
  parts.for_each_space([&](std::size_t, const space_ledger&) { ++count; });
  result.spaces = std::vector<owned_bytes>(count);
  const bool is_lone = memory.lone_space != any_space;
  std::size_t row = 0;
  parts.for_each_space([&](std::size_t id, const space_ledger& space) {
    const space_profile& known = spaces[index_of[id]];
    result.cumulative_current = add_saturating(result.cumulative_current, space.live());
    owned_bytes& part = result.spaces[row++];
    part.owner = known.name;
    if (is_lone) {
      if (id == memory.lone_space) part = {known.name, known.live_at_peak.bytes, known.live_at_peak.blocks};
    } else if (memory.peak != 0) {
      const category_at_peak held = parts.add(id, space);
      part = {known.name, held.bytes, held.blocks};
    }
  });
  // Not std::stable_sort, of whose helpers clang warns in users' units.
  std::vector<std::size_t> order(result.spaces.size());
  for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
  sort_rows(order.data(), order.size(), [&](std::size_t left, std::size_t right) {
    const std::int64_t more = result.spaces[left].bytes - result.spaces[right].bytes;
    return more != 0 ? more > 0 : left < right;
  });
  std::vector<owned_bytes> sorted;
  sorted.reserve(order.size());
  for (const std::size_t index : order) sorted.push_back(std::move(result.spaces[index]));
  result.spaces = std::move(sorted);
  result.cumulative_peak = shared_memory::saturated(memory.peak);
  if (memory.peak == 0) return result;
  if (is_lone) {
    const space_profile& lone = spaces[index_of[memory.lone_space]];
    result.peak_segment = lone.peak_segment;
    result.peak_time_ns = lone.peak_time_ns;
    result.peak_space = lone.name;
    result.peak_operation = lone.peak_operation;
    result.live_at_peak = lone.live_at_peak;
    return result;
  }
  result.peak_segment = rows.index_of(memory.peak_segment);
  result.peak_time_ns = time.to_ns(memory.peak_stamp);
  result.peak_space = spaces[index_of[memory.peak_space]].name;
  if (memory.peak_operation != 0) result.peak_operation = paths[memory.peak_operation];
  result.live_at_peak = parts.build(paths, labels);
  return result;
}

template <class Ledger, class Rows>
[[nodiscard]] std::vector<memory_profile> build_memories(const Ledger& events, name_view labels, const clock_readings& time,
                                                         const std::vector<std::string>& paths, const Rows& rows,
                                                         const std::vector<space_profile>& spaces) {
  std::vector<memory_profile> result;
  if (events.memories().empty()) return result;
  std::array<std::size_t, Ledger::max_spaces> index_of{};
  for (std::size_t id = 0, index = 0; id < Ledger::max_spaces; ++id) {
    if (events.space(id) != nullptr) index_of[id] = index++;
  }
  for (const shared_memory* memory : events.memories()) {
    if (memory->is_known) result.push_back(build_memory(events, *memory, labels, time, paths, rows, spaces, index_of));
  }
  return result;
}

}  // namespace memprof::detail

// ---- <memprof/profile/operation_path.hpp>
#include <string>
#include <string_view>

namespace memprof {

/// Appends an operation's name to the path of the operation around it, which is empty for an outermost one: `a/b`.
///
/// A path names one operation. So `/` and `\` in a name become `\/` and `\\`, and an empty name is `\-`; the empty path stands
/// for no operation, and `\other` at its end for all operations beyond the last that has a row of its own.
inline void append_operation(std::string& path, std::string_view name) {
  if (!path.empty()) path += '/';
  if (name.empty()) path += "\\-";
  for (const char character : name) {
    if (character == '/' || character == '\\') path += '\\';
    path += character;
  }
}

/// Appends what no name can be.
inline void append_other_operations(std::string& path) {
  if (!path.empty()) path += '/';
  path += "\\other";
}

}  // namespace memprof

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof {

/// What a ledger's ids mean, and whether more events may come.
struct ledger_names {
  name_view labels;
  const label* space_names;  ///< by id of memory space
  const clock_readings& time;
  bool is_complete = true;  ///< false adds the segment that is still open, under the name `open_segment_name`
};

/// The name in a profile of operations of which there are too many.
inline constexpr std::string_view other_operations_name = "other operations";

/// The same of memory spaces.
inline constexpr std::string_view other_spaces_name = "other spaces";

namespace detail {

template <class Tree>
[[nodiscard]] std::vector<std::string> operation_paths(const Tree& tree, name_view labels) {
  std::vector<std::string> paths(tree.size());
  for (std::size_t node = 1; node < tree.size(); ++node) {
    paths[node] = paths[tree[node].parent];
    if (tree[node].name == other_names) {
      append_other_operations(paths[node]);
    } else {
      append_operation(paths[node], labels.text(tree[node].name));
    }
  }
  return paths;
}

[[nodiscard]] inline operation_invocation to_invocation(const invocation_record& run, const clock_readings& time) {
  return {run.thread, time.to_ns(run.begin_stamp), time.to_ns(run.end_stamp), run.delta, run.peak};
}

/// Sums up a space's self values along the tree; entry 0 is "no operation".
template <class Tree, class Space>
[[nodiscard]] std::vector<operation_usage> usage_of_space(const Tree& tree, const Space& space, std::string_view space_name,
                                                          const clock_readings& time) {
  std::vector<operation_usage> all(tree.size());
  for (std::size_t node = tree.size(); node-- > 0;) {
    operation_usage& usage = all[node];
    usage.space = space_name;
    if (node < space.operation_count()) {
      const operation_stats& stats = space.operation(node);
      usage.self_allocated = stats.allocated;
      usage.self_freed = stats.freed;
      usage.allocated += stats.allocated;
      usage.freed += stats.freed;
      usage.allocation_count = stats.allocation_count;
      usage.deallocation_count = stats.deallocation_count;
      // Invocations that ended before their thread first used the space are not in `stats`; they changed nothing in it.
      usage.max_delta = stats.finished < tree[node].finished ? std::max(stats.max_delta, std::int64_t{0}) : stats.max_delta;
      usage.peak = stats.peak;
      usage.self_peak = stats.self_peak;
      usage.live = stats.owned.live;
      if (stats.changing != 0) {
        usage.first_invocation = to_invocation(stats.first, time);
        usage.last_invocation = to_invocation(stats.last, time);
        usage.largest_invocation = to_invocation(stats.largest, time);
      }
    }
    usage.self_delta = usage.self_allocated - usage.self_freed;
    usage.total_delta = usage.allocated - usage.freed;
    if (node == 0) break;
    all[tree[node].parent].allocated += usage.allocated;
    all[tree[node].parent].freed += usage.freed;
  }
  return all;
}

/// Which operations allocated or freed in a space, themselves or within.
template <class Tree, class Space>
[[nodiscard]] std::vector<char> active_operations(const Tree& tree, const Space& space) {
  std::vector<char> is_active(tree.size());
  for (std::size_t node = tree.size(); --node > 0;) {
    if (node < space.operation_count()) {
      const operation_stats& stats = space.operation(node);
      if (stats.allocation_count != 0 || stats.deallocation_count != 0) is_active[node] = 1;
    }
    if (is_active[node] != 0) is_active[tree[node].parent] = 1;
  }
  return is_active;
}

template <class Ledger>
[[nodiscard]] std::vector<operation_profile> build_operations(const Ledger& events, const ledger_names& names,
                                                              const std::vector<std::string>& paths) {
  const operation_tree& tree = events.operations();
  std::vector<operation_profile> operations(tree.size() - 1);
  for (std::size_t node = 1; node < tree.size(); ++node) {
    operation_profile& operation = operations[node - 1];
    operation.path = paths[node];
    operation.stands_for_others = tree[node].name == other_names;
    operation.name = operation.stands_for_others ? other_operations_name : names.labels.text(tree[node].name);
    operation.parent = static_cast<std::int64_t>(tree[node].parent) - 1;
    operation.invocations = tree[node].invocations;
  }
  // Rows are counted before they are filled, here and below: vectors that grow cost every user of the header compile time.
  std::vector<std::size_t> rows(tree.size());
  const auto for_each_space = [&](auto&& visit) {
    for (std::size_t id = 0; id < ledger::max_spaces; ++id) {
      if (events.space(id) == nullptr) continue;
      const std::vector<char> is_active = active_operations(tree, *events.space(id));
      for (std::size_t node = 1; node < tree.size(); ++node) {
        if (is_active[node] != 0) visit(id, node);
      }
    }
  };
  for_each_space([&](std::size_t, std::size_t node) { ++rows[node]; });
  for (std::size_t node = 1; node < tree.size(); ++node) operations[node - 1].usage = std::vector<operation_usage>(rows[node]);
  std::size_t filled_space = ledger::max_spaces;
  std::vector<operation_usage> usage;
  for (std::size_t& row : rows) row = 0;
  for_each_space([&](std::size_t id, std::size_t node) {
    if (id != filled_space) usage = usage_of_space(tree, *events.space(id), names.labels.text(names.space_names[id]), names.time);
    filled_space = id;
    operations[node - 1].usage[rows[node]++] = std::move(usage[node]);
  });
  return operations;
}

/// What was live at each of the checkpoints that are kept.
template <class Checkpoints>
[[nodiscard]] std::vector<checkpoint> build_checkpoints(const Checkpoints& kept, const ledger_names& names,
                                                        const std::vector<std::string>& paths) {
  std::vector<checkpoint> result(kept.marks().size());
  for (std::size_t index = 0; index < result.size(); ++index) {
    const checkpoint_mark& mark = kept.marks()[index];
    checkpoint& point = result[index];
    point.name = names.labels.text(mark.name);
    point.number = static_cast<std::int64_t>(mark.number);
    point.time_ns = std::max(names.time.to_ns(mark.stamp), std::int64_t{0});
    point.live_bytes = mark.bytes;
    point.live_blocks = mark.blocks;
    point.spaces = std::vector<checkpoint_usage>(mark.row_count);
    for (std::size_t row = 0; row < mark.row_count; ++row) {
      const checkpoint_row& held = kept.rows(mark)[row];
      checkpoint_usage& usage = point.spaces[row];
      const label space = names.space_names[held.space];
      usage.space = space == other_names ? other_spaces_name : names.labels.text(space);
      usage.live_bytes = held.bytes;
      usage.live_blocks = held.blocks;
      std::vector<block> largest(kept.largest_blocks(held), kept.largest_blocks(held) + held.block_count);
      sort_rows(largest.data(), largest.size(), is_larger);
      usage.largest_blocks = std::vector<live_block>(largest.size());
      for (std::size_t each = 0; each < largest.size(); ++each)
        usage.largest_blocks[each] = describe_block(largest[each], paths, names.labels);
    }
  }
  return result;
}

[[nodiscard]] inline event_tally to_event_tally(const tally& counted) { return {counted.count, counted.bytes}; }

template <class Timeline>
[[nodiscard]] memory_timeline build_timeline(const Timeline& line, const clock_readings& time, std::int64_t live) {
  memory_timeline result;
  result.events_per_point = static_cast<std::int64_t>(line.events_per_point());
  const auto& finished = line.finished();
  result.points = std::vector<timeline_point>(finished.size() + (line.has_open() ? 1 : 0));
  for (std::size_t index = 0; index < finished.size(); ++index) {
    result.points[index] = {time.to_ns(finished[index].stamp), finished[index].peak, finished[index].current};
  }
  if (line.has_open()) result.points[finished.size()] = {time.to_ns(line.open().stamp), line.open().peak, live};
  return result;
}

/// Fills peak, current and segments of a facet from a level.
template <class Result, class Level, class Rows>
void fill_level(Result& result, const Level& from, const Rows& rows, const std::vector<named_segments>& names) {
  result.peak = from.peak();
  result.current = from.current();
  const level_record open = from.open_segment();
  result.segments.resize(rows.size());
  for (std::size_t index = 0; index < rows.finished(); ++index) {
    const std::size_t position = rows.position(index);
    if (position >= from.segments().size()) continue;
    result.segments[index] = {from.segments()[position].peak, from.segments()[position].current};
  }
  if (rows.has_open()) result.segments[rows.finished()] = {open.peak, open.current};
  result.segments_by_name.resize(rows.names());
  for_each_name(rows, from.by_name(), std::array{open.peak, open.current}, [&](std::size_t row, const auto& values) {
    result.segments_by_name[row] = {names[row].name, values[0], values[1]};
  });
}

/// What streams used of a space, freed blocks among it.
template <class Active, class Rows>
[[nodiscard]] active_profile build_active(const Active& used, const Rows& rows, const std::vector<named_segments>& names) {
  active_profile result;
  if (!used.is_used()) return result;
  fill_level(result, used.level(), rows, names);
  result.unmatched_completions = to_event_tally(used.unmatched_completions);
  result.missing_completions = to_event_tally(used.missing_completions);
  return result;
}

/// What a space's allocator held.
template <class Reserved, class Rows>
[[nodiscard]] reserved_profile build_reserved(const Reserved& held, const Rows& rows, const std::vector<named_segments>& names) {
  reserved_profile result;
  if (!held.is_used()) return result;
  fill_level(result, held.level(), rows, names);
  result.unmatched_releases = to_event_tally(held.unmatched_releases);
  result.replaced_reservations = to_event_tally(held.replaced_reservations);
  return result;
}

/// The live blocks that begin within another one. Blocks on cores lie beside each other and are left out.
template <class Blocks>
[[nodiscard]] event_tally overlapping(const Blocks& live) {
  struct range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  std::vector<range> ranges(live.size());
  std::size_t count = 0;
  live.for_each([&](const block& held) {
    const bool is_on_cores = held.address >> 48 != 0;
    if (held.bytes != 0 && !is_on_cores) ranges[count++] = {held.address, held.address + held.bytes};  // both below 2^63
  });
  sort_rows(ranges.data(), count, [](const range& left, const range& right) {
    return left.begin != right.begin ? left.begin < right.begin : left.end < right.end;
  });
  tally found;
  std::uint64_t reached = 0;
  for (std::size_t index = 0; index < count; ++index) {
    if (ranges[index].begin < reached) found.add(std::min(reached, ranges[index].end) - ranges[index].begin);
    reached = std::max(reached, ranges[index].end);
  }
  return to_event_tally(found);
}

/// Fills one space from its ledger: every segment of the profile, then the totals, then the overall peak.
template <class Space, class Rows>
class space_builder {
 public:
  space_builder(const Space& space, const Rows& rows, const ledger_names& names, const std::vector<std::string>& paths)
      : space_(space), rows_(rows), names_(names), paths_(paths), live_sets_(space, paths, names.labels) {}

  [[nodiscard]] space_profile build(std::string_view name, const std::vector<segment>& segments,
                                    const std::vector<named_segments>& segment_names) {
    result_.name = name;
    result_.stands_for_others = name == other_spaces_name;
    result_.segments = std::vector<segment_usage>(segments.size());
    for (std::size_t index = 0; index < segments.size(); ++index)
      fill_segment(result_.segments[index], segments[index].name, index);
    add_names(segment_names);
    result_.cumulative_current = space_.live();
    result_.allocations = space_.allocated();
    result_.deallocations = result_.allocations - result_.cumulative_current;
    result_.allocation_count = static_cast<std::int64_t>(space_.allocation_count());
    result_.deallocation_count = result_.allocation_count - static_cast<std::int64_t>(space_.blocks().size());
    add_overall_peak();
    result_.capacity = space_.capacity();
    result_.capacity_is_per_core = space_.capacity_is_per_core();
    if (space_.first_shortfall().has_happened()) {
      result_.first_shortfall = build_first_shortfall(space_, names_.time, paths_, live_sets_.at_first_shortfall(), rows_);
    }
    result_.timeline = build_timeline(space_.line(), names_.time, space_.live());
    result_.anomalies = {to_event_tally(space_.unmatched_frees),     to_event_tally(space_.replaced_allocations),
                         to_event_tally(space_.mismatched_sizes),    to_event_tally(space_.cross_thread_frees),
                         to_event_tally(space_.unknown_annotations), to_event_tally(space_.untracked_allocations),
                         to_event_tally(space_.null_allocations),    overlapping(space_.blocks())};
    result_.cores = build_cores(space_.cores(), rows_, segment_names);
    result_.reserved = build_reserved(space_.reserved(), rows_, segment_names);
    result_.active = build_active(space_.active(), rows_, segment_names);
    result_.streams = build_streams(space_.streams(), names_.labels);
    result_.out_of_memory = build_out_of_memory(space_.out_of_memory(), names_.time, paths_, rows_);
    result_.further_out_of_memory = to_event_tally(space_.out_of_memory().further());
    return std::move(result_);
  }

 private:
  void fill_segment(segment_usage& usage, const std::string& name, std::size_t index) {
    usage.segment = name;
    const bool is_open = index == rows_.finished();
    if (!is_open && rows_.position(index) >= space_.segments().size()) return;  // there was no memory for it
    const segment_record record = is_open ? space_.open_segment() : space_.segments()[rows_.position(index)];
    fill(usage, record);
    usage.live_at_peak = is_open ? live_sets_.at_open() : live_sets_.at_finished(rows_.position(index));
    usage.cumulative_peak = is_open ? std::max(space_.overall_peak(), record.live_at_peak) : record.cumulative_peak;
    result_.cumulative_peak = usage.cumulative_peak;
  }

  /// What all segments of each name did.
  void add_names(const std::vector<named_segments>& names) {
    const segment_record open = space_.open_segment();
    const std::int64_t change = open.live_at_end - open.live_at_start;
    const std::array numbers{open.live_at_peak - open.live_at_start,
                             open.live_at_peak,
                             open.allocated,
                             open.allocated - change,
                             change,
                             open.live_at_end,
                             open.allocation_count,
                             open.allocation_count - (open.blocks_at_end - open.blocks_at_start)};
    result_.segments_by_name = std::vector<named_segments_usage>(names.size());
    for_each_name(rows_, space_.by_name(), numbers, [&](std::size_t row, const auto& of) {
      const bool is_open = row == rows_.history().rows().size();
      const fitted_line line = is_open ? fitted_line{0, 1} : space_.growth(rows_.history(), row);
      result_.segments_by_name[row] = {names[row].name, of[0], of[1], of[2], of[3],
                                       of[4],           of[5], of[6], of[7], {line.slope, line.r_squared}};
    });
  }

  void fill(segment_usage& usage, const segment_record& record) const {
    usage.segment_peak = record.live_at_peak - record.live_at_start;
    usage.segment_change = record.live_at_end - record.live_at_start;
    usage.allocations = record.allocated;
    usage.deallocations = record.allocated - usage.segment_change;
    usage.cumulative_current = record.live_at_end;
    usage.allocation_count = record.allocation_count;
    usage.deallocation_count = record.allocation_count - (record.blocks_at_end - record.blocks_at_start);
    usage.peak_time_ns = names_.time.to_ns(record.peak_stamp);
    if (record.peak_operation != 0) usage.peak_operation = paths_[record.peak_operation];
  }

  void add_overall_peak() {
    if (result_.cumulative_peak == 0) return;
    const bool is_finished = result_.cumulative_peak == space_.overall_peak();
    result_.peak_segment = rows_.index_of(is_finished ? space_.overall_segment() : rows_.history().count());
    if (result_.peak_segment < 0) return;
    const segment_usage& usage = result_.segments[static_cast<std::size_t>(result_.peak_segment)];
    result_.peak_time_ns = usage.peak_time_ns;
    result_.peak_operation = usage.peak_operation;
    result_.live_at_peak = is_finished ? live_sets_.with_all_owners(usage.live_at_peak) : usage.live_at_peak;
  }

  const Space& space_;
  const Rows& rows_;
  const ledger_names& names_;
  const std::vector<std::string>& paths_;
  live_set_builder<Space> live_sets_;
  space_profile result_;
};

}  // namespace detail

/// The profile of what a ledger saw. What it cannot know (wall clock, run mode, process, cost, facts) is left at its default.
///
/// Costs a pass over live blocks, operations and segments. Throws `std::bad_alloc` if there is no memory for the result.
template <class Ledger>
[[nodiscard]] profile build_profile(Ledger& events, const ledger_names& names) {
  events.settle_open_scopes();
  profile result;
  result.library_version = version_string;
  result.complete = names.is_complete;
  const detail::segment_rows rows{events.segments(), !names.is_complete};
  result.segments = detail::build_segments(rows, names.labels, names.time, events.segment_begin(), events.last_stamp());
  result.segments_by_name = detail::build_names(rows, names.labels, names.time, events.begin_stamp(), result.segments);
  result.segment_count = static_cast<std::int64_t>(events.segments().count()) + (names.is_complete ? 0 : 1);
  result.step_count = result.segment_count == 0 ? 0 : static_cast<std::int64_t>(events.segments().step()) + 1;
  const std::vector<std::string> paths = detail::operation_paths(events.operations(), names.labels);
  result.operations = detail::build_operations(events, names, paths);
  result.checkpoints = detail::build_checkpoints(events.checkpoints(), names, paths);
  result.checkpoint_count = static_cast<std::int64_t>(events.checkpoints().count());
  std::size_t space_count = 0;
  for (std::size_t id = 0; id < ledger::max_spaces; ++id) space_count += events.space(id) != nullptr ? 1U : 0U;
  result.spaces = std::vector<space_profile>(space_count);
  for (std::size_t id = 0, index = 0; id < ledger::max_spaces; ++id) {
    const space_ledger* const space = events.space(id);
    if (space == nullptr) continue;
    const label name = names.space_names[id];
    result.spaces[index++] = detail::space_builder{*space, rows, names, paths}.build(
        name == other_names ? other_spaces_name : names.labels.text(name), result.segments, result.segments_by_name);
    if (space->untracked_allocations.count != 0) result.exact = false;
  }
  result.memories = detail::build_memories(events, names.labels, names.time, paths, rows, result.spaces);
  result.anomalies.rejected_events = static_cast<std::int64_t>(events.rejected_events());
  result.anomalies.unbalanced_scopes = static_cast<std::int64_t>(events.unbalanced_scopes());
  result.anomalies.too_deep_scopes = static_cast<std::int64_t>(events.too_deep_scopes());
  for (const named_segments& row : result.segments_by_name) {
    if (row.stands_for_others) result.anomalies.other_segments = row.count;
  }
  for (const operation_profile& operation : result.operations) {
    if (operation.stands_for_others) result.anomalies.other_operations += operation.invocations;
  }
  result.anomalies.other_names = static_cast<std::int64_t>(events.other_names());
  // A trace from a file may claim any number.
  const auto count = [](std::uint64_t events_of_kind) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(events_of_kind, INT64_MAX));
  };
  result.anomalies.dropped_events = count(events.dropped_events());
  result.anomalies.reentrant_events = count(events.reentrant_events());
  result.anomalies.missing_events = count(events.missing_events());
  if ((events.rejected_events() | events.dropped_events() | events.reentrant_events() | events.missing_events()) != 0 ||
      events.are_more_missing()) {
    result.exact = false;
  }
  return result;
}

/// The profile of a trace as far as it has come. What only the capture knows, what recording cost, is left at its default.
///
/// Costs a pass over live blocks, operations and segments. Throws `std::bad_alloc` if there is no memory for the result.
template <class Fold>
[[nodiscard]] profile build_profile_of(Fold& fold) {
  auto& events = fold.events();
  profile result = build_profile(events, {fold.names(), fold.space_names(), events.clock(), events.has_ended()});
  const capture_info info = fold.info();
  result.library_version = info.library_version;
  result.mode = info.mode;
  result.device = info.device;
  result.begin_unix_ns = info.begin_unix_ns;
  result.duration_ns = std::max(events.clock().last_ns(), events.clock().to_ns(events.last_stamp()));
  result.process = info.process;
  result.facts = fold.facts();
  return result;
}

}  // namespace memprof

// ---- <memprof/record/duplicate_registries.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#if defined(__linux__)
#include <dlfcn.h>
#include <link.h>
#endif

/// @file
/// Finds parts of the process whose events no profile will hold, because they were linked such that they have a registry of
/// their own (record/registry.hpp says how that comes about).

namespace memprof::detail {

/// Paths of files, each with its terminating zero, in pages that no hook sees.
using module_paths = page_array<char>;

[[nodiscard]] inline bool append_path(module_paths& paths, const char* path) noexcept {
  const std::size_t before = paths.size();
  const std::size_t length = std::strlen(path) + 1;
  if (!paths.resize(before + length)) return false;
  std::memcpy(paths.data() + before, path, length);
  return true;
}

#if defined(__linux__)

/// Asks for the path of the loaded object of that number.
struct module_query {
  std::uint32_t number;
  char path[4096];
};

/// Copies the path of the module that `query` asks for; false if there are not so many.
[[nodiscard]] inline bool find_module(module_query& query) noexcept {
  const auto visit = [](dl_phdr_info* module, std::size_t, void* asked) {
    auto& wanted = *static_cast<module_query*>(asked);
    if (wanted.number-- != 0) return 0;
    std::strncpy(wanted.path, module->dlpi_name == nullptr ? "" : module->dlpi_name, sizeof wanted.path - 1);
    return 1;
  };
  return ::dl_iterate_phdr(visit, &query) != 0;
}

/// Whether a loaded library records in a registry of its own.
[[nodiscard]] inline bool has_other_registry(const char* path) noexcept {
  // Not inside `find_module`: the loader's lock is held there. The library is loaded, so this only looks it up.
  void* const handle = ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  const auto* const found = static_cast<const registry*>(::dlsym(handle, "_ZN7memprof5abi_116process_registryE"));
  // Every library brings a registry, and those that are bound to another leave their own untouched: without a name in it.
  const bool is_in_use = found != nullptr && found != &abi_1::process_registry &&
                         found->layout_version == registry::current_layout_version && found->labels != nullptr;
  ::dlclose(handle);
  return is_in_use;
}

/// The loaded libraries that record in another registry than this code. The executable cannot be looked into. Not under the
/// registry's lock: a library's constructor may wait for it while the loader waits for the constructor.
[[nodiscard]] inline module_paths find_duplicate_registries() noexcept {
  module_paths paths;
  module_query query{};
  for (std::uint32_t number = 0;; ++number) {
    query.number = number;
    if (!find_module(query)) return paths;
    const bool is_executable = query.path[0] == '\0';
    if (is_executable || !has_other_registry(query.path)) continue;
    if (!append_path(paths, query.path)) return paths;
  }
}

#else

[[nodiscard]] inline module_paths find_duplicate_registries() noexcept { return {}; }

#endif

/// Says on stderr whose events are missing.
inline void warn_about_duplicate_registries(const module_paths& paths) noexcept {
  for (std::size_t begin = 0; begin < paths.size(); begin += std::strlen(paths.data() + begin) + 1) {
    std::fprintf(stderr,
                 "memprof: what %s allocated is missing in this profile: it has a registry of its own; link the executable with "
                 "-rdynamic (CMake: ENABLE_EXPORTS ON)\n",
                 paths.data() + begin);
  }
}

}  // namespace memprof::detail

// ---- <memprof/record/kept_backends.hpp>
#include <utility>

namespace memprof::detail {

/// What a capture does with its backends, of whatever types they are.
struct backend_calls {
  void (*detach)(void* backends) noexcept;
  void (*report_facts)(void* backends);
  void (*destroy)(void* backends) noexcept;
};

/// Owns the backends of a capture, which outlive it for as long as its profile can be read. None of its functions is to be called
/// under the registry's lock: backends may call us.
class kept_backends {
 public:
  kept_backends() noexcept = default;
  kept_backends(void* backends, const backend_calls* calls) noexcept : backends_(backends), calls_(calls) {}
  kept_backends(kept_backends&& other) noexcept
      : backends_(std::exchange(other.backends_, nullptr)), calls_(other.calls_), is_attached_(other.is_attached_) {}
  kept_backends& operator=(kept_backends&& other) noexcept {
    std::swap(backends_, other.backends_);
    std::swap(calls_, other.calls_);
    std::swap(is_attached_, other.is_attached_);
    return *this;
  }
  ~kept_backends() {
    if (backends_ == nullptr) return;
    const recording_suppressor hidden;
    if (is_attached_) calls_->detach(backends_);
    calls_->destroy(backends_);
  }

  [[nodiscard]] void* get() const noexcept { return backends_; }
  [[nodiscard]] const backend_calls* calls() const noexcept { return backends_ == nullptr ? nullptr : calls_; }
  [[nodiscard]] bool is_attached() const noexcept { return backends_ != nullptr && is_attached_; }
  /// Says that they are off, and whether they were on: of two threads that end the capture only one detaches them.
  [[nodiscard]] bool take_attached() noexcept { return backends_ != nullptr && std::exchange(is_attached_, false); }

 private:
  void* backends_ = nullptr;
  const backend_calls* calls_ = nullptr;
  bool is_attached_ = true;
};

}  // namespace memprof::detail

// ---- <memprof/record/live_trace.hpp>
// ---- <memprof/record/chunk_buffers.hpp>
// ---- <memprof/record/live_pages.hpp>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#endif

/// @file
/// The pages of a trace file into which its capture stores directly.

namespace memprof::detail {

/// Where the parts of a trace file's live area lie. All are multiples of a page.
struct live_layout {
  /// A second of three million events, or 40 ms of the most that one thread can record: the thread that writes them may get no
  /// processor for so long.
  static constexpr std::uint32_t buffers = 32;
  static constexpr std::uint32_t buffer_bytes = std::uint32_t{256} << 10;
  static constexpr std::size_t bytes_of_places = std::size_t{64} << 20;  ///< at most, unless so few places would fit:
  static constexpr std::size_t fewest_places = 16;
  static constexpr std::size_t most_bytes_of_places = std::size_t{1} << 30;
  static constexpr std::size_t spare_bytes = std::size_t{1} << 20;
  /// The area begins directly behind the file's header, in the same page.
  static constexpr std::uint32_t area = trace_file_header::size;

  explicit live_layout(std::uint32_t ring_capacity) noexcept {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto rounded = [page](std::size_t bytes) { return (bytes + page - 1) / page * page; };
    first_buffer = rounded(area + live_area_header::buffer_states + buffers * live_buffer_state::size);
    first_place = first_buffer + buffers * rounded(buffer_bytes);
    place_bytes = rounded(ring_slots::bytes_for(ring_capacity));
    const std::size_t fitting = std::min(fewest_places, most_bytes_of_places / place_bytes);
    const std::size_t wanted = std::max(fitting, bytes_of_places / place_bytes);
    places = static_cast<std::uint32_t>(std::min<std::size_t>(wanted, live_area_header::max_places));
    spare_places = std::min(places, static_cast<std::uint32_t>(1 + spare_bytes / place_bytes));
  }

  [[nodiscard]] std::size_t place(std::uint32_t index) const noexcept { return first_place + index * place_bytes; }
  /// Where the first chunk comes if all places are mapped.
  [[nodiscard]] std::size_t end() const noexcept { return place(places); }

  std::size_t first_buffer;
  std::size_t first_place;
  std::size_t place_bytes;
  std::uint32_t places;
  std::uint32_t spare_places;  ///< so many have blocks reserved before a thread asks
};

/// Whether the file's system keeps the blocks that were reserved for it where they are, so that a store into a mapped page of it
/// never lacks one: a store that does ends the program (SIGBUS). Those that write a block to a new place each time cannot promise
/// it, nor can those of a network or in user space.
[[nodiscard]] inline bool keeps_reserved_blocks([[maybe_unused]] int file) noexcept {
#if defined(__linux__)
  struct statfs system {};
  if (::fstatfs(file, &system) != 0) return false;
  constexpr unsigned long ext = 0xEF53, xfs = 0x58465342, tmpfs = 0x01021994, overlay = 0x794C7630;
  const auto kind = static_cast<unsigned long>(system.f_type) & 0xFFFF'FFFFU;
  return kind == ext || kind == xfs || kind == tmpfs || kind == overlay;
#else
  return false;
#endif
}

/// Reserves blocks for that part of a file, which grows if it ends earlier. 0, or why not: EOPNOTSUPP where the system cannot.
[[nodiscard]] inline int reserve_blocks([[maybe_unused]] int file, [[maybe_unused]] std::size_t offset,
                                        [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__)
  // Not posix_fallocate: where the file system has no such call it writes zeros, which may lie over what others stored meanwhile.
  for (;;) {
    if (::fallocate(file, 0, static_cast<::off_t>(offset), static_cast<::off_t>(bytes)) == 0) return 0;
    if (errno != EINTR) return errno;
  }
#else
  return EOPNOTSUPP;
#endif
}

/// Whether the process may make a file of so many bytes. Otherwise the attempt would raise SIGXFSZ.
[[nodiscard]] inline bool may_be_as_long(std::size_t bytes) noexcept {
  struct rlimit limit {};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes;
}

/// Gives the blocks of that part of a file back, if its system can: it reads as zeros.
inline void drop_blocks([[maybe_unused]] int file, [[maybe_unused]] std::size_t offset,
                        [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__)
  (void)::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<::off_t>(offset), static_cast<::off_t>(bytes));
#endif
}

/// Writes all of the bytes there. 0, or why not.
[[nodiscard]] inline int write_at(int file, const void* bytes, std::size_t size, std::uint64_t offset) noexcept {
  const auto* next = static_cast<const unsigned char*>(bytes);
  while (size != 0) {
    const ::ssize_t written = ::pwrite(file, next, size, static_cast<::off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    next += written;
    offset += static_cast<std::uint64_t>(written);
    size -= static_cast<std::size_t>(written);
  }
  return 0;
}

}  // namespace memprof::detail

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memprof::detail {

/// A chunk in one of the buffers.
struct full_chunk {
  std::uint32_t buffer;
  std::uint32_t bytes;
  std::uint32_t checksum;
};

/// The buffers of a trace file: whoever encodes fills one after the other, and the thread that writes the file empties them. They
/// lie in the file's own pages where that is possible: what is committed there outlives the process.
///
/// The first part is used under the registry's lock, the second by the thread.
class chunk_buffers {
 public:
  chunk_buffers() = default;
  chunk_buffers(const chunk_buffers&) = delete;
  chunk_buffers& operator=(const chunk_buffers&) = delete;

  /// Where they are, and what the live area says of each.
  void use(unsigned char* buffers, unsigned char* states) noexcept {
    buffers_ = buffers;
    states_ = reinterpret_cast<buffer_state*>(states);
  }

  // --- filling ------------------------------------------------------------------------------------------------------

  /// What is left of the open buffer; `keep` what was written there.
  [[nodiscard]] encoded_bytes room() const noexcept { return {buffer(open_) + used_, buffer(open_) + live_layout::buffer_bytes}; }
  void keep(const encoded_bytes& written) noexcept { used_ = static_cast<std::uint32_t>(written.next - buffer(open_)); }
  /// Bytes in the open buffer.
  [[nodiscard]] std::uint32_t used() const noexcept { return used_; }
  /// The number of the open chunk.
  [[nodiscard]] std::uint32_t number() const noexcept { return closed_.load(std::memory_order_relaxed); }

  /// Opens a free buffer; false if there is none.
  [[nodiscard]] bool open() noexcept {
    // The first, so that a disk that is fast enough sees few of the pages change.
    std::uint32_t index = 0;
    // Acquire pairs with the release in `give_back`: the thread has read what was there.
    while (index != live_layout::buffers && in_use_[index].load(std::memory_order_acquire)) ++index;
    if (index == live_layout::buffers) return false;
    open_ = index;
    used_ = committed_ = 0;
    checksum_ = 0;
    in_use_[index].store(true, std::memory_order_relaxed);
    // In this order: whenever the process ends, number and commit are those of one chunk, or nothing is committed.
    states_[index].commit.store(0, std::memory_order_release);
    states_[index].number.store(std::uint64_t{number()} + 1, std::memory_order_release);
    return true;
  }

  /// Makes what is in the open buffer a part of the file: whatever happens to the process, it will be read.
  void commit() noexcept {
    if (used_ == committed_) return;
    checksum_ = crc32c::extend(checksum_, buffer(open_) + committed_, used_ - committed_);
    committed_ = used_;
    // Release: the bytes come before what says that they are valid.
    const std::uint64_t chunk = std::uint64_t{number()} + 1;
    states_[open_].commit.store(live_buffer_state::commit_of(used_, checksum_, chunk), std::memory_order_release);
  }

  /// Hands the open chunk to the thread.
  void close() noexcept {
    commit();
    const std::uint32_t chunk = number();
    queue_[chunk % live_layout::buffers] = {open_, used_, checksum_};
    used_ = committed_ = 0;
    closed_.store(chunk + 1, std::memory_order_release);  // pairs with the acquire load in `closed`
    wake();
  }

  [[nodiscard]] std::uint32_t free() const noexcept {
    std::uint32_t count = 0;
    for (const std::atomic<bool>& each : in_use_) count += each.load(std::memory_order_relaxed) ? 0U : 1U;
    return count;
  }
  /// Waits until so many are free. False if writing failed meanwhile.
  [[nodiscard]] bool wait_for_free(std::uint32_t count) const noexcept {
    for (;;) {
      const std::uint32_t seen = progress_.load(std::memory_order_acquire);
      if (error() != 0) return false;
      if (free() >= count) return true;
      progress_.wait(seen, std::memory_order_acquire);
    }
  }

  /// `errno` of what ended the writing; 0: nothing did.
  [[nodiscard]] int error() const noexcept { return error_.load(std::memory_order_acquire); }

  void wake() noexcept {
    wake_word_.fetch_add(1, std::memory_order_release);
    wake_word_.notify_one();
  }
  [[nodiscard]] std::atomic<std::uint32_t>& wake_word() noexcept { return wake_word_; }
  /// Nothing comes any more.
  void end() noexcept {
    has_ended_.store(true, std::memory_order_release);
    wake();
  }

  // --- emptying -----------------------------------------------------------------------------------------------------

  [[nodiscard]] bool has_ended() const noexcept { return has_ended_.load(std::memory_order_acquire); }
  /// Chunks that were handed over.
  [[nodiscard]] std::uint32_t closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  [[nodiscard]] const full_chunk& chunk(std::uint32_t number) const noexcept { return queue_[number % live_layout::buffers]; }
  [[nodiscard]] const unsigned char* bytes_of(const full_chunk& chunk) const noexcept { return buffer(chunk.buffer); }
  /// Its chunk is in the file.
  void give_back(const full_chunk& chunk) noexcept {
    in_use_[chunk.buffer].store(false, std::memory_order_release);
    tell_progress();
  }
  /// Ends the writing. True for the first error.
  bool fail(int error) noexcept {
    int none = 0;
    const bool is_first = error_.compare_exchange_strong(none, error, std::memory_order_acq_rel);
    tell_progress();
    return is_first;
  }

 private:
  /// `live_buffer_state` in the file's pages.
  struct buffer_state {
    std::atomic<std::uint64_t> number;
    std::atomic<std::uint64_t> commit;
  };
  static_assert(sizeof(buffer_state) == live_buffer_state::size);

  [[nodiscard]] unsigned char* buffer(std::uint32_t index) const noexcept {
    return buffers_ + std::size_t{index} * live_layout::buffer_bytes;
  }
  void tell_progress() noexcept {
    progress_.fetch_add(1, std::memory_order_release);
    progress_.notify_all();
  }

  unsigned char* buffers_ = nullptr;
  buffer_state* states_ = nullptr;
  std::uint32_t open_ = 0;  ///< the open chunk's buffer
  std::uint32_t used_ = 0;
  std::uint32_t committed_ = 0;
  std::uint32_t checksum_ = 0;  ///< of what is committed

  full_chunk queue_[live_layout::buffers] = {};
  std::atomic<bool> in_use_[live_layout::buffers] = {};
  std::atomic<std::uint32_t> closed_{0};
  std::atomic<std::uint32_t> wake_word_{0};  ///< counts up when the thread has something to do
  std::atomic<std::uint32_t> progress_{0};   ///< counts up when it has done something
  std::atomic<bool> has_ended_{false};
  std::atomic<int> error_{0};
};

}  // namespace memprof::detail

// ---- <memprof/record/live_area.hpp>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace memprof::detail {

/// The live area of a trace file: pages of the file where its system keeps the blocks that are reserved for them, otherwise pages
/// of the process's own, which hold the buffers alone.
class live_area {
 public:
  live_area() = default;
  live_area(const live_area&) = delete;
  live_area& operator=(const live_area&) = delete;

  /// Makes the area of capture `capture` at the begin of an empty file. `wake_word` counts up when rings need more room. 0, or
  /// why there can be no trace in the file.
  [[nodiscard]] int make(int file, std::uint32_t ring_capacity, std::uint32_t capture,
                         std::atomic<std::uint32_t>& wake_word) noexcept {
    const live_layout layout{ring_capacity};
    if (keeps_reserved_blocks(file) && may_be_as_long(layout.end())) {
      if (const int error = map(file, layout); error != 0) return error;
    }
    first_buffer_ = layout.first_buffer;
    if (is_mapped_) {
      describe(layout, ring_capacity, capture, wake_word);
      return 0;
    }
    own_bytes_ = layout.first_place;
    pages_ = static_cast<unsigned char*>(map_pages(own_bytes_));
    return pages_ == nullptr ? ENOMEM : 0;
  }

  [[nodiscard]] bool is_mapped() const noexcept { return is_mapped_; }
  [[nodiscard]] ring_places& places() noexcept { return places_; }
  [[nodiscard]] unsigned char* buffers() const noexcept { return pages_ + first_buffer_; }
  /// What the area says of each buffer.
  [[nodiscard]] unsigned char* buffer_states() const noexcept {
    return pages_ + live_layout::area + live_area_header::buffer_states;
  }
  /// Where the chunks of the file may begin.
  [[nodiscard]] std::uint64_t end() const noexcept { return is_mapped_ ? places_.mapping_bytes : trace_file_header::size; }
  /// Bytes of memory that are not the file's.
  [[nodiscard]] std::size_t own_bytes() const noexcept { return own_bytes_; }

  /// Gives the pages back, but for rings in them.
  void release() noexcept {
    if (is_mapped_) {
      places_.unmap();
    } else {
      unmap_pages(pages_, own_bytes_);
    }
    is_mapped_ = false;
    pages_ = nullptr;
    own_bytes_ = 0;
  }

 private:
  /// Maps the file, if it can be. 0, or why there can be no file at all.
  [[nodiscard]] int map([[maybe_unused]] int file, [[maybe_unused]] const live_layout& layout) noexcept {
#if defined(__linux__)
    const int error = reserve_blocks(file, 0, layout.place(layout.spare_places));
    if (error == EOPNOTSUPP || error == ENOSYS) return 0;
    if (error != 0) return error;
    void* const pages = ::mmap(nullptr, layout.end(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (pages == MAP_FAILED) return 0;
    is_mapped_ = true;
    pages_ = static_cast<unsigned char*>(pages);
#endif
    return 0;
  }

  void describe(const live_layout& layout, std::uint32_t ring_capacity, std::uint32_t capture,
                std::atomic<std::uint32_t>& wake_word) noexcept {
    places_.mapping = pages_;
    places_.mapping_bytes = layout.end();
    places_.first = pages_ + layout.first_place;
    places_.place_bytes = layout.place_bytes;
    places_.capacity = ring_capacity;
    places_.count = layout.places;
    places_.capture = capture;
    places_.spare = layout.spare_places;
    places_.reserved.store(layout.spare_places, std::memory_order_relaxed);
    places_.wake_word = &wake_word;
    unsigned char* const area = pages_ + live_layout::area;
    places_.given_in_file = new (area + live_area_header::given_places) std::atomic<std::uint64_t>{0};
    places_.rings_outside = new (area + live_area_header::rings_outside) std::atomic<std::uint64_t>{0};
    live_area_header header;
    header.buffers = live_layout::buffers;
    header.buffer_bytes = live_layout::buffer_bytes;
    header.places = layout.places;
    header.place_bytes = static_cast<std::uint32_t>(layout.place_bytes);
    header.first_buffer = layout.first_buffer;
    header.first_place = layout.first_place;
    const auto encoded = header.encode();
    std::memcpy(area, encoded.data(), encoded.size());
  }

  bool is_mapped_ = false;
  unsigned char* pages_ = nullptr;
  std::size_t own_bytes_ = 0;
  std::size_t first_buffer_ = 0;
  ring_places places_;
};

}  // namespace memprof::detail

// ---- <memprof/record/open_trace_file.hpp>
// ---- <memprof/detail/file_lock.hpp>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>

/// @file
/// A lock on a whole file that its holder has until it closes the file or ends, however it ends, and that others can ask for
/// without taking it: Linux's locks of open file descriptions. Elsewhere nobody ever holds one.

namespace memprof::detail {

/// Takes the lock for writing; false if somebody else has it. File systems without locks grant it.
[[nodiscard]] inline bool lock_file([[maybe_unused]] int file) noexcept {
#if defined(F_OFD_SETLK)
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file, F_OFD_SETLK, &whole) == 0 || (errno != EAGAIN && errno != EACCES);
#else
  return true;
#endif
}

/// Whether somebody else holds it.
[[nodiscard]] inline bool is_file_locked([[maybe_unused]] int file) noexcept {
#if defined(F_OFD_GETLK)
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
#else
  return false;
#endif
}

}  // namespace memprof::detail

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/// @file
/// Under which name a capture's trace file is made, and what becomes of a file that has the name already.

namespace memprof::detail {

/// `pattern` with `%p` replaced by the process id, `%r` by its rank (0 if no launcher said it), `%h` by its host, and `%%` by
/// `%`.
[[nodiscard]] inline std::string expand_trace_path(std::string_view pattern, const process_info& process) {
  std::string path;
  for (std::size_t position = 0; position < pattern.size(); ++position) {
    const char next = position + 1 < pattern.size() ? pattern[position + 1] : '\0';
    const bool is_known = pattern[position] == '%' && (next == 'p' || next == 'r' || next == 'h' || next == '%');
    if (!is_known) {
      path += pattern[position];
      continue;
    }
    ++position;
    if (next == 'p') path += std::to_string(process.id);
    if (next == 'r') path += std::to_string(process.rank < 0 ? 0 : process.rank);
    if (next == 'h') path += process.host;
    if (next == '%') path += '%';
  }
  return path;
}

/// A trace file that was just made, or why there is none.
struct opened_trace_file {
  int file = -1;
  bool is_new = false;  ///< its name was nobody's, not even an empty file's
  std::string problem;  ///< a part of a sentence; empty: there is a file
};

/// What has a name that a trace file is to get.
enum class name_taken_by { nothing, empty_file, finished_trace, trace_being_written, something_else };

[[nodiscard]] inline name_taken_by look_at(const std::string& path) {
  // Without waiting for the other end of a pipe.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    struct stat link {};
    return errno == ENOENT && ::lstat(path.c_str(), &link) != 0 ? name_taken_by::nothing : name_taken_by::something_else;
  }
  name_taken_by found = name_taken_by::something_else;
  struct stat status {};
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    std::array<char, trace_magic.size()> begin{};
    // Before its content: who has just made the file may not have written anything.
    const bool is_locked = is_file_locked(file);
    const ::ssize_t got = ::read(file, begin.data(), begin.size());
    const bool is_trace =
        got == static_cast<::ssize_t>(begin.size()) && std::string_view{begin.data(), begin.size()} == trace_magic;
    if (is_locked && (is_trace || got == 0)) {
      found = name_taken_by::trace_being_written;
    } else if (got == 0) {
      found = name_taken_by::empty_file;
    } else if (is_trace) {
      found = name_taken_by::finished_trace;
    }
  }
  ::close(file);
  return found;
}

inline constexpr const char* another_writes_it = "another capture writes it; %p in the name stands for the process";

/// Makes the file of that name, which nobody else had. A trace that has the name becomes `path`.old in place of the trace that
/// had that one; whatever else has it stays as it is, and there is no file.
[[nodiscard]] inline opened_trace_file open_trace_file(const std::string& path) {
  const auto system_says = [](int error) { return std::error_code(error, std::generic_category()).message(); };
  constexpr int attempts = 3;  // others may make and take away files of that name meanwhile
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const int made = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (made >= 0) {
      if (lock_file(made)) return {made, true, {}};
      ::close(made);
      return {-1, false, another_writes_it};
    }
    if (errno != EEXIST) return {-1, false, system_says(errno)};
    switch (look_at(path)) {
      case name_taken_by::nothing: continue;
      case name_taken_by::empty_file: {
        const int empty = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (empty < 0) return {-1, false, system_says(errno)};
        struct stat status {};
        if (lock_file(empty) && ::fstat(empty, &status) == 0 && status.st_size == 0) return {empty, false, {}};
        ::close(empty);
        continue;
      }
      case name_taken_by::trace_being_written: return {-1, false, another_writes_it};
      case name_taken_by::something_else:
        return {-1, false, "something that is no trace has this name, and is left as it is; choose another one"};
      case name_taken_by::finished_trace: break;
    }
    const std::string old = path + ".old";
    const name_taken_by of_old = look_at(old);
    if (of_old == name_taken_by::trace_being_written || of_old == name_taken_by::something_else) {
      return {-1, false, "it is an earlier trace, which cannot become '" + old + "' because that is no trace; move one of them"};
    }
    if (::rename(path.c_str(), old.c_str()) != 0) return {-1, false, system_says(errno)};
  }
  return {-1, false, "others keep making files of this name"};
}

}  // namespace memprof::detail

// ---- <memprof/record/trace_file_message.hpp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include <unistd.h>

namespace memprof::detail {

/// The name of a trace file, and how a line on stderr says what became of it.
class trace_file_message {
 public:
  void set_path(const std::string& path) noexcept { std::snprintf(path_, sizeof path_, "%s", path.c_str()); }
  [[nodiscard]] const char* path() const noexcept { return path_; }

  /// Writes a line of `format`, which takes the path and `what`. In one piece, and without the lock of stderr, which a thread may
  /// hold that waits for us.
  [[gnu::cold, gnu::noinline]] void say(const char* format, const char* what) const noexcept {
    char line[sizeof path_ + 512];
    const int size = std::snprintf(line, sizeof line, format, path_, what);
    if (size <= 0) return;
    const auto length = static_cast<std::size_t>(size) < sizeof line ? static_cast<std::size_t>(size) : sizeof line - 1;
    [[maybe_unused]] const ::ssize_t said = ::write(STDERR_FILENO, line, length);
  }

 private:
  char path_[4096] = {};
};

}  // namespace memprof::detail

// ---- <memprof/record/trace_file_writer.hpp>
// ---- <memprof/record/trace_generation.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

/// @file
/// A trace file with a limit keeps two generations of chunks. Each begins with what was known at that moment, so that the one
/// before can go.

namespace memprof::detail {

/// A generation that begins, on its way to the thread that writes the file. In pages of its own.
struct trace_generation {
  std::uint32_t first_chunk = 0;        ///< number of its first chunk of events
  std::uint64_t expected_bytes = 0;     ///< of its chunks of events
  page_array<unsigned char> beginning;  ///< chunks, as they are in the file

  /// Null if the system has no memory.
  [[nodiscard]] static trace_generation* make() noexcept {
    void* const pages = map_pages(sizeof(trace_generation));
    return pages == nullptr ? nullptr : new (pages) trace_generation;
  }
  void destroy() noexcept {
    this->~trace_generation();
    unmap_pages(this, sizeof(trace_generation));
  }

  /// Adds these records to the beginning. False if the system has no memory.
  [[nodiscard]] bool add(const trace& records) noexcept {
    bool is_added = true;
    records.for_each_chunk([&](const unsigned char* bytes, std::size_t size) {
      const std::size_t filled = beginning.size();
      is_added = is_added && beginning.resize(filled + chunk_header::size + size);
      if (!is_added) return;
      chunk_header header;
      header.bytes = static_cast<std::uint32_t>(size);
      header.number = first_chunk;
      header.packing = begins_generation;
      header.checksum = crc32c::extend(0, bytes, size);
      const auto encoded = header.encode();
      std::memcpy(beginning.data() + filled, encoded.data(), encoded.size());
      std::memcpy(beginning.data() + filled + encoded.size(), bytes, size);
    });
    return is_added;
  }
};

/// What all generations begin with, beside names and a key frame: all that is no event. Kept as it comes.
class generation_definitions {
 public:
  void info(const capture_info& info) { info_.info(info); }
  void space(const space_definition& space) noexcept {
    spaces_[space.id] = space;
    is_space_[space.id] = true;
  }
  void facts(const fact_table& table) { facts_.put(fitted(table)); }

  /// The definitions of a generation's beginning, with names up to `last_name`. It takes nothing from `operator new`, so that a
  /// drain may ask. False if the system has no memory.
  template <class Names>
  [[nodiscard]] bool write(trace_generation& target, const Names& names, label last_name) const noexcept {
    trace definitions;
    for (label id = 1; id <= last_name; ++id) definitions.name(id, names.text(id));
    for (std::size_t id = 0; id < any_space; ++id) {
      if (is_space_[id]) definitions.space(spaces_[id]);
    }
    return definitions.left_out() == 0 && target.add(info_) && target.add(definitions) && target.add(facts_.encoded());
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return info_.bytes() + facts_.encoded().bytes(); }

 private:
  trace info_;
  kept_facts facts_;
  space_definition spaces_[any_space] = {};
  bool is_space_[any_space] = {};
};

}  // namespace memprof::detail

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <unistd.h>

namespace memprof::detail {

/// Where the chunks of a trace file go. Without a limit one follows the other. With one the file keeps two generations: a new one
/// takes the place of the older, if it fits there, and otherwise comes behind the newer. Before anything of the older generation
/// is overwritten, the header says that it is gone.
///
/// Used by the thread that writes the file, and when that has ended by whoever ends the capture; `begin_generation` and what is
/// called before the thread runs are the exceptions.
class trace_file_writer {
 public:
  trace_file_writer() = default;
  trace_file_writer(const trace_file_writer&) = delete;
  trace_file_writer& operator=(const trace_file_writer&) = delete;
  ~trace_file_writer() {
    if (trace_generation* const never_begun = next_.load(std::memory_order_acquire)) never_begun->destroy();
  }

  /// Begins a file whose chunks start at that offset. 0, or why it cannot be written.
  [[nodiscard]] int start(const own_file& file, std::uint64_t first_chunk, bool has_live_area) noexcept {
    file_ = file;
    base_ = end_ = newest_.begin = first_chunk;
    has_live_area_ = has_live_area;
    return write_header(header(trace_file_state::live));
  }

  /// Whether the last generation has begun in the file.
  [[nodiscard]] bool takes_generation() const noexcept { return next_.load(std::memory_order_acquire) == nullptr; }
  /// Before the first of its chunks is handed over. Under the registry's lock.
  void begin_generation(trace_generation* next) noexcept { next_.store(next, std::memory_order_release); }

  /// Writes all chunks that were handed over. 0, or why that failed: then nothing more can be written.
  [[nodiscard]] int write_chunks(chunk_buffers& buffers) noexcept {
    while (written_ != buffers.closed()) {
      if (!file_.is_there()) return EBADF;
      int error = 0;
      // Acquire pairs with the release in `begin_generation`, which came before that in `close`.
      trace_generation* const next = next_.load(std::memory_order_acquire);
      if (next != nullptr && next->first_chunk == written_) error = put_generation(*next);
      if (error == 0) error = write_chunk(buffers, buffers.chunk(written_));
      if (error != 0) {
        // So that no part of a chunk is at its end.
        (void)::ftruncate(file_.number, static_cast<::off_t>(has_older() && older_end_ > end_ ? older_end_ : end_));
        return error;
      }
    }
    return 0;
  }

  /// Reserves blocks for more rings, if there are too few.
  void reserve_places(ring_places& places) const noexcept {
    const std::uint32_t ready = places.reserved.load(std::memory_order_relaxed);
    if (!places.is_short.exchange(false, std::memory_order_relaxed) || ready == places.count || !file_.is_there()) return;
    const std::uint32_t wanted = places.spare < places.count - ready ? ready + places.spare : places.count;
    const std::size_t offset = static_cast<std::size_t>(places.first - places.mapping) + ready * places.place_bytes;
    // Without room for them further rings have no place: nothing else is lost by that.
    if (reserve_blocks(file_.number, offset, (wanted - ready) * places.place_bytes) == 0)
      places.reserved.store(wanted, std::memory_order_release);
  }

  /// Makes the file what `write_trace` would have written. 0, or why not.
  [[nodiscard]] int complete(bool keeps_area) noexcept {
    if (!file_.is_there()) return EBADF;
    // From here on the file is complete; what follows only makes it shorter, and each step leaves it so.
    if (const int error = write_header(header(trace_file_state::complete)); error != 0) return error;
    if (has_older() && !join_generations()) return 0;
    if (has_live_area_ && keeps_area) return 0;
    (void)::ftruncate(file_.number, static_cast<::off_t>(end_));
    const std::uint64_t begin = oldest().begin;
    const std::uint64_t bytes = end_ - begin;
    if (begin == trace_file_header::size) return 0;
    if (trace_file_header::size + bytes > begin) {
      drop_blocks(file_.number, trace_file_header::size, begin - trace_file_header::size);
      return 0;
    }
    if (!copy(begin, trace_file_header::size, bytes)) return 0;
    newest_.begin = trace_file_header::size;
    end_ = trace_file_header::size + bytes;
    if (const int error = write_header(header(trace_file_state::complete)); error != 0) return error;
    (void)::ftruncate(file_.number, static_cast<::off_t>(end_));
    return 0;
  }

  /// Says in the file that writing it failed.
  void stop(int error) noexcept {
    if (!file_.is_there()) return;
    trace_file_header stopped = header(trace_file_state::stopped);
    stopped.error = static_cast<std::uint32_t>(error);
    (void)write_header(stopped);
  }

 private:
  struct generation {
    std::uint64_t begin = 0;        ///< offset in the file
    std::uint32_t first_chunk = 0;  ///< number of its first chunk of events
  };

  [[nodiscard]] bool has_older() const noexcept { return older_end_ != 0; }
  [[nodiscard]] const generation& oldest() const noexcept { return has_older() ? older_ : newest_; }

  [[nodiscard]] trace_file_header header(trace_file_state state) const noexcept {
    trace_file_header made;
    made.state = state;
    made.first_chunk = oldest().begin;
    made.first_number = oldest().first_chunk;
    made.more_chunks = has_older() ? newest_.begin : 0;
    made.live_area = has_live_area_ ? live_layout::area : 0;
    made.chunks = state == trace_file_state::live ? trace_file_header::unknown : written_ - made.first_number;
    made.bytes = state == trace_file_state::live ? trace_file_header::unknown : end_;
    if (state == trace_file_state::complete) made.live_area = 0;
    return made;
  }
  [[nodiscard]] int write_header(const trace_file_header& made) const noexcept {
    const auto encoded = made.encode();
    return write_at(file_.number, encoded.data(), encoded.size(), 0);
  }

  [[nodiscard]] int write_chunk(chunk_buffers& buffers, const full_chunk& full) noexcept {
    chunk_header header;
    header.bytes = full.bytes;
    header.number = written_;
    header.checksum = full.checksum;
    const auto encoded = header.encode();
    const std::uint64_t size = encoded.size() + full.bytes;
    if (has_older() && end_ < older_end_ && end_ + size > older_.begin) {
      if (const int error = drop_older(); error != 0) return error;  // the generation became longer than was expected
    }
    int error = write_at(file_.number, encoded.data(), encoded.size(), end_);
    if (error == 0) error = write_at(file_.number, buffers.bytes_of(full), full.bytes, end_ + encoded.size());
    if (error != 0) return error;
    end_ += size;
    ++written_;
    buffers.give_back(full);
    return 0;
  }

  [[nodiscard]] int drop_older() noexcept {
    older_end_ = 0;
    return write_header(header(trace_file_state::live));
  }

  /// Begins a generation, which makes the newest the older one.
  [[nodiscard]] int put_generation(trace_generation& next) noexcept {
    if (has_older()) {
      if (const int error = drop_older(); error != 0) return error;
    }
    const std::uint64_t needed = next.beginning.size() + next.expected_bytes;
    const std::uint64_t begin = newest_.begin - base_ >= needed ? base_ : end_;
    if (const int error = write_at(file_.number, next.beginning.data(), next.beginning.size(), begin); error != 0) return error;
    older_ = newest_;
    older_end_ = end_;
    newest_ = {begin, next.first_chunk};
    end_ = begin + next.beginning.size();
    next_.store(nullptr, std::memory_order_release);
    next.destroy();
    return write_header(header(trace_file_state::live));
  }

  /// Puts the newest generation behind the older one, if it is not there. False if that failed: the file is complete all the
  /// same.
  [[nodiscard]] bool join_generations() noexcept {
    if (newest_.begin != older_end_) {
      const std::uint64_t bytes = end_ - newest_.begin;
      if (!copy(newest_.begin, older_end_, bytes)) return false;
      end_ = older_end_ + bytes;
    }
    newest_ = older_;
    older_end_ = 0;
    return write_header(header(trace_file_state::complete)) == 0;
  }

  /// Copies bytes of the file to another place in it. Forwards, so that they may go to where they overlap if that is before.
  [[nodiscard]] bool copy(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) const noexcept {
    constexpr std::size_t at_once = std::size_t{64} << 10;
    void* const pages = map_pages(at_once);
    if (pages == nullptr) return false;
    bool is_copied = true;
    for (std::uint64_t done = 0; is_copied && done < bytes;) {
      const std::size_t wanted = bytes - done < at_once ? std::size_t{bytes - done} : at_once;
      const ::ssize_t got = ::pread(file_.number, pages, wanted, static_cast<::off_t>(from + done));
      if (got < 0 && errno == EINTR) continue;
      is_copied = got > 0 && write_at(file_.number, pages, static_cast<std::size_t>(got), to + done) == 0;
      if (is_copied) done += static_cast<std::uint64_t>(got);
    }
    unmap_pages(pages, at_once);
    return is_copied;
  }

  own_file file_;
  bool has_live_area_ = false;
  std::uint64_t base_ = 0;     ///< where chunks may begin
  std::uint64_t end_ = 0;      ///< of the last chunk that was written
  std::uint32_t written_ = 0;  ///< chunks of events
  generation newest_;
  generation older_;
  std::uint64_t older_end_ = 0;  ///< 0: there is no older one
  std::atomic<trace_generation*> next_{nullptr};
};

}  // namespace memprof::detail

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace memprof::detail {

/// The trace of a capture on its way into a file.
///
/// Who drains the rings encodes their events into one of a few buffers. A thread of its own appends full buffers to the file.
/// When all are full the trace gets a gap, or waits; when writing fails it ends. Neither throws, and the capture goes on.
///
/// Used under the registry's lock, but for what waits for the file's system: `open`, `start`, `give_up`, `wait_for_disk`,
/// `finish`, `close_file`.
class live_trace {
 public:
  live_trace() = default;
  live_trace(const live_trace&) = delete;
  live_trace& operator=(const live_trace&) = delete;

  /// Makes the file of a name like `capture_options::trace_file`. If there can be none, a line on stderr and `problem` say why.
  [[nodiscard, gnu::noinline]] bool open(const std::string& pattern, const capture_options& options,
                                         const process_info& process) {
    waits_ = options.on_slow_disk == slow_disk::wait;
    const std::string path = expand_trace_path(pattern, process);
    message_.set_path(path);
    const opened_trace_file opened = open_trace_file(path);
    file_ = own_file::of(opened.file);
    is_new_ = opened.is_new;
    if (opened.problem.empty()) return true;
    refuse(opened.problem);
    return false;
  }

  /// Begins the trace of capture `capture` in the file that was made; false as above, and then comes `give_up`.
  [[nodiscard, gnu::noinline]] bool start(const capture_options& options, std::uint32_t capture) {
    const std::string reason = start_writing(options, capture);
    if (reason.empty()) return true;
    refuse(reason);
    return false;
  }
  void give_up() noexcept {
    state_ = state::none;
    release();
    if (is_new_) (void)::unlink(message_.path());
    close_file();
  }

  /// The places for rings in its pages; null if it has none.
  [[nodiscard]] ring_places* places() noexcept { return is_mapped_ ? &area_.places() : nullptr; }
  /// Whether it asks for what happens: also if it can no longer write it, to count it.
  [[nodiscard]] bool takes_events() const noexcept { return state_ != state::none && state_ != state::closed; }

  // --- what comes in ------------------------------------------------------------------------------------------------

  /// Out of line, so that folding costs no more where there is no file.
  [[gnu::noinline]] void events(const event* first, const event* last, std::uint32_t ring) noexcept {
    while (state_ == state::recording) {
      encoded_bytes out = buffers_.room();
      first = encoder_->encode(first, last, ring, out);
      buffers_.keep(out);
      if (first == last) return;
      next_chunk();
    }
    missing_ += static_cast<std::uint64_t>(last - first);
  }
  void info(const capture_info& info) {
    define(control::header, encode_info(info));
    if (definitions_ != nullptr) definitions_->info(info);
  }
  void name(label id, std::string_view text) noexcept {
    if (define(control::name, small_payload{}.number(id).view(), text)) last_name_ = id;
  }
  void space(const space_definition& space) noexcept {
    if (define(control::space, encode_space(space).view())) spaces_ = std::uint32_t{space.id} + 1;
    if (definitions_ != nullptr) definitions_->space(space);
  }
  void facts(const fact_table& table) {
    if (!takes_events()) return;
    for_each_part(fitted(table), [&](std::string_view payload) {
      if (!define(control::facts, payload)) lacks_facts_ = true;
    });
    if (definitions_ != nullptr) definitions_->facts(table);
  }
  /// After a gap: so many events of the ring come before what follows, whether they are in the trace or not.
  void position(std::uint32_t ring, std::uint64_t events) noexcept {
    define(control::position, small_payload{}.number(ring).number(events).view());
  }

  /// After a gap: what is known where it ends. Left out if it would fill more than half of the buffers that are free.
  void key_frame(const page_array<unsigned char>& frame) noexcept {
    if (frame.size() > buffers_.free() * std::size_t{live_layout::buffer_bytes} / 2) return;
    for_each_key_frame_part(frame,
                            [this](std::string_view head, std::string_view bytes) { define(control::key_frame, head, bytes); });
  }

  /// Makes what came in so far a part of the file: whatever happens to the process, it will be read.
  [[gnu::noinline]] void commit() noexcept {
    if (state_ == state::recording) buffers_.commit();
  }

  // --- gaps ---------------------------------------------------------------------------------------------------------

  /// Called before each drain: notices what became of the disk. True if a gap has ended just now: then come the names after
  /// `last_name`, the spaces from `spaces` on, the position of each ring and a key frame.
  [[nodiscard]] bool resume() noexcept {
    if (!takes_events()) return false;
    if (buffers_.error() != 0) state_ = state::stopped;
    if (state_ != state::gapped) return false;
    // Not for a single free buffer, which would be full at once: few long gaps are better than many short ones.
    return buffers_.free() >= live_layout::buffers / 2 && end_gap();
  }
  /// The same, but waits for the disk. For the capture's end, whose last events must not be missing.
  [[nodiscard]] bool wait_and_resume() noexcept {
    if (state_ != state::gapped || !buffers_.wait_for_free(live_layout::buffers / 2)) return false;
    return end_gap();
  }
  [[nodiscard]] bool is_gapped() const noexcept { return state_ == state::gapped; }
  /// Waits until a gap can end, or writing has failed. Without the registry's lock.
  void wait_for_disk() const noexcept { (void)buffers_.wait_for_free(live_layout::buffers / 2); }
  [[nodiscard]] label last_name() const noexcept { return last_name_; }
  [[nodiscard]] std::uint32_t spaces() const noexcept { return spaces_; }
  /// Whether facts came while there was a gap, once: they have to come again.
  [[nodiscard]] bool take_lacks_facts() noexcept { return std::exchange(lacks_facts_, false); }

  /// Where nothing is mapped, lets the open chunk be written although it is not full. Called once a second.
  void flush_unmapped() noexcept {
    if (!is_mapped_ && state_ == state::recording && buffers_.used() != 0) next_chunk();
  }

  // --- the limit ----------------------------------------------------------------------------------------------------

  /// Whether the newest generation has become as long as it may. Called after each drain.
  [[nodiscard]] bool wants_generation() const noexcept {
    return definitions_ != nullptr && state_ == state::recording && closed_bytes_ + buffers_.used() >= generation_bytes_ &&
           writer_.takes_generation();
  }

  /// Begins a generation with what is known now: a `gap` of all events so far, where each ring is (`write_positions` is given a
  /// trace), and a key frame. Where that fails, the newest generation becomes longer. Takes nothing from `operator new`.
  template <class Names, class Positions>
  [[gnu::noinline]] void begin_generation(const Names& names, std::uint64_t events, const page_array<unsigned char>& frame,
                                          Positions&& write_positions) noexcept {
    if (buffers_.used() != 0) next_chunk();
    trace_generation* const next = state_ == state::recording ? trace_generation::make() : nullptr;
    if (next == nullptr) return;
    next->first_chunk = buffers_.number();
    trace moment;
    const event gap{0, 0, events, 0, event_kind::gap, any_space, 0};
    moment.events(&gap, &gap + 1, no_ring_id);
    write_positions(moment);
    moment.key_frame(frame);
    if (moment.left_out() != 0 || !definitions_->write(*next, names, last_name_) || !next->add(moment)) return next->destroy();
    // At least as long as its beginning, so that making these stays cheap.
    generation_bytes_ = std::max<std::uint64_t>(limit_ / 2, next->beginning.size());
    // What a drain brings comes on top.
    next->expected_bytes = generation_bytes_ + generation_bytes_ / 4 + live_layout::buffer_bytes;
    closed_bytes_ = 0;
    writer_.begin_generation(next);
  }

  // --- the end ------------------------------------------------------------------------------------------------------

  /// Takes nothing more, and parts the rings from the file. What is left is to `finish`.
  [[gnu::noinline]] void close(event_ring* rings) noexcept {
    if (state_ == state::recording && buffers_.used() != 0) buffers_.close();
    if (has_thread_) state_ = state::closed;
    if (is_mapped_) keeps_area_ = !area_.places().detach_all(rings);
    buffers_.end();
  }

  /// Waits until the disk has everything, and completes the file. False if that was done before, or there is no file; otherwise
  /// `settle` comes next.
  [[nodiscard]] bool finish() noexcept {
    if (!has_thread_) return false;
    (void)::pthread_join(thread_, nullptr);
    has_thread_ = false;
    int error = buffers_.error();
    if (error == 0) {
      error = writer_.complete(keeps_area_);
      if (error != 0) fail(error);
    }
    if (error != 0) writer_.stop(error);
    struct stat status {};
    if (file_.is_there() && ::fstat(file_.number, &status) == 0 && status.st_nlink == 0) {
      is_deleted_ = true;
      message_.say("memprof: trace file '%s': %s\n", deleted);
    }
    return true;
  }

  /// Lets go of everything but the file itself, and what the profile asks for.
  void settle() noexcept {
    if (is_deleted_) std::snprintf(problem_, sizeof problem_, "%s", deleted);
    release();
  }
  void close_file() noexcept { file_.close(); }

  // --- what it says of itself ---------------------------------------------------------------------------------------

  [[nodiscard]] const own_file& file() const noexcept { return file_; }
  [[nodiscard]] std::string_view path() const noexcept { return message_.path(); }
  /// Why it is incomplete, or may become so; empty: nothing is known against it.
  [[nodiscard]] std::string problem() const {
    if (problem_[0] != '\0') return problem_;
    if (const int error = buffers_.error()) return std::string{"writing it failed: "} + text_of(error);
    if (missing_ != 0) return "its disk was too slow";
    if (!is_unmapped_) return {};
    return "it cannot be mapped on its file system: if the process is killed, the last second will be missing";
  }
  [[nodiscard]] std::uint64_t missing_events() const noexcept { return missing_; }
  /// Bytes of memory that are not the file's.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return encoder_ == nullptr ? 0
                               : sizeof(trace_encoder) + area_.own_bytes() +
                                     (definitions_ == nullptr ? 0 : sizeof(generation_definitions) + definitions_->bytes());
  }

 private:
  enum class state : std::uint8_t {
    none,       ///< there is no file
    recording,  ///< a buffer is open
    gapped,     ///< all are full
    stopped,    ///< writing failed
    closed,
  };
  static constexpr const char* deleted = "it was deleted while it was written";

  // --- making the file ----------------------------------------------------------------------------------------------

  [[nodiscard]] static const char* text_of(int error) noexcept { return std::strerror(error); }

  void refuse(const std::string& reason) noexcept {
    std::snprintf(problem_, sizeof problem_, "%s", reason.c_str());
    message_.say("memprof: no trace file '%s': %s; the capture goes on without one\n", problem_);
  }

  /// Empty, or why there can be no trace in the file.
  [[nodiscard]] std::string start_writing(const capture_options& options, std::uint32_t capture) {
    if (const int error = area_.make(file_.number, options.ring_capacity, capture, buffers_.wake_word()); error != 0) {
      return text_of(error);
    }
    is_mapped_ = area_.is_mapped();
    is_unmapped_ = !is_mapped_;
    void* const encoder_pages = map_pages(sizeof(trace_encoder));
    if (encoder_pages != nullptr) encoder_ = new (encoder_pages) trace_encoder;
    if (options.trace_limit != 0) {
      void* const definition_pages = map_pages(sizeof(generation_definitions));
      if (definition_pages != nullptr) definitions_ = new (definition_pages) generation_definitions;
      limit_ = options.trace_limit;
      generation_bytes_ = limit_ / 2;
    }
    if (encoder_ == nullptr || (limit_ != 0 && definitions_ == nullptr)) {
      return "the system has no memory for it";
    }
    buffers_.use(area_.buffers(), area_.buffer_states());
    if (const int error = writer_.start(file_, area_.end(), is_mapped_); error != 0) return text_of(error);
    state_ = state::recording;
    open_chunk();
    if (!start_thread()) return "the system lets it have no thread";
    return {};
  }

  [[nodiscard]] bool start_thread() noexcept {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    // It takes no signal: not the program's, and not SIGXFSZ, which a file beyond its limit raises.
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    has_thread_ = ::pthread_create(&thread_, nullptr, run, this) == 0;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return has_thread_;
  }

  // --- the open chunk -----------------------------------------------------------------------------------------------

  bool define(control kind, std::string_view payload, std::string_view more = {}) noexcept {
    const std::size_t size = trace_encoder::control_bytes(payload.size() + more.size());
    if (state_ != state::recording || size > live_layout::buffer_bytes) return false;
    if (buffers_.room().room() < size) next_chunk();
    if (state_ != state::recording) return false;
    encoded_bytes out = buffers_.room();
    trace_encoder::put_control(kind, payload, more, out);
    buffers_.keep(out);
    return true;
  }

  [[gnu::noinline]] void next_chunk() noexcept {
    closed_bytes_ += buffers_.used();
    buffers_.close();
    open_chunk();
  }

  /// Opens a chunk in a free buffer; without one it waits, or a gap begins.
  void open_chunk() noexcept {
    if (buffers_.error() != 0) {
      state_ = state::stopped;
      return;
    }
    if (buffers_.open() || (waits_ && buffers_.wait_for_free(1) && buffers_.open())) return encoder_->restart();
    state_ = buffers_.error() != 0 ? state::stopped : state::gapped;
    if (state_ == state::gapped && missing_ == 0) {
      message_.say("memprof: trace file '%s': %s; the capture's own numbers stay exact\n",
                   "its disk is too slow, so events are left out");
    }
    missing_at_gap_ = missing_;
  }

  [[nodiscard]] bool end_gap() noexcept {
    state_ = state::recording;
    open_chunk();
    if (state_ != state::recording) return false;
    const std::uint64_t left_out = missing_ - missing_at_gap_;
    const event gap{0, 0, left_out == 0 ? 1 : left_out, 0, event_kind::gap, any_space, 0};
    events(&gap, &gap + 1, no_ring_id);
    return true;
  }

  // --- the thread ---------------------------------------------------------------------------------------------------

  static void* run(void* self) {
    const activity_guard hidden{activity::internal};
#if defined(__linux__)
    ::prctl(PR_SET_NAME, "memprof trace", 0, 0, 0);
#endif
    static_cast<live_trace*>(self)->write_until_end();
    return nullptr;
  }

  void write_until_end() noexcept {
    for (;;) {
      const std::uint32_t seen = buffers_.wake_word().load(std::memory_order_acquire);
      if (is_mapped_) writer_.reserve_places(area_.places());
      const bool is_last = buffers_.has_ended();
      if (const int error = writer_.write_chunks(buffers_); error != 0) return fail(error);
      if (is_last) return;
      buffers_.wake_word().wait(seen, std::memory_order_acquire);
    }
  }

  void fail(int error) noexcept {
    if (buffers_.fail(error)) {
      message_.say("memprof: trace file '%s' ends here: %s; the capture goes on without it\n", text_of(error));
    }
  }

  /// Gives the pages back.
  void release() noexcept {
    area_.release();
    unmap_pages(encoder_, sizeof(trace_encoder));
    if (definitions_ != nullptr) {
      definitions_->~generation_definitions();
      unmap_pages(definitions_, sizeof(generation_definitions));
    }
    is_mapped_ = false;
    encoder_ = nullptr;
    definitions_ = nullptr;
  }

  state state_ = state::none;
  bool waits_ = false;
  bool is_new_ = false;  ///< its name was nobody's before
  bool is_mapped_ = false;
  bool is_unmapped_ = false;  ///< nor was it ever
  bool is_deleted_ = false;
  bool keeps_area_ = false;  ///< a ring could not be parted from the file
  bool has_thread_ = false;
  own_file file_;
  trace_encoder* encoder_ = nullptr;
  live_area area_;
  chunk_buffers buffers_;
  trace_file_writer writer_;
  ::pthread_t thread_{};

  label last_name_ = 0;
  std::uint32_t spaces_ = 0;
  bool lacks_facts_ = false;
  std::uint64_t missing_ = 0;  ///< events
  std::uint64_t missing_at_gap_ = 0;

  generation_definitions* definitions_ = nullptr;  ///< null: there is no limit
  std::uint64_t limit_ = 0;
  std::uint64_t generation_bytes_ = 0;  ///< when the newest has so many, the next begins
  std::uint64_t closed_bytes_ = 0;      ///< of its chunks, but for the open one

  trace_file_message message_;
  char problem_[512] = {};
};

}  // namespace memprof::detail

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace memprof::detail {

/// The facts of the capture once more: leak checkers do not look for pointers to them in its pages.
inline constinit const void* reachable_facts = nullptr;

/// One capture: the trace as it comes, folded, and kept if that is asked for. Used under the registry's lock.
struct capture_state {
  capture_state(const capture_options& options, registry& shared)
      : begin_drains(shared.drains), begin_ns(monotonic_ns()), kept(options.trace), fold(*shared.labels) {}

  std::uint64_t begin_drains;
  std::int64_t begin_ns;  ///< of the monotonic clock
  std::uint64_t begin_stamp = 0;
  std::int64_t last_reading_ns = 0;  ///< when the trace last got a clock reading, after `begin_ns`
  std::uint64_t end_drains = 0;
  std::uint64_t drain_stamps = 0;  ///< clock ticks spent in drains
  std::uint64_t profiler_bytes_at_million = 0;
  std::uint64_t dropped_events = 0;  ///< these two as the trace says
  std::uint64_t reentrant_events = 0;
  bool lacks_modules = false;  ///< libraries record elsewhere
  bool has_ended = false;
  double record_ns = 0;
  trace* kept;  ///< null: it is not kept
  live_trace file;
  std::uint64_t reported_missing_events = 0;  ///< as the facts say of the file; its problem too, by hash
  std::uint32_t reported_problem = 0;
  kept_backends backends;
  trace_fold fold;

  // --- what comes in ------------------------------------------------------------------------------------------------

  /// The drain's consumer.
  void apply(const event* first, const event* last, std::uint32_t ring_id) noexcept {
    fold.events(first, last, ring_id);
    if (kept != nullptr) kept->events(first, last, ring_id);
    if (file.takes_events()) file.events(first, last, ring_id);
  }
  void info(const capture_info& info) {
    fold.info(info);
    if (kept != nullptr) kept->info(info);
    file.info(info);
  }
  void name(label id, std::string_view text) noexcept {
    if (kept != nullptr) kept->name(id, text);
    file.name(id, text);
    file.commit();
  }
  void space(const space_definition& space) noexcept {
    fold.space(space);
    if (kept != nullptr) kept->space(space);
    file.space(space);
    file.commit();
  }
  void facts(const fact_table& table) {
    fold.facts(fitted(table), true);
    reachable_facts = fold.facts().data();
    if (kept != nullptr) kept->facts(table);
    file.facts(table);
    file.commit();
  }
  void put(const event& own) noexcept {
    apply(&own, &own + 1, no_ring_id);
    file.commit();
  }
};

[[nodiscard]] inline capture_state* state_of(registry& shared) noexcept { return static_cast<capture_state*>(shared.capture); }

/// Adds a reading of both clocks to the trace. Under the lock, drained.
inline void put_clock_reading(registry& shared, capture_state& state) noexcept {
  const std::uint64_t stamp = shared.stamps.next();
  state.last_reading_ns = monotonic_ns() - state.begin_ns;
  state.put({stamp, static_cast<std::uint64_t>(state.last_reading_ns), static_cast<std::uint64_t>(unix_ns()), 0,
             event_kind::clock_reading, any_space, 0});
}

/// Adds what was lost since the trace last said so. Under the lock, drained.
inline void put_lost_events(registry& shared, capture_state& state) noexcept {
  const std::uint64_t dropped = shared.dropped_events.load(std::memory_order_relaxed);
  const std::uint64_t reentrant = shared.reentrant_events.load(std::memory_order_relaxed);
  if (dropped == state.dropped_events && reentrant == state.reentrant_events && !state.lacks_modules) return;
  state.dropped_events = dropped;
  state.reentrant_events = reentrant;
  const std::uint16_t are_more_missing = state.lacks_modules ? 1 : 0;
  state.put({shared.stamps.next(), dropped, reentrant, 0, event_kind::lost_events, any_space, are_more_missing});
}

/// Adds which libraries record elsewhere. Under the lock.
inline void put_unrecorded_modules(capture_state& state, const module_paths& paths) {
  if (paths.size() == 0 && !state.lacks_modules) return;
  state.lacks_modules = paths.size() != 0;
  std::vector<unrecorded_module> modules;
  for (std::size_t begin = 0; begin < paths.size(); begin += modules.back().path.size() + 1) {
    modules.push_back({paths.data() + begin});
  }
  state.facts(to_table(modules));
}

/// Adds what the trace file lacks, if that has changed. Under the lock.
[[gnu::cold, gnu::noinline]] inline void put_incomplete_file(capture_state& state) {
  const std::uint64_t missing = state.file.missing_events();
  const std::string problem = state.file.problem();
  const std::uint32_t hash = problem.empty() ? 0 : label_table::hash_of(problem);
  if (state.reported_missing_events == missing && state.reported_problem == hash) return;
  state.reported_missing_events = missing;
  state.reported_problem = hash;
  state.facts(to_table<incomplete_trace_file>({{std::string{state.file.path()}, problem, static_cast<std::int64_t>(missing)}}));
}

/// Brings the trace file on after a gap: what it needs to be read from here. Under the lock, before a drain.
[[gnu::cold, gnu::noinline]] inline void continue_file(registry& shared, capture_state& state) noexcept {
  live_trace& file = state.file;
  for (label id = file.last_name() + 1; id <= shared.labels->size(); ++id) file.name(id, shared.labels->text(id));
  for (std::uint32_t id = file.spaces(); id < shared.space_count; ++id)
    file.space({static_cast<std::uint8_t>(id), shared.space_names[id], 0, false, shared.space_memories[id]});
  for (const event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    if (ring->drained != 0) file.position(ring->id, ring->drained);
  }
  page_array<unsigned char> frame;
  if (state.fold.write_key_frame(frame)) file.key_frame(frame);  // else the gap says that events are missing
  file.commit();
}

/// Begins a generation of a trace file with a limit. Under the lock, drained.
[[gnu::cold, gnu::noinline]] inline void begin_generation(registry& shared, capture_state& state) noexcept {
  page_array<unsigned char> frame;
  if (!state.fold.write_key_frame(frame)) return;
  state.file.begin_generation(*shared.labels, state.fold.events().events(), frame, [&](trace& beginning) {
    for (const event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
      if (ring->drained != 0) beginning.position(ring->id, ring->drained);
    }
  });
}

inline constexpr std::uint64_t million = 1'000'000;

/// Bytes that the profiler holds: rings, names and the capture.
[[nodiscard]] inline std::uint64_t profiler_bytes(const registry& shared, const capture_state& state) noexcept {
  const phantom_addresses* const phantom = shared.phantom.load(std::memory_order_relaxed);
  const hidden_blocks* const hidden = shared.hidden.load(std::memory_order_relaxed);
  return sizeof(registry) + (phantom == nullptr ? 0 : sizeof(phantom_addresses) + phantom->bytes()) +
         (hidden == nullptr ? 0 : sizeof(hidden_blocks) + hidden->bytes()) + shared.ring_bytes +
         shared.drain_heap_capacity * sizeof(event_ring*) + (shared.labels == nullptr ? 0 : shared.labels->bytes()) +
         (sizeof(capture_state) - sizeof(trace_fold)) + state.fold.bytes() + state.file.bytes();
}

/// Empties the rings into the active capture: what `registry::drain` points to.
inline void drain_into_capture(registry& shared) noexcept {
  constexpr std::int64_t between_readings_ns = 1'000'000'000;
  capture_state& state = *state_of(shared);
  const std::uint64_t before = shared.stamps.next();
  if (state.file.resume()) continue_file(shared, state);
  drain_rings<no_pauses>(shared, state);
  state.file.commit();
  if (state.file.wants_generation()) [[unlikely]]
    begin_generation(shared, state);
  state.drain_stamps += shared.stamps.next() - before;
  if (monotonic_ns() - state.begin_ns - state.last_reading_ns >= between_readings_ns) {
    put_clock_reading(shared, state);
    state.file.flush_unmapped();
  }
  if (state.profiler_bytes_at_million == 0 && state.fold.events().events() >= million) {
    state.profiler_bytes_at_million = profiler_bytes(shared, state);
  }
}

inline void put_event_into_capture(registry& shared, const event& own) noexcept { state_of(shared)->put(own); }
inline void define_name_in_capture(registry& shared, label id) noexcept { state_of(shared)->name(id, shared.labels->text(id)); }
inline void define_space_in_capture(registry& shared, std::uint8_t id) noexcept {
  state_of(shared)->space({id, shared.space_names[id], 0, false, shared.space_memories[id]});
}
inline void add_facts_to_capture(registry& shared, const fact_table& table) { state_of(shared)->facts(table); }

/// Lets the registry speak to the capture, or to nobody.
inline void connect_capture(registry& shared) noexcept {
  shared.drain = drain_into_capture;
  shared.put_event = put_event_into_capture;
  shared.define_name = define_name_in_capture;
  shared.define_space = define_space_in_capture;
  shared.add_facts = add_facts_to_capture;
}
inline void disconnect_capture(registry& shared) noexcept {
  shared.drain = nullptr;
  shared.put_event = nullptr;
  shared.define_name = nullptr;
  shared.define_space = nullptr;
  shared.add_facts = nullptr;
}

/// Begins the trace: what is known before the first event. Under the lock.
inline void begin_trace(registry& shared, capture_state& state, const capture_options& options, run_mode mode,
                        const process_info& process) {
  capture_info info;
  info.library_version = version_string;
  info.mode = mode;
  info.device = options.device.name.view();
  info.begin_unix_ns = unix_ns();
  info.begin_stamp = shared.stamps.next();
  info.timeline_points = options.timeline_points;
  info.largest_blocks = options.largest_blocks;
  info.owners_per_segment = options.owners_per_segment;
  info.kept_segments = options.kept_segments;
  info.segment_names = options.segment_names;
  info.operations = options.operations;
  info.process = process;
  state.begin_stamp = info.begin_stamp;
  state.info(info);
  for (label id = 1; id <= shared.labels->size(); ++id) state.name(id, shared.labels->text(id));
  for (std::uint32_t id = 0; id < registry::max_spaces; ++id) {
    if (shared.space_names[id] == 0) continue;
    space_definition space{static_cast<std::uint8_t>(id), shared.space_names[id], 0, false, shared.space_memories[id]};
    if (const device_space* const limited = options.device.find_space(shared.labels->text(space.name))) {
      space.capacity = limited->capacity;
      space.is_per_core = limited->is_per_core;
      space.memory = 0;  // that of the device
    }
    state.space(space);
  }
  state.put({info.begin_stamp, 0, static_cast<std::uint64_t>(info.begin_unix_ns), 0, event_kind::clock_reading, any_space, 0});
}

/// Ends the trace with a last segment. Under the lock, drained.
inline void end_trace(registry& shared, capture_state& state, std::string_view last_segment) noexcept {
  if (state.file.wait_and_resume()) continue_file(shared, state);
  if (state.file.take_lacks_facts()) {
    for (const fact_table& table : state.fold.facts()) state.file.facts(table);
  }
  put_incomplete_file(state);
  const label name = abi_1::intern(shared, last_segment);
  put_lost_events(shared, state);
  put_clock_reading(shared, state);
  state.put({0, 0, 0, name, event_kind::segment_end, any_space, 0});
  state.put({0, 0, 0, 0, event_kind::capture_end, any_space, 0});
  state.end_drains = shared.drains;
  state.has_ended = true;
}

/// Makes a profile of what the capture knows now. Under the lock, drained.
template <class State>
[[nodiscard]] profile make_profile(registry& shared, State& state) {
  if (!state.has_ended) {
    put_lost_events(shared, state);
    put_clock_reading(shared, state);
    put_incomplete_file(state);
  }
  profile result = build_profile_of(state.fold);
  const std::uint64_t events = state.fold.events().events();
  result.cost.events = static_cast<std::int64_t>(events);
  result.cost.drains = static_cast<std::int64_t>((state.has_ended ? state.end_drains : shared.drains) - state.begin_drains);
  result.cost.memory_bytes = static_cast<std::int64_t>(profiler_bytes(shared, state));
  result.cost.memory_bytes_at_million_events = static_cast<std::int64_t>(state.profiler_bytes_at_million);
  result.cost.record_ns_per_event = state.record_ns;
  if (events != 0) {
    const clock_readings& clock = state.fold.events().clock();
    const auto drain_ns = static_cast<double>(clock.to_ns(state.begin_stamp + state.drain_stamps));
    result.cost.drain_ns_per_event = drain_ns / static_cast<double>(events);
  }
  return result;
}

/// What writing one event costs on this machine, in nanoseconds: the least of a few short rounds in a ring of its own.
[[nodiscard]] inline double measure_record_cost(registry& shared) noexcept {
  constexpr std::uint32_t events_per_round = 256;
  ring_slots* const slots = make_slots(1, events_per_round);
  if (slots == nullptr) return 0;
  event_ring ring;
  ring.slots = slots;
  ring.limit.store(slots->first + events_per_round, std::memory_order_relaxed);
  ring.order_word = 1;
  thread_slot context;
  context.ring = &ring;
  registry scratch;
  scratch.order_word.store(1, std::memory_order_relaxed);
  scratch.stamps.chosen.store(shared.stamps.chosen.load(std::memory_order_relaxed), std::memory_order_relaxed);
  double best = 0;
  for (int round = 0; round < 8; ++round) {
    ring.cursor = slots->first;
    const std::int64_t before = monotonic_ns();
    for (std::uint32_t count = 0; count < events_per_round; ++count) {
      record<no_pauses>(scratch, context, {0, count, 1, 0, event_kind::allocate, 0, 0});
    }
    const double cost = static_cast<double>(monotonic_ns() - before) / events_per_round;
    if (round == 0 || cost < best) best = cost;
  }
  unmap_pages(slots, ring_slots::bytes_for(events_per_round));
  return best;
}

}  // namespace memprof::detail

// ---- <memprof/record/capture_watcher.hpp>
namespace memprof {

class trace;
struct profile;

namespace detail {

/// Looks on each capture of the process: how memprof's tests see that a trace tells all that its capture knows.
struct capture_watcher {
  trace* (*trace_for_capture)() noexcept;                            ///< for one that begins and keeps no trace
  const char* (*file_for_capture)() noexcept;                        ///< for one that writes no trace file; empty: none
  void (*compare)(const trace& kept, const profile& live) noexcept;  ///< hidden from the capture, under the registry's lock
};

inline constinit const capture_watcher* watcher = nullptr;

}  // namespace detail
}  // namespace memprof

// ---- <memprof/record/no_dispatch_fault.hpp>
#include <cstddef>
#include <new>
#include <string_view>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#include <csignal>
#endif

/// @file
/// Prepares a process for captures with `run_mode::no_dispatch`: the reserved addresses, and a word on what a touch of one means.

namespace memprof::detail {

#if defined(__unix__) || defined(__APPLE__)
inline struct sigaction previous_fault_action {};

/// Explains a fault at a reserved address, then lets what was installed before have the fault: the instruction is tried again.
inline void explain_fault(int number, siginfo_t* info, void*) noexcept {
  const phantom_addresses* const reserved = abi_1::process_registry.phantom.load(std::memory_order_acquire);
  if (reserved != nullptr && reserved->contains(info->si_addr)) {
    constexpr std::string_view text =
        "memprof: the program touched memory that a NO_DISPATCH capture only counted: it was never allocated. Guard the work on "
        "tensors with `if (memprof::dispatching())`. The faulting instruction shows where.\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  }
  ::sigaction(number, &previous_fault_action, nullptr);
}

/// Puts the explanation before whatever handles faults now; does nothing where it already is.
inline void install_fault_handler() noexcept {
  struct sigaction present {};
  if (::sigaction(SIGSEGV, nullptr, &present) != 0) return;
  if ((present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == explain_fault) return;
  struct sigaction explain {};
  explain.sa_sigaction = explain_fault;
  explain.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&explain.sa_mask);
  previous_fault_action = present;
  ::sigaction(SIGSEGV, &explain, nullptr);
}
#else
inline void install_fault_handler() noexcept {}
#endif

/// Makes the reserved addresses at the first NO_DISPATCH capture; they stay for the life of the process, since blocks may be
/// freed after the capture. False if the system has no room. Under the lock.
[[nodiscard]] inline bool prepare_no_dispatch(registry& shared) noexcept {
  install_fault_handler();
  if (shared.phantom.load(std::memory_order_relaxed) != nullptr) return true;
  void* const pages = map_pages(sizeof(phantom_addresses));
  if (pages == nullptr) return false;
  auto* const reserved = new (pages) phantom_addresses;
  if (!reserved->is_usable()) {
    reserved->~phantom_addresses();
    unmap_pages(pages, sizeof(phantom_addresses));
    return false;
  }
  // Release pairs with the acquire loads of those who take and give back.
  shared.phantom.store(reserved, std::memory_order_release);
  return true;
}

}  // namespace memprof::detail

// ---- <memprof/record/process_life.hpp>
#include <atomic>

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

/// @file
/// What becomes of a capture when the process forks, and when the library that began it is unloaded.

namespace memprof::detail {

/// Holds the lock over `fork`, so that the child never sees a half-done drain. Fork handlers that the program registered before
/// ours run inside: what their thread records, or has drained, it does under the lock that it holds already.
inline void before_fork() noexcept {
  registry& shared = abi_1::process_registry;
  shared.lock.lock();
  shared.forking_process = process_id();
  shared.forking.store(&abi_1::this_thread, std::memory_order_relaxed);
  // So that `make_room` is asked for each event until the handlers are through, and the child's do not go into the parent's file.
  if (abi_1::this_thread.has_ring()) abi_1::this_thread.ring->limit.store(nullptr, std::memory_order_relaxed);
}

inline void after_fork_in_parent() noexcept {
  registry& shared = abi_1::process_registry;
  shared.forking.store(nullptr, std::memory_order_relaxed);
  shared.lock.unlock();
}

/// A child starts with no capture. The parent's ledger is left where it is: freeing it would touch pages for nothing.
inline void after_fork_in_child() noexcept {
  registry& shared = abi_1::process_registry;
  shared.forking.store(nullptr, std::memory_order_relaxed);
  shared.lock.reset();
  shared.backend_lock.reset();
  shared.active_capture.store(0, std::memory_order_relaxed);
  shared.no_dispatch.store(0, std::memory_order_relaxed);
  if (auto* const reserved = shared.phantom.load(std::memory_order_relaxed); reserved != nullptr) reserved->reset_lock();
  if (auto* const hidden = shared.hidden.load(std::memory_order_relaxed); hidden != nullptr) hidden->reset_lock();
  shared.drain = nullptr;
  shared.put_event = nullptr;
  shared.define_name = nullptr;
  shared.define_space = nullptr;
  shared.add_facts = nullptr;
  shared.capture = nullptr;
  shared.ring_bytes -= leave_file_to_parent(shared.rings.load(std::memory_order_relaxed));
  // Should the system not unmap them, they stay where they are, and nobody stores there.
  if (shared.places != nullptr) (void)::munmap(shared.places->mapping, shared.places->mapping_bytes);
  shared.places = nullptr;
  shared.trace_file.close();
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    ring->tail = ring->slots->published.load(std::memory_order_relaxed);
    ring->limit.store(nullptr, std::memory_order_relaxed);
    ring->doing.store(activity::idle, std::memory_order_relaxed);
    // Only the thread that forked lives on.
    ring->owner.reset();
    if (ring == abi_1::this_thread.ring) (void)ring->owner.take();
  }
}

/// Registers the fork handlers once per process. Under the lock.
inline void watch_forks(registry& shared) noexcept {
#if defined(__unix__) || defined(__APPLE__)
  if (shared.has_fork_handlers) return;
  shared.has_fork_handlers = ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
#endif
}

/// Keeps the library that this code was compiled into loaded: the registry now points to its functions. Hidden, because the
/// address of a visible function may be that of another library's copy.
[[gnu::visibility("hidden")]] inline void pin_module() noexcept {
#if defined(RTLD_NODELETE) && defined(RTLD_NOLOAD)
  Dl_info module{};
  if (::dladdr(reinterpret_cast<void*>(&pin_module), &module) == 0 || module.dli_fname == nullptr) return;
  // For the executable itself this fails, and it needs no pin. The handle is kept on purpose.
  (void)::dlopen(module.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
#endif
}

}  // namespace memprof::detail

// ---- <memprof/record/start_recording.hpp>
#include <atomic>
#include <cstdint>

namespace memprof::detail {

/// A drain's consumer for events that belong to no capture.
struct discarded_events {
  void apply(const event*, const event*, std::uint32_t) const noexcept {}
};

/// Lets all threads record for capture `shared.capture_count`, and discards what the rings hold from before. Under the lock,
/// while no capture is active.
///
/// A thread may still be recording for an earlier capture: it saw that one active and was then stopped. So there must be one
/// instant after which everything is recorded, and before which nothing is kept. Recording is switched on first; then what rings
/// hold is cut off where a drain would cut it, which no cause and its effect can straddle the wrong way. An allocation that is
/// kept returns after the cut, so its free finds recording switched on.
template <class Pauses>
void start_recording(registry& shared) noexcept {
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    ring->limit.store(nullptr, std::memory_order_relaxed);  // each thread announces itself to the new capture
  }
  shared.active_capture.store(shared.capture_count, std::memory_order_relaxed);
  Pauses::reach(path_step::recording_on);
  // Every thread sees the stores above, and what it published before is seen below. Without the system's help a thread could
  // publish an event, be missed below, and yet find no capture active at its next: within the time that a store takes to be seen.
  if (!process_barrier()) std::atomic_thread_fence(std::memory_order_seq_cst);
  discarded_events nobody;
  drain_rings<Pauses>(shared, nobody);
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) ring->drained = 0;
}

}  // namespace memprof::detail

// ---- <memprof/record/this_process.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <unistd.h>

namespace memprof::detail {

/// The number that an environment variable holds; -1 if it is not set or holds none.
[[nodiscard]] inline std::int64_t number_in_environment(const char* name) noexcept {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text < '0' || *text > '9') return -1;
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text, &end, 10);
  return *end == '\0' && errno == 0 ? number : -1;
}

/// How a launcher tells its processes which they are.
struct launcher_variables {
  const char* rank;
  const char* world_size;
  const char* local_rank;
};

/// torchrun, Open MPI, MVAPICH, MPICH and Intel MPI, Slurm: in this order, because each may run under the next.
inline constexpr launcher_variables launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

/// The arguments of this process with spaces between, at most some 4 KB of them.
[[nodiscard]] inline std::string command_line() {
  std::string text;
  std::FILE* const file = std::fopen("/proc/self/cmdline", "re");
  if (file == nullptr) return text;
  text.resize(4096);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& character : text) {
    if (character == '\0') character = ' ';
  }
  return text;
}

/// What is known of this process.
[[nodiscard]] inline process_info describe_process() {
  process_info found;
  found.id = process_id();
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0) found.host = host;
  found.command_line = command_line();
  for (const launcher_variables& launcher : launchers) {
    const std::int64_t rank = number_in_environment(launcher.rank);
    const std::int64_t world_size = number_in_environment(launcher.world_size);
    if (rank < 0 || world_size <= rank) continue;  // RANK alone may be anything
    found.rank = rank;
    found.world_size = world_size;
    found.local_rank = number_in_environment(launcher.local_rank);
    break;
  }
  return found;
}

}  // namespace memprof::detail

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// The control path: what `begin_capture`, `snapshot`, `end_capture` and `clear` do to the process's registry. All of it runs
/// under the registry's lock, hidden from the hooks; none of it is on the hot path.

namespace memprof::detail {

inline void check(const capture_options& options) {
  const auto refuse = [](const char* field, std::uint32_t value, const char* allowed) {
    raise("begin_capture: capture_options::" + std::string{field} + " is " + std::to_string(value) + "; use " + allowed);
  };
  if (options.ring_capacity < 2 || options.ring_capacity > (1U << 24)) {
    refuse("ring_capacity", options.ring_capacity, "2 to 16777216 events (the default is 1024)");
  }
  if (options.timeline_points < 2) refuse("timeline_points", options.timeline_points, "2 or more (the default is 4096)");
  if (options.largest_blocks > max_largest_blocks)
    refuse("largest_blocks", options.largest_blocks, "0 to 4096 (the default is 10)");
  if (options.kept_segments < 4 || options.kept_segments > segment_history::most_kept) {
    refuse("kept_segments", options.kept_segments, "4 to 65536 (the default is 64)");
  }
  if (options.segment_names < 1 || options.segment_names > segment_history::most_kept) {
    refuse("segment_names", options.segment_names, "1 to 65536 (the default is 64)");
  }
  if (options.operations < 1) refuse("operations", options.operations, "1 or more (the default is 4096)");
  if (options.trace != nullptr && !options.trace->empty()) {
    raise("begin_capture: capture_options::trace holds a trace already; give each capture one of its own");
  }
  if (options.trace_limit != 0 && options.trace_limit < least_trace_limit) {
    raise("begin_capture: capture_options::trace_limit is " + std::to_string(options.trace_limit) +
          "; use 65536 bytes or more, or 0 for no limit (the default)");
  }
  for (const device_space& space : options.device.spaces) {
    if (space.capacity >= 0) continue;
    raise("begin_capture: the capacity of '" + std::string{space.name.view()} + "' of device '" +
          std::string{options.device.name.view()} + "' is " + std::to_string(space.capacity) + "; use bytes, or 0 for no limit");
  }
}

/// Makes the memory spaces that the device limits. Throws `memprof::error` if the process has too many.
inline void make_limited_spaces(registry& shared, const device_description& device) {
  for (std::size_t index = 0; index < device.space_count; ++index) {
    const device_space& space = device.spaces[index];
    if (space.capacity != 0 && id_of_space(shared, space.name.view()) == any_space) raise_too_many_spaces(space.name.view());
  }
}

/// The backends of the capture once more, under the lock. They live until the process ends, and leak checkers do not look for
/// pointers to them in the pages of the capture.
inline constinit void* reachable_backends = nullptr;

/// Destroys the last capture, under the lock, and returns its backends, to be destroyed without it.
[[nodiscard]] inline kept_backends forget_capture(registry& shared) noexcept {
  kept_backends backends;
  if (capture_state* const state = state_of(shared)) {
    backends = std::move(state->backends);
    state->~capture_state();
    unmap_pages(state, sizeof(capture_state));
  }
  shared.capture = nullptr;
  reachable_backends = nullptr;
  reachable_facts = nullptr;
  return backends;
}

/// Completes the trace file of the capture that has ended: waits for its disk, without the registry's lock but with that of the
/// backends, so that nobody begins or forgets a capture meanwhile.
inline void finish_file(registry& shared) noexcept {
  if (shared.active_capture.load(std::memory_order_relaxed) != 0) return;
  capture_state* const state = state_of(shared);
  if (state == nullptr || !state->file.finish()) return;
  const internal_guard hidden;
  {
    const registry_guard lock{shared};
    state->file.settle();
    shared.trace_file = {};  // before it is closed: a child after `fork` must not close another file of that number
    put_incomplete_file(*state);
  }
  state->file.close_file();
}

/// Makes the trace file of a capture that begins. Without the registry's lock, as the file's system may hang.
inline void open_file(registry& shared, live_trace& file, const capture_options& options, const process_info& process,
                      std::uint32_t capture) {
  const bool is_watched = watcher != nullptr && options.trace_file.empty();
  const std::string pattern = is_watched ? watcher->file_for_capture() : options.trace_file;
  if (pattern.empty() || !file.open(pattern, options, process)) return;
  {
    const registry_guard lock{shared};
    shared.trace_file = file.file();
  }
  if (file.start(options, capture)) return;
  {
    const registry_guard lock{shared};
    shared.trace_file = {};
  }
  file.give_up();
}

/// Makes ready what a capture needs of the process. Throws `memprof::error` if there can be none. Under the lock.
inline void prepare_capture(registry& shared, const capture_options& options) {
  if (shared.layout_version != registry::current_layout_version) {
    raise("begin_capture: another version of memprof is active in this process (layout " + std::to_string(shared.layout_version) +
          ", this one has " + std::to_string(registry::current_layout_version) + "); build all parts with the same version");
  }
  if (shared.active_capture.load(std::memory_order_relaxed) != 0) {
    raise("begin_capture: a capture is already active in this process; end it first (end_capture, or its guard's end)");
  }
  if (options.mode == run_mode::no_dispatch && !prepare_no_dispatch(shared)) {
    raise(
        "begin_capture: the system reserves no address range for run_mode::no_dispatch; raise the limit on address space "
        "(`ulimit -v unlimited`), or capture with run_mode::normal");
  }
  (void)abi_1::intern(shared, "cpu");  // makes the table of names, with the space "cpu" in it
  make_limited_spaces(shared, options.device);
  watch_forks(shared);
  prepare_order(shared);
  if (++shared.capture_count == 0) ++shared.capture_count;
}

struct capture_state_deleter {
  void operator()(capture_state* state) const noexcept {
    state->~capture_state();
    unmap_pages(state, sizeof(capture_state));
  }
};

/// The capture itself, which nobody knows yet. Throws `memprof::error` if the system has no memory for it.
[[nodiscard]] inline std::unique_ptr<capture_state, capture_state_deleter> make_capture(registry& shared,
                                                                                        const capture_options& options) {
  // In pages of its own: `operator new` is what may be watched.
  void* const pages = map_pages(sizeof(capture_state));
  if (pages == nullptr) raise("begin_capture: the system has no memory for the capture");
  std::unique_ptr<capture_state, capture_state_deleter> state{new (pages) capture_state(options, shared)};
  if (watcher != nullptr && state->kept == nullptr) state->kept = watcher->trace_for_capture();
  if (options.trace_limit != 0 && state->kept != nullptr && !limit_trace(*state->kept, options.trace_limit)) {
    raise("begin_capture: the system has no memory for what capture_options::trace_limit drops");
  }
  return state;
}

/// Begins a capture and returns its number. Its profile has `mode`: a backend may simulate though the program's own resources do
/// not. Throws `memprof::error` if one is active or an option is out of range.
[[nodiscard, gnu::noinline]] inline std::uint32_t start_capture(const capture_options& options, run_mode mode) {
  check(options);
  registry& shared = abi_1::process_registry;
  pin_module();
  const lock_guard serial{shared.backend_lock};
  finish_file(shared);
  kept_backends of_last_capture;  // destroyed when the lock is free again
  const internal_guard hidden;
  const process_info process = describe_process();
  std::uint32_t number = 0;
  {
    const registry_guard lock{shared};
    prepare_capture(shared, options);
    of_last_capture = forget_capture(shared);
    number = shared.capture_count;
  }
  // Nobody else begins a capture meanwhile: that takes the lock of the backends.
  auto made = make_capture(shared, options);
  open_file(shared, made->file, options, process, number);
  const registry_guard lock{shared};
  capture_state* const state = made.release();
  shared.capture = state;
  shared.places = state->file.places();
  shared.ring_capacity = options.ring_capacity;
  shared.drop_when_full.store(options.overflow_policy == overflow::drop, std::memory_order_relaxed);
  begin_trace(shared, *state, options, mode, process);
  put_incomplete_file(*state);
  state->record_ns = measure_record_cost(shared);
  shared.dropped_events.store(0, std::memory_order_relaxed);
  shared.reentrant_events.store(0, std::memory_order_relaxed);
  shared.no_dispatch.store(options.mode == run_mode::no_dispatch ? shared.capture_count : 0, std::memory_order_relaxed);
  if (auto* const hidden_blocks = shared.hidden.load(std::memory_order_relaxed); hidden_blocks != nullptr) hidden_blocks->clear();
  start_recording<no_pauses>(shared);
  connect_capture(shared);
  return number;
}

[[nodiscard]] inline std::uint32_t active_capture() noexcept {
  return abi_1::process_registry.active_capture.load(std::memory_order_relaxed);
}

/// Says once that there was no segment to end. Not where there is no capture that has ended: the program runs unprofiled then.
[[gnu::cold, gnu::noinline]] inline void warn_of_late_snapshot(std::string_view name) noexcept {
  static constinit std::atomic<bool> is_said{false};
  if (abi_1::process_registry.capture == nullptr || is_said.exchange(true, std::memory_order_relaxed)) return;
  const internal_guard hidden;
  std::fprintf(stderr, "memprof: snapshot '%.*s': its capture has ended, so there is no segment to end; this is said once\n",
               static_cast<int>(name.size()), name.data());
}

/// Serialises the calls of backends. Never taken under the registry's lock, which they may ask for.
[[nodiscard]] inline futex_lock& backend_lock() noexcept { return abi_1::process_registry.backend_lock; }

/// Lets capture `number` own its backends; gives them back if another thread has ended it already.
[[nodiscard]] inline kept_backends keep_backends(std::uint32_t number, kept_backends backends) noexcept {
  const control_guard control;
  if (active_capture() != number) return backends;
  reachable_backends = backends.get();
  state_of(abi_1::process_registry)->backends = std::move(backends);
  return {};
}

/// What the calls to a capture's backends need, so that they are made without the registry's lock.
struct found_backends {
  void* backends = nullptr;
  const backend_calls* calls = nullptr;
  bool is_first_end = false;  ///< they were attached, and whoever asked detaches them
};

/// The backends of capture `number`, if it is active and has any. With `takes_end` they count as detached from now on.
[[nodiscard]] inline found_backends find_backends(std::uint32_t number, bool takes_end) noexcept {
  const control_guard control;
  if (number == 0 || active_capture() != number) return {};
  kept_backends& kept = state_of(abi_1::process_registry)->backends;
  if (!kept.is_attached()) return {};
  return {kept.get(), kept.calls(), takes_end && kept.take_attached()};
}

/// Asks the backends of capture `number` for what they know beside events, if it is active and has any.
inline void report_facts_of(std::uint32_t number) {
  const lock_guard serial{backend_lock()};
  const found_backends found = find_backends(number, false);
  if (found.calls == nullptr) return;
  const recording_suppressor hidden;
  found.calls->report_facts(found.backends);
}

/// Switches the backends of capture `number` off, if it is active and has any, and asks them a last time.
inline void detach_backends_of(std::uint32_t number) noexcept {
  const lock_guard serial{backend_lock()};
  const found_backends found = find_backends(number, true);
  if (!found.is_first_end) return;
  const recording_suppressor hidden;
  found.calls->detach(found.backends);
  found.calls->report_facts(found.backends);
}

/// Lets the trace file of capture `number` catch up if it has a gap: without the registry's lock, for which others would wait.
inline void wait_for_file_of(std::uint32_t number) noexcept {
  registry& shared = abi_1::process_registry;
  const lock_guard serial{shared.backend_lock};  // so that nobody forgets the capture meanwhile
  const live_trace* file = nullptr;
  {
    const control_guard control;
    if (active_capture() == number && state_of(shared)->file.is_gapped()) file = &state_of(shared)->file;
  }
  if (file != nullptr) file->wait_for_disk();
}

/// Ends capture `number` but for its trace file, which goes on being written.
inline bool close_session(std::uint32_t number, std::string_view name) noexcept {
  registry& shared = abi_1::process_registry;
  if (number == 0 || active_capture() != number || !is_outside(abi_1::this_thread)) return false;
  detach_backends_of(number);
  const module_paths unrecorded = find_duplicate_registries();
  warn_about_duplicate_registries(unrecorded);
  wait_for_file_of(number);
  const control_guard control;
  if (active_capture() != number) return false;
  shared.active_capture.store(0, std::memory_order_relaxed);
  shared.no_dispatch.store(0, std::memory_order_relaxed);
  shared.drain(shared);
  put_unrecorded_modules(*state_of(shared), unrecorded);
  end_trace(shared, *state_of(shared), name);
  state_of(shared)->file.close(shared.rings.load(std::memory_order_relaxed));
  shared.places = nullptr;
  disconnect_capture(shared);
  return true;
}

/// Ends capture `number` with a last segment. False if it is not the active one.
[[gnu::noinline]] inline bool finish_capture(std::uint32_t number, std::string_view name) noexcept {
  if (!close_session(number, name)) return false;
  const lock_guard serial{backend_lock()};
  finish_file(abi_1::process_registry);
  return true;
}

/// Ends whatever capture is active and forgets the last one.
inline void clear_session() noexcept {
  registry& shared = abi_1::process_registry;
  finish_capture(active_capture(), end_segment_name);
  const lock_guard serial{backend_lock()};
  finish_file(abi_1::process_registry);
  kept_backends of_last_capture;  // destroyed when the registry's lock is free again
  const control_guard control;
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) of_last_capture = forget_capture(shared);
}

/// The profile of capture `number`, or of whichever there is for 0. False if it is gone.
template <class State = capture_state>
[[nodiscard]] bool read_session(std::uint32_t number, profile& result) {
  registry& shared = abi_1::process_registry;
  if (!is_outside(abi_1::this_thread)) return false;
  report_facts_of(number == 0 ? active_capture() : number);
  const module_paths unrecorded = find_duplicate_registries();
  const internal_guard hidden;
  const registry_guard lock{shared};
  State* const state = static_cast<State*>(shared.capture);
  if (state == nullptr || (number != 0 && shared.capture_count != number)) return false;
  if (shared.drain != nullptr) {
    shared.drain(shared);
    put_unrecorded_modules(*state, unrecorded);  // of a capture that has ended, those that were there at its end count
  }
  result = make_profile(shared, *state);
  if (watcher != nullptr && state->kept != nullptr) watcher->compare(*state->kept, result);
  return true;
}

}  // namespace memprof::detail


#include <cstdint>
#include <cstdio>
#include <memory>
#include <tuple>
#include <utility>
#endif

namespace memprof {

#if MEMPROF_ENABLED
namespace detail {

/// Attaches backends one after the other; those that are attached are detached again if a later one throws.
template <class... Backends>
class attached_backends {
 public:
  explicit attached_backends(const capture_options& options) {
    std::apply([&](auto&... source) { (this->attach(source, options), ...); }, sources_);
  }
  attached_backends(const attached_backends&) = delete;
  attached_backends& operator=(const attached_backends&) = delete;

  /// As a capture keeps them.
  [[nodiscard]] static const backend_calls& calls() noexcept {
    static constexpr backend_calls calls{detach, report_facts, destroy};
    return calls;
  }

 private:
  struct undo {
    void* source;
    void (*detach)(void*, event_sink&);
  };

  template <class Source>
  void attach(Source& source, const capture_options& options) {
#if defined(__cpp_exceptions)
    try {
      source.attach(writer_, options);
    } catch (...) {
      while (attached_ > 0) {
        const undo& last = undo_[--attached_];
        last.detach(last.source, writer_);
      }
      throw;
    }
#else
    source.attach(writer_, options);
#endif
    undo_[attached_++] = {&source, [](void* attached, event_sink& writer) { static_cast<Source*>(attached)->detach(writer); }};
  }

  static void detach(void* self) noexcept {
    auto& kept = *static_cast<attached_backends*>(self);
    std::apply([&](auto&... source) { (source.detach(kept.writer_), ...); }, kept.sources_);
  }

  static void report_facts(void* self) {
    auto& kept = *static_cast<attached_backends*>(self);
    std::apply([&](auto&... source) { (source.report_facts(kept.writer_), ...); }, kept.sources_);
  }

  static void destroy(void* self) noexcept { delete static_cast<attached_backends*>(self); }

  event_sink writer_;
  std::tuple<Backends...> sources_;
  undo undo_[sizeof...(Backends) + 1];
  std::size_t attached_ = 0;
};

/// Whether a source says that what it reports was simulated.
template <class Backend>
[[nodiscard]] constexpr bool simulates() noexcept {
  if constexpr (requires { Backend::mode; }) {
    return Backend::mode == run_mode::no_dispatch;
  } else {
    return false;
  }
}

}  // namespace detail

inline namespace enabled {

/// Ends the current segment and begins the next. The stretch since the last snapshot, or since the capture began, gets `name`;
/// equal names are kept as segments of their own.
///
/// Does nothing without a capture, so that an instrumented program runs unprofiled; after one has ended, a line on stderr says so
/// once. Cost: that of one event; the accounting for it is a pass over the operations, and never walks the live blocks.
inline void snapshot(std::string_view name) noexcept {
  if (!detail::record_segment_end(0, name)) detail::warn_of_late_snapshot(name);
}

/// Keeps what is live at this moment, under `name`: bytes and blocks of every memory space, and the largest blocks
/// (`profile::checkpoints`). No segment ends. Does nothing without a capture.
///
/// Cost: that of one event. Whoever empties the rings then looks at all live blocks, about a millisecond for a million.
inline void memory_checkpoint(std::string_view name) noexcept { (void)detail::record_moment(0, event_kind::checkpoint, name); }

/// Ends the active capture with a last segment; its profile stays readable until the next `begin_capture` or `clear`. Warns on
/// stderr if none is active.
inline void end_capture(std::string_view name = end_segment_name) {
  if (detail::finish_capture(detail::active_capture(), name)) return;
  std::fputs("memprof: end_capture: no capture is active; nothing was ended\n", stderr);
}

/// Forgets the last capture and its profile, ending it first if it is active.
inline void clear() { detail::clear_session(); }

/// The profile of the active capture up to now, or of the last one; an empty profile if there is none.
///
/// Costs a pass over live blocks, operations and segments, during which threads whose rings are full wait. Its memory is hidden
/// from the hooks, and so is the freeing of it. A template only so that units that read no profile do not compile what builds
/// one; call it without arguments.
template <class State = detail::capture_state>
[[nodiscard]] profile current_profile() {
  memprof::profile result;
  (void)detail::read_session<State>(0, result);
  return result;
}

/// Owns a capture: it ends at the end of the scope, and its profile stays readable after that.
class [[nodiscard]] capture_guard {
 public:
  explicit capture_guard(std::uint32_t number) noexcept : number_(number) {}
  capture_guard(capture_guard&& other) noexcept : number_(std::exchange(other.number_, 0)) {}
  capture_guard& operator=(capture_guard&&) = delete;
  ~capture_guard() { detail::finish_capture(number_, end_segment_name); }

  /// As the free function, for this guard's capture.
  void snapshot(std::string_view name) noexcept {
    if (number_ == 0 || !detail::record_segment_end(number_, name)) detail::warn_of_late_snapshot(name);
  }

  /// Ends the capture with a last segment. Does nothing if it has ended already.
  void end(std::string_view name = end_segment_name) { detail::finish_capture(number_, name); }

  /// The profile up to now; any thread may ask. Throws `memprof::error` if another capture has begun since, or after `clear`. A
  /// template for the reason that `current_profile` is one.
  template <class State = detail::capture_state>
  [[nodiscard]] memprof::profile profile() const {
    memprof::profile result;
    if (number_ == 0 || !detail::read_session<State>(number_, result)) {
      detail::raise(
          "capture_guard::profile: this guard's capture is gone (released, cleared, or followed by another); read the "
          "profile before that, or use current_profile()");
    }
    return result;
  }

  /// Lets go without ending: `end_capture` or the end of the process will.
  void release() noexcept { number_ = 0; }

 private:
  std::uint32_t number_;
};

/// Begins to record what all threads allocate through memprof's resources and hooks, and what the given backends tell.
///
/// Throws `memprof::error` if a capture is active or an option is out of range. Make sure to hold the guard: without it the
/// capture ends at once.
template <backend... Backends>
[[nodiscard]] capture_guard begin_capture(const capture_options& options = {}) {
  const bool is_simulated = (detail::simulates<Backends>() || ...);
  const std::uint32_t number = detail::start_capture(options, is_simulated ? run_mode::no_dispatch : options.mode);
  capture_guard guard{number};
  if constexpr (sizeof...(Backends) != 0) {
    using attached = detail::attached_backends<Backends...>;
    const detail::recording_suppressor hidden;
    // If one of them throws, the guard ends the capture.
    detail::kept_backends backends{new attached{options}, &attached::calls()};
    const detail::kept_backends ended_meanwhile = detail::keep_backends(number, std::move(backends));
  }
  return guard;
}

}  // namespace enabled

#else
inline namespace disabled {

inline void snapshot(std::string_view) noexcept {}
inline void memory_checkpoint(std::string_view) noexcept {}
inline void end_capture(std::string_view = end_segment_name) noexcept {}
inline void clear() noexcept {}
[[nodiscard]] inline profile current_profile() { return {}; }

class [[nodiscard]] capture_guard {
 public:
  // Not trivial, so that an unused guard draws no warning; empty, so that no instruction is left.
  ~capture_guard() {}
  void snapshot(std::string_view) noexcept {}
  void end(std::string_view = end_segment_name) noexcept {}
  [[nodiscard]] memprof::profile profile() const { return {}; }
  void release() noexcept {}
};

template <backend... Backends>
[[nodiscard]] inline capture_guard begin_capture(const capture_options& = {}) noexcept {
  return {};
}

}  // namespace disabled
#endif

}  // namespace memprof

// ---- <memprof/detail/fixed_string.hpp>
#include <algorithm>
#include <cstddef>
#include <string_view>

namespace memprof {

/// Text as a template argument: `track_operation<"attention">()`.
template <std::size_t Size>
struct fixed_string {
  char text[Size];

  // Implicit, so that a literal can be written as the argument.
  consteval fixed_string(const char (&literal)[Size]) noexcept { std::copy_n(literal, Size, text); }

  [[nodiscard]] constexpr std::string_view view() const noexcept { return {text, Size - 1}; }
};

}  // namespace memprof

// ---- <memprof/record/track_operation.hpp>
#include <string_view>

#if MEMPROF_ENABLED

#include <atomic>
#include <cstdint>
#endif

namespace memprof {

#if MEMPROF_ENABLED
namespace detail {

/// The id of a name known at compile time: one load after the first call.
template <fixed_string Name>
[[nodiscard]] label static_label() noexcept {
  static constinit std::atomic<label> known{0};
  // Relaxed: the id is a number that means the same to every thread, and its text is read under the lock.
  label id = known.load(std::memory_order_relaxed);
  if (id == 0) [[unlikely]] {
    id = find_label(Name.view());
    known.store(id, std::memory_order_relaxed);
  }
  return id;
}

}  // namespace detail

inline namespace enabled {

/// An operation that is open on this thread until the end of the scope. Stays where it was made.
class [[nodiscard]] operation_scope {
 public:
  /// `find_name()` gives the operation's label; it is asked only while a capture is active.
  template <class FindName>
  operation_scope(FindName find_name, std::uint16_t tag) noexcept
      : capture_(abi_1::process_registry.active_capture.load(std::memory_order_relaxed)) {
    if (capture_ == 0) [[likely]]
      return;
    thread_slot& self = abi_1::this_thread;
    if (self.ring->doing.load(std::memory_order_relaxed) != activity::idle && !detail::is_outside(self)) [[unlikely]] {
      // In a signal handler that interrupted the profiler. Neither end is recorded.
      detail::note_reentrant(abi_1::process_registry, self.doing().load(std::memory_order_relaxed));
      capture_ = 0;
      return;
    }
    const label name = find_name();
    detail::begin_operation(open_, self, name, tag);
    self.innermost_name = name;
  }
  operation_scope(const operation_scope&) = delete;
  operation_scope& operator=(const operation_scope&) = delete;
  // Inlined always: left to the compiler, that would depend on how much else its unit has.
  [[gnu::always_inline]] ~operation_scope() {
    if (capture_ == 0) [[likely]]
      return;
    // A scope that outlives its capture must not close one of the next.
    detail::end_operation(open_, abi_1::process_registry.active_capture.load(std::memory_order_relaxed) == capture_);
  }

 private:
  std::uint32_t capture_;
  open_operation open_;
};

/// Names what this thread does until the end of the scope; allocations are attributed to the innermost name. Nests.
///
/// `kind` is the category of what is allocated within, unless an inner scope gives another. Cost: two events; nothing but one
/// load while no capture is active.
template <fixed_string Name>
[[nodiscard]] operation_scope track_operation(optional_category kind = {}) noexcept {
  return operation_scope{[] { return detail::static_label<Name>(); }, kind.tag()};
}

/// The same for a name made at run time; the text is interned, so use a bounded number of different names.
[[nodiscard]] inline operation_scope track_operation(std::string_view name, optional_category kind = {}) noexcept {
  return operation_scope{[name] { return detail::find_label(name); }, kind.tag()};
}

}  // namespace enabled

#else
inline namespace disabled {

class [[nodiscard]] operation_scope {
 public:
  // Not trivial, so that an unused scope draws no warning; empty, so that no instruction is left.
  ~operation_scope() {}
};

template <fixed_string Name>
[[nodiscard]] inline operation_scope track_operation(optional_category = {}) noexcept {
  return {};
}
[[nodiscard]] inline operation_scope track_operation(std::string_view, optional_category = {}) noexcept { return {}; }

}  // namespace disabled
#endif

}  // namespace memprof

// ---- <memprof/analysis/segments_by_name.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// What the segments of each name did, however many there were, and the steps that they form: what reports say of long runs.

namespace memprof {

/// All segments of one name, or of one family of names, in one memory space.
struct segments_of_name {
  std::string name;
  bool stands_for_others = false;  ///< the row of all names that came when there were too many
  std::int64_t count = 0;
  std::int64_t first_number = 0;  ///< of the first one among all segments, from 0
  std::int64_t last_number = 0;
  value_summary segment_peak;
  value_summary segment_change;
  value_summary cumulative_current;
  growth_line growth;  ///< of `cumulative_current`; only for a name, not for a family

  bool operator==(const segments_of_name&) const = default;
};

namespace detail {

inline void add_value(value_summary& summary, std::int64_t value, bool is_first) noexcept {
  if (is_first) summary = {value, value, value, value, 0, -1, -1};
  summary.last = value;
  summary.least = std::min(summary.least, value);
  summary.greatest = std::max(summary.greatest, value);
  summary.sum = add_saturating(summary.sum, value);
}

/// The sums of a least-squares line. Values are taken as they differ from the first: large numbers that hardly change keep their
/// digits.
struct growth_sums {
  std::int64_t first = 0;
  double count = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;

  void add(std::int64_t step, std::int64_t value) noexcept {
    if (count == 0) first = value;
    const auto at = static_cast<double>(step);
    const auto rise = static_cast<double>(subtract_saturating(value, first));
    count += 1;
    x += at;
    y += rise;
    xx += at * at;
    xy += at * rise;
    yy += rise * rise;
  }

  [[nodiscard]] growth_line line() const noexcept {
    const double spread_of_steps = count * xx - x * x;
    const double spread = count * yy - y * y;
    const double together = count * xy - x * y;
    if (spread <= 0) return {0, 1};
    if (spread_of_steps <= 0) return {0, 0};
    return {together / spread_of_steps, std::min(1.0, together * together / (spread_of_steps * spread))};
  }
};

/// The same for profiles that do not say it: in which step each of the profile's segments was.
[[nodiscard]] std::vector<std::int64_t> steps_from_names(const auto& segments) {
  std::vector<std::int64_t> steps;
  steps.reserve(segments.size());
  std::map<std::string_view, std::int64_t> last_step;
  std::int64_t step = 0;
  for (const auto& segment : segments) {
    const auto [at, is_new] = last_step.try_emplace(segment.name, step);
    if (!is_new && at->second == step) ++step;
    at->second = step;
    steps.push_back(step);
  }
  return steps;
}

inline void add_to_summary(value_summary& into, const value_summary& other, bool is_earlier, bool is_later) noexcept {
  if (is_earlier) into.first = other.first;
  if (is_later) into.last = other.last;
  into.least = std::min(into.least, other.least);
  into.greatest = std::max(into.greatest, other.greatest);
  into.sum = add_saturating(into.sum, other.sum);
}

/// The name with each of its numbers written as '*'.
[[nodiscard]] inline std::string without_numbers(std::string_view name) {
  std::string family;
  for (const char character : name) {
    const bool is_digit = character >= '0' && character <= '9';
    if (!is_digit) {
      family += character;
    } else if (family.empty() || family.back() != '*') {
      family += '*';
    }
  }
  return family;
}

}  // namespace detail

/// Which step each segment was in, and how many steps there were.
struct segment_steps {
  std::vector<std::int64_t> of_segment;  ///< for each of `profile::segments`, from 0
  std::int64_t count = 0;
};

/// A *step* is one round of repeating names: it ends where a name comes that it has had already.
[[nodiscard]] segment_steps steps_of(const auto& source) {
  segment_steps steps;
  if (source.step_count != 0) {
    for (const auto& segment : source.segments) steps.of_segment.push_back(segment.step);
    steps.count = source.step_count;
    return steps;
  }
  steps.of_segment = detail::steps_from_names(source.segments);
  steps.count = steps.of_segment.empty() ? 0 : steps.of_segment.back() + 1;
  return steps;
}

namespace detail {

/// From the rows of the profile, which have all segments, kept or not.
[[nodiscard]] std::vector<segments_of_name> from_named_segments(const auto& source, const auto& space) {
  std::vector<segments_of_name> rows;
  for (std::size_t index = 0; index < source.segments_by_name.size(); ++index) {
    const auto& name = source.segments_by_name[index];
    const auto& usage = space.segments_by_name[index];
    rows.push_back({name.name, name.stands_for_others, name.count, name.first_number, name.last_number, usage.segment_peak,
                    usage.segment_change, usage.cumulative_current, usage.growth});
  }
  return rows;
}

/// From the segments themselves.
[[nodiscard]] std::vector<segments_of_name> from_segments(const auto& source, const auto& space) {
  const std::vector<std::int64_t> steps = steps_from_names(source.segments);
  std::vector<segments_of_name> rows;
  std::vector<growth_sums> growth;
  std::map<std::string_view, std::size_t> row_of;
  for (std::size_t index = 0; index < source.segments.size() && index < space.segments.size(); ++index) {
    const auto& usage = space.segments[index];
    const auto [at, is_new] = row_of.try_emplace(source.segments[index].name, rows.size());
    if (is_new) {
      rows.emplace_back().name = source.segments[index].name;
      rows.back().first_number = static_cast<std::int64_t>(index);
      growth.emplace_back();
    }
    segments_of_name& row = rows[at->second];
    add_value(row.segment_peak, usage.segment_peak, is_new);
    add_value(row.segment_change, usage.segment_change, is_new);
    add_value(row.cumulative_current, usage.cumulative_current, is_new);
    growth[at->second].add(steps[index], usage.cumulative_current);
    row.last_number = static_cast<std::int64_t>(index);
    ++row.count;
  }
  for (std::size_t index = 0; index < rows.size(); ++index) rows[index].growth = growth[index].line();
  return rows;
}

}  // namespace detail

/// A row for each name, in the order in which the names first came. `space` must be one of the profile's. Profiles of earlier
/// versions have no such rows; theirs are made from all their segments.
[[nodiscard]] std::vector<segments_of_name> segments_by_name(const auto& source, const auto& space) {
  const bool has_rows = !source.segments_by_name.empty() && source.segments_by_name.size() == space.segments_by_name.size();
  return has_rows ? detail::from_named_segments(source, space) : detail::from_segments(source, space);
}

/// How many segments there were, kept or not.
[[nodiscard]] std::int64_t count_of_segments(const auto& source) {
  return source.segment_count != 0 ? source.segment_count : static_cast<std::int64_t>(source.segments.size());
}

/// The rows with those put together whose names differ only in numbers, as "step 1" and "step 2", under "step *". A family of one
/// keeps its name.
[[nodiscard]] inline std::vector<segments_of_name> segments_by_family(const std::vector<segments_of_name>& names) {
  std::vector<segments_of_name> rows;
  std::map<std::string, std::size_t> row_of;
  for (const segments_of_name& name : names) {
    if (name.stands_for_others) {
      rows.push_back(name);
      continue;
    }
    std::string family = detail::without_numbers(name.name);
    const auto [at, is_new] = row_of.try_emplace(family, rows.size());
    if (is_new) {
      rows.push_back(name);
      continue;
    }
    segments_of_name& row = rows[at->second];
    const bool is_earlier = name.first_number < row.first_number;
    const bool is_later = name.last_number > row.last_number;
    detail::add_to_summary(row.segment_peak, name.segment_peak, is_earlier, is_later);
    detail::add_to_summary(row.segment_change, name.segment_change, is_earlier, is_later);
    detail::add_to_summary(row.cumulative_current, name.cumulative_current, is_earlier, is_later);
    row.first_number = std::min(row.first_number, name.first_number);
    row.last_number = std::max(row.last_number, name.last_number);
    row.count += name.count;
    row.growth = {};
    row.name = std::move(family);
  }
  return rows;
}

}  // namespace memprof

// ---- <memprof/report/text/space_kind.hpp>
namespace memprof::detail {

/// Whether blocks of the space were recorded on cores.
[[nodiscard]] bool lies_on_cores(const auto& space) { return !space.cores.ranges.empty(); }

/// Whether the device has memory of that kind on each of its cores, whether or not anything was there.
[[nodiscard]] bool has_cores(const auto& space) { return lies_on_cores(space) || space.capacity_is_per_core; }

}  // namespace memprof::detail

// ---- <memprof/detail/utf8.hpp>
#include <cstddef>
#include <string_view>

namespace memprof::detail {

/// One character of a text: its code point and how many bytes it takes. Bytes that are no UTF-8 come one by one, as `invalid`.
struct utf8_character {
  static constexpr char32_t invalid = 0xffffffff;

  char32_t code = invalid;
  std::size_t size = 1;
};

/// The character that begins at `index`, by the table of well-formed sequences in the Unicode standard (3.9, table 3-7): no
/// surrogates, nothing overlong, nothing beyond U+10FFFF.
[[nodiscard]] constexpr utf8_character utf8_at(std::string_view text, std::size_t index) noexcept {
  const auto byte = [&](std::size_t offset) { return static_cast<unsigned char>(text[index + offset]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - index < size) return {};
  char32_t code = first & (0x7fu >> size);
  for (std::size_t offset = 1; offset < size; ++offset) {
    if ((byte(offset) & 0xc0u) != 0x80) return {};
    code = code << 6 | (byte(offset) & 0x3fu);
  }
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  if (overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, size};
}

}  // namespace memprof::detail

// ---- <memprof/report/text/text_format.hpp>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::detail {

/// The number with so many decimals, and a '.' whatever the locale: existing parsers read it.
[[nodiscard]] inline std::string decimal(double value, int decimals) {
  std::array<char, 400> text{};  // the greatest double has 309 digits before the point
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  return {text.data(), written.ptr};
}

/// "12.34 MB", where MB is 2^20 bytes.
[[nodiscard]] inline std::string megabytes(std::int64_t bytes) {
  constexpr double bytes_per_megabyte = 1 << 20;
  return decimal(static_cast<double>(bytes) / bytes_per_megabyte, 2) + " MB";
}

/// The same with a sign in any case: "+0.00 MB".
[[nodiscard]] inline std::string signed_megabytes(std::int64_t bytes) { return (bytes < 0 ? "" : "+") + megabytes(bytes); }

/// "1 free", "2 frees".
[[nodiscard]] inline std::string counted(std::int64_t count, std::string_view singular, std::string_view plural) {
  return std::to_string(count) + ' ' + std::string{count == 1 ? singular : plural};
}

/// Whether a terminal takes the character for a command, or shows what comes after it elsewhere: control characters, line and
/// paragraph separators, and marks that turn the direction of writing.
[[nodiscard]] constexpr bool is_control(char32_t code) noexcept {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200e && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code == utf8_character::invalid;
}

/// The text on one line, as UTF-8: control characters, which could break the format or the terminal, and bytes that are no UTF-8
/// are written as "\n" or "\x1b".
[[nodiscard]] inline std::string on_one_line(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  for (std::size_t index = 0; index < text.size();) {
    const utf8_character character = utf8_at(text, index);
    const std::string_view bytes = text.substr(index, character.size);
    index += character.size;
    if (!is_control(character.code)) {
      result += bytes;
    } else if (character.code == U'\n') {
      result += "\\n";
    } else if (character.code == U'\t') {
      result += "\\t";
    } else {
      for (const char byte : bytes) {
        const auto code = static_cast<unsigned char>(byte);
        result += {'\\', 'x', digits[code >> 4], digits[code & 15]};
      }
    }
  }
  return result;
}

/// `text` with spaces before it, up to that width.
[[nodiscard]] inline std::string right_aligned(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

/// The text of a number with a comma between groups of three digits before its point.
[[nodiscard]] inline std::string with_thousands(std::string digits) {
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  const std::size_t point = digits.find('.');
  for (std::size_t index = point == std::string::npos ? digits.size() : point; index > first + 3;) {
    index -= 3;
    digits.insert(index, 1, ',');
  }
  return digits;
}

}  // namespace memprof::detail

// ---- <memprof/report/text/text_options.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof {

/// What kind of text a report is.
enum class text_format : std::uint8_t {
  summary,  ///< answers for people, in at most `text_options::max_lines` lines
  tracker,  ///< what tt-train's memory tracker prints, every segment: for scripts that read its logs
};

/// What a text report shows. What is asked for beyond the defaults may take more lines than `max_lines`.
struct text_options {
  text_format format = text_format::summary;
  /// The memory space that comes first, and whose lines say "DRAM" in the tracker's format. Empty: of a summary, the space that
  /// is full, else the one with the greatest peak; of the tracker's format, the space "dram" if there is one, else the first that
  /// is not "cpu" and not on cores, else "cpu".
  std::string_view primary_space = {};
  std::size_t columns = 100;       ///< width of the text, at least 60; names are shortened to fit
  std::size_t max_lines = 40;      ///< at least 32
  bool is_colored = false;         ///< with the control sequences of terminals (ECMA-48)
  std::size_t owners = 5;          ///< operations named at the peak, and at the end
  std::size_t largest_blocks = 0;  ///< blocks named at the peak
  std::size_t streams = 0;         ///< streams and pools named, for a space whose allocator tells them
  std::size_t core_ranges = 0;     ///< rectangles of cores named, for a space whose blocks lie on cores
  bool all_spaces = false;         ///< the whole answer for every memory space, not for the first one alone
  bool all_faults = false;         ///< a line for every kind of fault in the numbers
  bool all_segments = false;       ///< a line for each segment in the order of time, in place of one for each name
};

}  // namespace memprof

// ---- <memprof/report/text/segment_lines.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// The text that scripts read: to the letter what the memory tracker of tt-train prints, so that parsers of its logs
/// (analyze_memory.py, extract_results.py) read ours. MB is 2^20 bytes.

namespace memprof::detail {

/// The space whose lines say "DRAM", or a null pointer if there is none; one that lies on cores has the line of L1.
[[nodiscard]] const space_profile* primary_space(const auto& source, const text_options& options) {
  if (!options.primary_space.empty()) return &source.space(options.primary_space);
  if (const space_profile* const dram = source.find_space("dram")) return dram;
  for (const space_profile& space : source.spaces) {
    if (space.name != "cpu" && !has_cores(space)) return &space;
  }
  return source.find_space("cpu");
}

[[nodiscard]] inline std::string upper_case(std::string text) {
  for (char& character : text) {
    if (character >= 'a' && character <= 'z') character = static_cast<char>(character - 'a' + 'A');
  }
  return text;
}

/// What stands before the colon in the line of a space on cores. The parsers search for "DRAM:" anywhere in a line.
[[nodiscard]] std::string core_label(const auto& space) {
  const std::string label = upper_case(on_one_line(space.name));
  return std::string_view{label}.ends_with("DRAM") ? label + " space" : label;
}

void append_usage(auto& text, const auto& usage) {
  text += "  DRAM: Segment Peak " + megabytes(usage.segment_peak) + ", Allocations " + megabytes(usage.allocations) +
          ", Deallocations " + megabytes(usage.deallocations) + ", Segment Change " + signed_megabytes(usage.segment_change) +
          "\n  DRAM: Cumulative Peak " + megabytes(usage.cumulative_peak) + ", Cumulative Current " +
          megabytes(usage.cumulative_current) + '\n';
}

void append_core_usage(auto& text, const std::string& label, const auto& peaks) {
  text += "  " + label + ": Peak CB " + megabytes(peaks.circular_buffers) + ", Peak Buffer " + megabytes(peaks.buffers) +
          ", Peak Total " + megabytes(peaks.total) + '\n';
}

/// The blocks "--- NAME ---" for each segment and the totals. The primary space has the name "DRAM", with zeros if there is none;
/// spaces on cores have the tracker's line of L1, the first of them also where nothing was on any core; others have none.
/// Where the profile does not keep all segments a line says how many are missing, which parsers look past.
void append_tracker_lines(auto& text, const auto& source, const text_options& options) {
  if (source.segments.empty()) {
    text += "WARNING: No traces captured\n";
    return;
  }
  const space_profile* const primary = primary_space(source, options);
  const auto first_on_cores =
      std::find_if(source.spaces.begin(), source.spaces.end(), [](const auto& space) { return has_cores(space); });
  const space_profile* const cores = first_on_cores == source.spaces.end() ? nullptr : &*first_on_cores;
  text += "=== Memory Usage Summary ===\n\n";
  for (std::size_t index = 0; index < source.segments.size(); ++index) {
    text += "--- " + on_one_line(source.segments[index].name) + " ---\n";
    const bool has_usage = primary != nullptr && index < primary->segments.size();
    append_usage(text, has_usage ? primary->segments[index] : segment_usage{});
    for (const space_profile& space : source.spaces) {
      if (&space == primary || (!lies_on_cores(space) && &space != cores)) continue;
      append_core_usage(text, core_label(space),
                        index < space.cores.segments.size() ? space.cores.segments[index] : core_peaks{});
    }
  }
  const std::int64_t missing = count_of_segments(source) - static_cast<std::int64_t>(source.segments.size());
  if (missing > 0) text += "(" + counted(missing, "more segment", "more segments") + " that the profile does not keep)\n";
  text += "\n=== Final Totals ===\nOverall DRAM Peak: " + megabytes(primary == nullptr ? 0 : primary->cumulative_peak) +
          ", Final DRAM Usage: " + megabytes(primary == nullptr ? 0 : primary->cumulative_current) + "\n\n";
}

}  // namespace memprof::detail

// ---- <memprof/profile/fact/approximated_operation.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof {

/// An operation whose memory a simulated run only estimated.
struct approximated_operation {
  std::string name;
  std::string cause;
  std::int64_t count = 0;
  std::int64_t bytes = 0;  ///< of the blocks that were allocated on an estimate

  bool operator==(const approximated_operation&) const = default;

  static constexpr std::string_view table = "approximations";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("name", row.name);
    visit("cause", row.cause);
    visit("count", row.count);
    visit("bytes", row.bytes);
  }
};

}  // namespace memprof

// ---- <memprof/profile/fact/missing_source.hpp>
#include <string>
#include <string_view>

namespace memprof {

/// What a capture was to watch and could not.
struct missing_source {
  std::string source;  ///< for example "CUDA"
  std::string reason;

  bool operator==(const missing_source&) const = default;

  static constexpr std::string_view table = "not_captured";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("source", row.source);
    visit("reason", row.reason);
  }
};

}  // namespace memprof

// ---- <memprof/profile/fact/unknown_read.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof {

/// A value that the program read in a simulated run and that the simulation does not know: it got what zeros give, and may have
/// gone another way than it does for real.
struct unknown_read {
  std::string name;       ///< of the operator that read, as in "aten::item"; empty: the program read the memory itself
  std::string operation;  ///< the innermost of the program around it; empty: none
  std::int64_t count = 0;

  bool operator==(const unknown_read&) const = default;

  static constexpr std::string_view table = "unknown_reads";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("name", row.name);
    visit("operation", row.operation);
    visit("count", row.count);
  }
};

}  // namespace memprof

// ---- <memprof/report/text/page.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// A report before it is laid out: what it says, whatever the width, the colours and the format.

namespace memprof::detail {

enum class emphasis : std::uint8_t { none, strong, alarm, caution, faint };

/// A stretch of a line. Names, which come from the program and may be of any length, are shortened where the line is too long.
struct page_part {
  std::string text;
  emphasis how = emphasis::none;
  bool is_name = false;
};

/// A line of prose, or a cell of a table.
class page_line {
 public:
  page_line() = default;
  page_line(std::string text) { add(std::move(text)); }
  page_line(const char* text) { add(std::string{text}); }

  page_line& add(std::string text, emphasis how = emphasis::none) {
    if (!text.empty()) parts_.push_back({std::move(text), how, false});
    return *this;
  }
  page_line& add_name(std::string_view name, emphasis how = emphasis::none) {
    parts_.push_back({on_one_line(name), how, true});
    return *this;
  }
  page_line& append(const page_line& other) {
    parts_.insert(parts_.end(), other.parts_.begin(), other.parts_.end());
    return *this;
  }

  [[nodiscard]] const std::vector<page_part>& parts() const noexcept { return parts_; }
  [[nodiscard]] bool empty() const noexcept { return parts_.empty(); }

 private:
  std::vector<page_part> parts_;
};

struct page_column {
  std::string_view title;
  bool is_right_aligned = false;
};

struct page_table {
  std::vector<page_column> columns;
  std::vector<std::vector<page_line>> rows;  ///< with fewer cells than there are columns, the last one may reach beyond its own
  bool has_titles = false;                   ///< whether the text shows the titles of the columns; other formats always do
};

/// One answer.
struct page_section {
  std::string heading;
  std::vector<page_line> lines;
  page_table table;
  std::vector<page_line> further_lines;  ///< below the table
  bool is_wide = false;                  ///< the table begins at the margin
};

}  // namespace memprof::detail

// ---- <memprof/report/text/quantity.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// Numbers for people: three significant digits in a unit that fits, so that no column has more than nine characters.

namespace memprof::detail {

/// Three significant digits of a number from 0 up to 999.5: "17.9", "4.88", "0.977".
[[nodiscard]] inline std::string three_digits(double value) {
  // The bounds are where rounding would make a digit more.
  const int decimals = value < 0.9995 ? 3 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return decimal(value, value == 0 ? 0 : decimals);
}

/// "512 B", "4.88 KiB", "17.9 MiB", "0.977 GiB", "-1.50 GiB". Less than 1 KiB is exact; more is rounded to three digits.
[[nodiscard]] inline std::string short_bytes(double bytes) {
  constexpr std::array<std::string_view, 6> units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 0) {
    const std::string text = short_bytes(-bytes);
    return text == "0 B" ? text : "-" + text;
  }
  if (bytes < 1023.5) return decimal(bytes, 0) + " B";
  double value = bytes / 1024;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return three_digits(value) + " " + std::string{units[unit]};
}

[[nodiscard]] inline std::string short_bytes(std::int64_t bytes) { return short_bytes(static_cast<double>(bytes)); }

/// The same with a sign unless it is zero: "+4.88 KiB", "-512 B", "0 B".
[[nodiscard]] inline std::string signed_short_bytes(double bytes) {
  const std::string text = short_bytes(bytes);
  return bytes < 0 || text == "0 B" ? text : "+" + text;
}

[[nodiscard]] inline std::string signed_short_bytes(std::int64_t bytes) { return signed_short_bytes(static_cast<double>(bytes)); }

/// "18,513,664".
[[nodiscard]] inline std::string grouped(std::int64_t count) { return with_thousands(std::to_string(count)); }

/// "1 free", "231,113 events".
[[nodiscard]] inline std::string grouped(std::int64_t count, std::string_view singular, std::string_view plural) {
  return grouped(count) + ' ' + std::string{count == 1 ? singular : plural};
}

/// "18,513,664 B".
[[nodiscard]] inline std::string exact_bytes(std::int64_t bytes) { return grouped(bytes) + " B"; }

/// "17.7 MiB (18,513,664 B)"; the parenthesis only where the short form is rounded.
[[nodiscard]] inline std::string short_and_exact_bytes(std::int64_t bytes) {
  const std::string text = short_bytes(bytes);
  return bytes < 1024 && bytes > -1024 ? text : text + " (" + exact_bytes(bytes) + ")";
}

/// "850 ns", "17.9 ms", "4.21 s"; from a minute on "2 min 05 s", "3 h 12 min", "2 d 04 h".
[[nodiscard]] inline std::string short_time(std::int64_t time_ns) {
  constexpr std::array<std::string_view, 3> units{"us", "ms", "s"};
  if (time_ns < 0) return "-" + short_time(time_ns == INT64_MIN ? INT64_MAX : -time_ns);
  if (time_ns < 1000) return std::to_string(time_ns) + " ns";
  constexpr std::int64_t ns_per_second = 1'000'000'000;
  if (time_ns < 60 * ns_per_second - ns_per_second / 20) {  // 59.95 s would be written as 60.0
    double value = static_cast<double>(time_ns) / 1000;
    std::size_t unit = 0;
    while (value >= 999.5 && unit + 1 < units.size()) {
      value /= 1000;
      ++unit;
    }
    return three_digits(value) + " " + std::string{units[unit]};
  }
  const auto two_parts = [](std::int64_t total, std::int64_t base, std::string_view large, std::string_view small) {
    const std::int64_t rest = total % base;
    return std::to_string(total / base) + " " + std::string{large} + (rest < 10 ? " 0" : " ") + std::to_string(rest) + " " +
           std::string{small};
  };
  const std::int64_t seconds = time_ns / ns_per_second + (time_ns % ns_per_second >= ns_per_second / 2 ? 1 : 0);
  if (seconds < 3600) return two_parts(seconds, 60, "min", "s");
  if (seconds < std::int64_t{24} * 3600) return two_parts(seconds / 60, 60, "h", "min");
  return two_parts(seconds / 3600, 24, "d", "h");
}

/// "81.1 %", "0.4 %", "100 %".
[[nodiscard]] inline std::string short_percent(std::int64_t part, std::int64_t whole) {
  const double share = whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return decimal(share, share > -99.95 && share < 99.95 ? 1 : 0) + " %";
}

}  // namespace memprof::detail

// ---- <memprof/report/text/check_section.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// The answer: what is wrong with the numbers; a line for each kind of fault, with its count, the worst first.

namespace memprof::detail {

/// What was missing altogether, or lost on the way: totals and peaks are not those of the program.
[[nodiscard]] std::vector<page_line> losses(const auto& source) {
  std::vector<page_line> lines;
  for (const missing_source& missing : rows_of<missing_source>(source.facts)) {
    lines.push_back(page_line{}.add_name(missing.source).add(" not captured: ").add_name(missing.reason));
  }
  const auto add = [&](std::int64_t count, std::string_view what, std::string_view them, const char* why) {
    if (count != 0) lines.emplace_back(grouped(count, what, them) + " " + why);
  };
  const event_anomalies& found = source.anomalies;
  add(found.dropped_events, "event", "events",
      "dropped from full rings (overflow::drop): use overflow::drain or a larger ring_capacity");
  add(found.reentrant_events, "event", "events", "lost in signal handlers that interrupted the recording of another event");
  add(found.missing_events, "event", "events", "or more missing in the trace");
  add(found.rejected_events, "event", "events", "rejected: impossible values, or no memory to keep them");
  event_tally untracked;
  for (const space_profile& space : source.spaces) {
    untracked.count = add_saturating(untracked.count, space.anomalies.untracked_allocations.count);
    untracked.bytes = add_saturating(untracked.bytes, space.anomalies.untracked_allocations.bytes);
  }
  if (untracked.count != 0) {
    lines.emplace_back(grouped(untracked.count, "allocation", "allocations") + " (" + short_bytes(untracked.bytes) +
                       ") not kept: no memory left for the profiler");
  }
  const std::vector<unrecorded_module> modules = rows_of<unrecorded_module>(source.facts);
  if (!modules.empty()) {
    page_line line{grouped(static_cast<std::int64_t>(modules.size()), "library", "libraries") + " not recorded ("};
    line.add_name(modules.front().path).add(modules.size() > 1 ? ", ...)" : ")");
    lines.push_back(line.add(": link the executable with -rdynamic (CMake: ENABLE_EXPORTS ON)"));
  }
  return lines;
}

/// What a simulated run did not know.
[[nodiscard]] std::vector<page_line> estimates(const auto& source) {
  std::vector<page_line> lines;
  const std::vector<approximated_operation> estimated = rows_of<approximated_operation>(source.facts);
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
  for (const approximated_operation& row : estimated) {
    calls = add_saturating(calls, row.count);
    bytes = add_saturating(bytes, row.bytes);
  }
  if (!estimated.empty()) {
    const auto& first = *std::max_element(estimated.begin(), estimated.end(),
                                          [](const auto& left, const auto& right) { return left.bytes < right.bytes; });
    page_line line{grouped(calls, "call", "calls") + " of " +
                   grouped(static_cast<std::int64_t>(estimated.size()), "operator", "operators") + " estimated (" +
                   short_bytes(bytes) + (estimated.size() > 1 ? "), most by " : "): ")};
    lines.push_back(line.add_name(first.name).add(" (").add_name(first.cause).add(")"));
  }
  const std::vector<unknown_read> reads = rows_of<unknown_read>(source.facts);
  std::int64_t count = 0;
  for (const unknown_read& row : reads) count = add_saturating(count, row.count);
  if (!reads.empty()) {
    const auto& first = *std::max_element(reads.begin(), reads.end(),
                                          [](const auto& left, const auto& right) { return left.count < right.count; });
    page_line line{grouped(count, "read", "reads") + " of values the simulation does not know (zeros read instead"};
    if (!first.name.empty()) line.add(", by ").add_name(first.name);
    if (!first.operation.empty()) line.add(" in ").add_name(first.operation);
    lines.push_back(line.add(")"));
  }
  return lines;
}

/// How often something happened in all spaces together, and where.
struct tally_of_spaces {
  event_tally all;
  std::vector<std::string_view> spaces;
};

[[nodiscard]] tally_of_spaces sum_over_spaces(const auto& source, auto&& tally_in) {
  tally_of_spaces sum;
  for (const space_profile& space : source.spaces) {
    const event_tally& tally = tally_in(space);
    if (tally.count == 0) continue;
    sum.all.count = add_saturating(sum.all.count, tally.count);
    sum.all.bytes = add_saturating(sum.all.bytes, tally.bytes);
    sum.spaces.push_back(space.name);
  }
  return sum;
}

/// What else happened that a careful reader wants to know.
[[nodiscard]] std::vector<page_line> anomalies(const auto& source) {
  std::vector<page_line> lines;
  const auto add = [&](auto&& tally_in, const char* one, const char* many, bool has_bytes, const char* rest) {
    const tally_of_spaces sum = sum_over_spaces(source, tally_in);
    if (sum.all.count == 0) return;
    page_line line{grouped(sum.all.count, one, many) + (has_bytes ? " (" + short_bytes(sum.all.bytes) + ")" : "")};
    if (source.spaces.size() > 1) {
      line.add(" in ").add_name(sum.spaces.front());
      if (sum.spaces.size() > 1)
        line.add(" and " + grouped(static_cast<std::int64_t>(sum.spaces.size() - 1), "other space", "other spaces"));
    }
    lines.push_back(line.add(std::string{": "} + rest));
  };
  using space = space_profile;
  add(
      [](const space& in) -> const auto& { return in.anomalies.unmatched_frees; }, "unmatched free", "unmatched frees", true,
      "of untracked blocks, not counted as deallocations");
  add(
      [](const space& in) -> const auto& { return in.anomalies.mismatched_sizes; }, "free", "frees", true,
      "with a mismatched size, the allocated size counts");
  add(
      [](const space& in) -> const auto& { return in.anomalies.overlapping_blocks; }, "overlapping block", "overlapping blocks",
      true, "live within another live block, counted twice");
  add(
      [](const space& in) -> const auto& { return in.anomalies.replaced_allocations; }, "allocation", "allocations", true,
      "at the address of a live block, which counts as deallocated");
  add(
      [](const space& in) -> const auto& { return in.anomalies.null_allocations; }, "allocation", "allocations", true,
      "at a null address: failed, not counted");
  add(
      [](const space& in) -> const auto& { return in.anomalies.unknown_annotations; }, "annotation", "annotations", false,
      "of an address that was not live");
  add(
      [](const space& in) -> const auto& { return in.reserved.unmatched_releases; }, "unmatched release", "unmatched releases",
      true, "of memory that was never seen reserved");
  add(
      [](const space& in) -> const auto& { return in.reserved.replaced_reservations; }, "reservation", "reservations", true,
      "of memory that was reserved already, the older one counts as released");
  add(
      [](const space& in) -> const auto& { return in.active.unmatched_completions; }, "completed deallocation",
      "completed deallocations", true, "of blocks that were never seen freed");
  add(
      [](const space& in) -> const auto& { return in.active.missing_completions; }, "freed block", "freed blocks", true,
      "never seen completed, counted as active until the address came again");
  const auto add_count = [&](std::int64_t count, const char* one, const char* many, const char* rest) {
    if (count != 0) lines.emplace_back(grouped(count, one, many) + " " + rest);
  };
  add_count(source.anomalies.unbalanced_scopes, "operation", "operations", "without a begin or an end");
  add_count(source.anomalies.too_deep_scopes, "operation", "operations", "nested deeper than 256: counted as part of the 256th");
  // What shares a row because the program makes names without end, and what to do about it.
  add_count(source.anomalies.other_segments, "segment", "segments",
            "without a row of their own: give the phases of each step the same names");
  add_count(source.anomalies.other_operations, "operation", "operations",
            "without a row of their own: leave numbers that grow out of their names");
  add_count(source.anomalies.other_names, "event", "events",
            "with names beyond the 65,536 that a process has room for: leave numbers that grow out of them");
  for (const space_profile& in : source.spaces) {
    if (in.stands_for_others)
      lines.emplace_back("memory spaces beyond the 254th share one: give blocks of the same kind one space");
  }
  for (const incomplete_trace_file& file : rows_of<incomplete_trace_file>(source.facts)) {
    page_line line{"trace file "};
    line.add_name(file.path).add(" incomplete: ").add_name(file.reason);
    if (file.missing_events != 0) line.add(", " + grouped(file.missing_events, "event", "events") + " missing");
    lines.push_back(std::move(line));
  }
  return lines;
}

/// One sentence on the whole, and then the faults, the worst first; beyond `most` only how many there are.
[[nodiscard]] page_section check_section(const auto& source, std::size_t most) {
  page_section section;
  section.heading = "Numbers";
  std::vector<page_line> faults = losses(source);
  const bool is_lossy = !source.exact || !faults.empty();
  std::vector<page_line> further = estimates(source);
  const bool is_estimated = !further.empty();
  faults.insert(faults.end(), further.begin(), further.end());
  further = anomalies(source);
  faults.insert(faults.end(), further.begin(), further.end());

  page_line line;
  const std::string events = source.cost.events == 0 ? "" : grouped(source.cost.events, "event", "events");
  if (!source.exact) {
    line.add("not exact", emphasis::alarm).add(": totals may be too small, live bytes and peaks too small or too large");
    if (faults.empty()) line.add("; the profile does not say why");
  } else if (is_lossy) {
    line.add("incomplete", emphasis::alarm).add(": exact for what was captured").add(events.empty() ? "" : ", " + events);
  } else if (is_estimated) {
    line.add("estimated in part", emphasis::caution).add(events.empty() ? "" : "; " + events + ", none lost");
  } else {
    line.add("exact", emphasis::strong)
        .add(": " + (events.empty() ? "no event" : events + ", none") + (faults.empty() ? " lost or unmatched" : " lost"));
  }
  const auto& cost = source.cost;
  if (cost.memory_bytes != 0 || cost.events != 0) {
    const double time_ns = cost.record_ns_per_event + cost.drain_ns_per_event;
    line.add("; profiler " + short_bytes(cost.memory_bytes) + ", " + short_time(std::llround(time_ns)) + " an event");
  }
  section.lines.push_back(line);
  const std::size_t shown = faults.size() <= most + 1 ? faults.size() : most;
  for (std::size_t index = 0; index < shown; ++index) section.lines.push_back(faults[index]);
  if (shown < faults.size())
    section.lines.emplace_back(grouped(static_cast<std::int64_t>(faults.size() - shown)) + " further kinds of faults");
  return section;
}

/// The tables of what sources know that is not memory over time.
[[nodiscard]] page_section fact_section(const auto& source) {
  page_section section;
  section.heading = "Facts";
  page_line line;
  for (const fact_table& table : source.facts) {
    if (table.rows.empty()) continue;
    if (!line.empty()) line.add(", ");
    line.add_name(table.name).add(" (" + grouped(static_cast<std::int64_t>(table.rows.size()), "row", "rows") + ")");
  }
  if (!line.empty()) section.lines.push_back(line.add("; memprof show --facts NAME prints a table"));
  return section;
}

}  // namespace memprof::detail

// ---- <memprof/report/text/display_width.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

/// @file
/// How many columns of a terminal a text takes, and texts that are made shorter or longer by columns.

namespace memprof::detail {

struct code_point_range {
  char32_t first;
  char32_t last;
};

/// What takes no column: marks that combine with the character before them, joiners, and selectors of variants. Marks of scripts
/// that are not listed count as one column, so a line is rather too short than too long.
inline constexpr std::array<code_point_range, 16> zero_width_ranges{{{0x300, 0x36f},
                                                                     {0x483, 0x489},
                                                                     {0x591, 0x5bd},
                                                                     {0x610, 0x61a},
                                                                     {0x64b, 0x65f},
                                                                     {0xe31, 0xe31},
                                                                     {0xe34, 0xe3a},
                                                                     {0xe47, 0xe4e},
                                                                     {0x1ab0, 0x1ace},
                                                                     {0x1dc0, 0x1dff},
                                                                     {0x200b, 0x200d},
                                                                     {0x20d0, 0x20f0},
                                                                     {0xfe00, 0xfe0f},
                                                                     {0xfe20, 0xfe2f},
                                                                     {0xfeff, 0xfeff},
                                                                     {0xe0100, 0xe01ef}}};

/// What takes two columns: the characters of East Asian width W and F (UAX #11); blocks of ideographs and pictures as a whole.
inline constexpr std::array<code_point_range, 51> wide_ranges{
    {{0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},  {0x23e9, 0x23ec}, {0x23f0, 0x23f0},   {0x23f3, 0x23f3},
     {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},  {0x267f, 0x267f}, {0x2693, 0x2693},   {0x26a1, 0x26a1},
     {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},  {0x26ce, 0x26ce}, {0x26d4, 0x26d4},   {0x26ea, 0x26ea},
     {0x26f2, 0x26f3},   {0x26f5, 0x26f5},   {0x26fa, 0x26fa},  {0x26fd, 0x26fd}, {0x2705, 0x2705},   {0x270a, 0x270b},
     {0x2728, 0x2728},   {0x274c, 0x274c},   {0x274e, 0x274e},  {0x2753, 0x2755}, {0x2757, 0x2757},   {0x2795, 0x2797},
     {0x27b0, 0x27b0},   {0x27bf, 0x27bf},   {0x2b1b, 0x2b1c},  {0x2b50, 0x2b50}, {0x2b55, 0x2b55},   {0x2e80, 0x303e},
     {0x3041, 0x3247},   {0x3250, 0x4dbf},   {0x4e00, 0xa4cf},  {0xa960, 0xa97c}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},
     {0xfe10, 0xfe19},   {0xfe30, 0xfe6b},   {0xff01, 0xff60},  {0xffe0, 0xffe6}, {0x16fe0, 0x18d08}, {0x1aff0, 0x1b2fb},
     {0x1f18e, 0x1f265}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}}};

[[nodiscard]] constexpr bool is_within(const auto& ranges, char32_t code) noexcept {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code,
                                      [](char32_t value, const code_point_range& range) { return value < range.first; });
  return after != ranges.begin() && code <= (after - 1)->last;
}

[[nodiscard]] constexpr std::size_t columns_of(char32_t code) noexcept {
  if (code < 0x300) return 1;
  if (is_within(zero_width_ranges, code)) return 0;
  return is_within(wide_ranges, code) ? 2 : 1;
}

/// The columns that a line of UTF-8 without control characters takes. A sequence that a terminal draws as one picture counts with
/// all its parts, so this is rather too much than too little.
[[nodiscard]] constexpr std::size_t display_width(std::string_view text) noexcept {
  std::size_t width = 0;
  for (std::size_t index = 0; index < text.size();) {
    const utf8_character character = utf8_at(text, index);
    width += columns_of(character.code);
    index += character.size;
  }
  return width;
}

/// The bytes of the longest beginning of `text` that takes at most `columns`, marks included.
[[nodiscard]] constexpr std::size_t bytes_within(std::string_view text, std::size_t columns) noexcept {
  std::size_t index = 0;
  for (std::size_t width = 0; index < text.size();) {
    const utf8_character character = utf8_at(text, index);
    width += columns_of(character.code);
    if (width > columns) break;
    index += character.size;
  }
  return index;
}

/// A text that takes more than `columns` with an ellipsis in its middle in place of what is too much: the ends of paths and names
/// are what tells them apart.
[[nodiscard]] inline std::string shortened(std::string_view text, std::size_t columns) {
  const std::size_t width = display_width(text);
  if (width <= columns) return std::string{text};
  if (columns == 0) return {};
  const std::size_t begin = bytes_within(text, columns / 2);
  std::size_t left_out = width - (columns - 1 - display_width(text.substr(0, begin)));
  std::size_t end = bytes_within(text, left_out);
  // A wide character that would be cut in half goes, and so do the marks of the last one that went.
  left_out = display_width(text.substr(0, end)) < left_out ? left_out + 1 : left_out;
  end = bytes_within(text, left_out);
  return std::string{text.substr(0, begin)} + "\xe2\x80\xa6" + std::string{text.substr(end)};
}

/// `text` with spaces behind or before it, up to that many columns; cut in its middle if it takes more.
[[nodiscard]] inline std::string left_in(std::string_view text, std::size_t columns) {
  std::string result = shortened(text, columns);
  result.append(columns - std::min(columns, display_width(result)), ' ');
  return result;
}
[[nodiscard]] inline std::string right_in(std::string_view text, std::size_t columns) {
  const std::string result = shortened(text, columns);
  return std::string(columns - std::min(columns, display_width(result)), ' ') + result;
}

}  // namespace memprof::detail

// ---- <memprof/report/text/place_text.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// How the answers say when and where something happened.

namespace memprof::detail {

/// " in BACKWARD_PASS of step 2 of 200"; nothing if the index leads to no segment.
void add_segment(page_line& line, const auto& source, const segment_steps& steps, std::int64_t index) {
  if (index < 0 || static_cast<std::size_t>(index) >= source.segments.size()) return;
  const auto at = static_cast<std::size_t>(index);
  line.add(" in ").add_name(source.segments[at].name);
  if (steps.count > 1 && steps.of_segment[at] >= 0)
    line.add(" of step " + grouped(steps.of_segment[at] + 1) + " of " + grouped(steps.count));
}

/// " at 52.1 ms in BACKWARD_PASS of step 2 of 200, operation forward/block"; nothing of operations where the program names none.
void add_place(page_line& line, const auto& source, const segment_steps& steps, std::int64_t time_ns, std::int64_t segment,
               std::string_view operation) {
  line.add(" at " + short_time(time_ns));
  add_segment(line, source, steps, segment);
  if (!operation.empty()) {
    line.add(", operation ").add_name(operation);
  } else if (!source.operations.empty()) {
    line.add(", outside every operation");
  }
}

}  // namespace memprof::detail

// ---- <memprof/report/text/peak_section.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// The answers: how much was it, when, and whose.

namespace memprof::detail {

/// "17.7 MiB (18,513,664 B) of cpu at 52.1 ms in BACKWARD_PASS of step 1 of 200, operation forward/block".
[[nodiscard]] page_section peak_section(const auto& source, const auto& space, const segment_steps& steps) {
  page_section section;
  section.heading = "Peak";
  page_line line;
  line.add(short_and_exact_bytes(space.cumulative_peak), emphasis::strong).add(" of ").add_name(space.name, emphasis::strong);
  if (lies_on_cores(space)) line.add(" on all cores together");
  if (space.cumulative_peak != 0) {
    add_place(line, source, steps, space.peak_time_ns, space.peak_segment, space.peak_operation);
  }
  section.lines.push_back(line);
  return section;
}

[[nodiscard]] bool has_categories(const auto& live) {
  return std::any_of(live.by_category.begin(), live.by_category.end(),
                     [](const owned_bytes& row) { return row.bytes != 0 && row.owner != to_string(category::other); });
}

/// "activation 15.3 MiB (86.7 %), parameter 628 KiB (3.5 %), others 20.0 KiB (0.1 %)".
[[nodiscard]] page_line category_line(const auto& live) {
  constexpr std::size_t most = 4;
  constexpr std::size_t longest_name = 20;  // ours are shorter
  page_line line;
  std::size_t shown = 0;
  std::int64_t others = 0;
  const auto add = [&](std::string_view name, std::int64_t bytes) {
    if (!line.empty()) line.add(", ");
    line.add(shortened(on_one_line(name), longest_name) + " " + short_bytes(bytes) + " (" + short_percent(bytes, live.bytes) +
             ")");
  };
  for (const owned_bytes& row : live.by_category) {
    if (shown < most && row.bytes >= live.bytes / 100) {
      add(row.owner, row.bytes);
      ++shown;
    } else {
      others = add_saturating(others, row.bytes);
    }
  }
  if (others > 0) add("others", others);
  return line;
}

/// The category that more than half of an owner's bytes certainly have: all bytes of the set have it, or blocks that are listed.
/// Empty if that is not known.
[[nodiscard]] std::string_view category_of(const auto& live, const owned_bytes& owner) {
  for (const owned_bytes& row : live.by_category) {
    if (row.bytes == live.bytes && row.owner != to_string(category::other)) return row.owner;
  }
  for (const live_block& candidate : live.largest_blocks) {
    if (candidate.operation != owner.owner || candidate.category == category::other) continue;
    std::int64_t bytes = 0;
    for (const live_block& block : live.largest_blocks) {
      if (block.operation == owner.owner && block.category == candidate.category) bytes = add_saturating(bytes, block.bytes);
    }
    if (bytes > owner.bytes / 2) return to_string(candidate.category);
  }
  return {};
}

/// Columns of a table of owners; other formats show the titles.
[[nodiscard]] inline page_table owner_table() {
  page_table table;
  table.columns = {{"Bytes", true}, {"Share", true}, {"Blocks", true}, {"Operation", false}, {"Category", false}};
  return table;
}

[[nodiscard]] inline page_line owner_name(std::string_view path) {
  return path.empty() ? page_line{"outside every operation"} : page_line{}.add_name(path);
}

/// The first `most` operations, and all others as one row, so that the rows add up.
[[nodiscard]] page_table owner_rows(const auto& live, std::size_t most) {
  page_table table = owner_table();
  const std::size_t shown = std::min(most, live.by_operation.size());
  std::int64_t others_bytes = live.remaining_bytes;
  for (std::size_t index = 0; index < live.by_operation.size(); ++index) {
    const owned_bytes& row = live.by_operation[index];
    if (index >= shown) {
      others_bytes = add_saturating(others_bytes, row.bytes);
      continue;
    }
    table.rows.push_back({short_bytes(row.bytes), short_percent(row.bytes, live.bytes), grouped(row.blocks, "block", "blocks"),
                          owner_name(row.owner), page_line{}.add_name(category_of(live, row))});
  }
  const std::int64_t others = static_cast<std::int64_t>(live.by_operation.size() - shown) + live.remaining_operations;
  if (others > 0) {
    table.rows.push_back({short_bytes(others_bytes), short_percent(others_bytes, live.bytes), "",
                          grouped(others, "further operation", "further operations")});
  }
  return table;
}

/// Whose the bytes were at the peak.
[[nodiscard]] page_section owner_section(const auto& live, std::size_t most) {
  page_section section;
  section.heading = "Owners";
  if (live.bytes == 0) return section;
  if (has_categories(live)) section.lines.push_back(category_line(live));
  section.table = owner_rows(live, most);
  return section;
}

/// What is known of a block: its annotation, or else its address.
[[nodiscard]] page_line block_text(const auto& block) {
  std::string text = block.name;
  for (const std::string* const part : {&block.shape, &block.dtype}) {
    if (!part->empty()) text += (text.empty() ? "" : " ") + *part;
  }
  if (block.requires_grad == requires_grad::yes) text += text.empty() ? "requires_grad" : " requires_grad";
  if (text.empty()) {
    std::array<char, 16> digits{};
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), block.address, 16);
    text = "0x" + std::string{digits.data(), written.ptr};
  }
  return page_line{}.add_name(text);
}

/// The largest blocks at the peak.
[[nodiscard]] page_section block_section(const auto& live, std::size_t most) {
  page_section section;
  section.heading = "Blocks";
  section.table.columns = {{"Bytes", true}, {"Share", true}, {"Block", false}, {"Category", false}, {"Operation", false}};
  for (std::size_t index = 0; index < std::min(most, live.largest_blocks.size()); ++index) {
    const live_block& block = live.largest_blocks[index];
    section.table.rows.push_back({short_bytes(block.bytes), short_percent(block.bytes, live.bytes), block_text(block),
                                  std::string{block.category == category::other ? "" : to_string(block.category)},
                                  owner_name(block.operation)});
  }
  return section;
}

}  // namespace memprof::detail

// ---- <memprof/report/text/device_section.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

/// @file
/// The answers about a device: what its allocator reserved, what streams used beyond what was live, what lay on its cores, which
/// streams had it, and when it was full.

namespace memprof::detail {

/// Nothing if no allocator reported what it holds.
[[nodiscard]] page_section reserved_section(const auto& space) {
  page_section section;
  section.heading = "Reserved";
  const reserved_profile& held = space.reserved;
  if (held.peak == 0) return section;
  section.lines.push_back(short_and_exact_bytes(held.peak) + " by the allocator, " +
                          short_bytes(std::max(held.peak - space.cumulative_peak, std::int64_t{0})) +
                          " more than was ever live; " + short_bytes(held.current) + " at the end");
  return section;
}

/// Nothing where streams were done with each block when it was freed, as far as peak and end tell.
[[nodiscard]] page_section active_section(const auto& space) {
  page_section section;
  section.heading = "Active";
  const active_profile& used = space.active;
  if (used.peak <= space.cumulative_peak && used.current <= space.cumulative_current) return section;
  const auto beyond = [](std::int64_t bytes, std::int64_t live) { return short_bytes(std::max(bytes - live, std::int64_t{0})); };
  section.lines.push_back(short_and_exact_bytes(used.peak) + " with freed blocks that streams still used, " +
                          beyond(used.peak, space.cumulative_peak) + " more than was ever live; " +
                          beyond(used.current, space.cumulative_current) + " freed but in use at the end");
  return section;
}

/// "stream default, private pool 0:1".
[[nodiscard]] page_line stream_text(const auto& row) {
  page_line line;
  if (row.stands_for_others) return line.add("all other streams and pools");
  line.add("stream ").add_name(row.stream);
  if (row.pool == "unknown") {
    line.add(", pool unknown");
  } else if (!row.pool.empty()) {
    line.add(", private pool ").add_name(row.pool);
  }
  return line;
}

/// One stream with the allocator's own pool holds all that is said of the space anyway.
[[nodiscard]] bool are_worth_a_table(const auto& streams) {
  return streams.size() > 1 || (streams.size() == 1 && !streams.front().pool.empty() && streams.front().pool != "unknown");
}

/// The first `most` streams, which are those with the most reserved bytes; with 0 only how many there are.
[[nodiscard]] page_section stream_section(const auto& space, std::size_t most) {
  page_section section;
  section.heading = "Streams";
  if (!are_worth_a_table(space.streams)) return section;
  const auto& first = space.streams.front();
  const auto count = static_cast<std::int64_t>(space.streams.size());
  if (most == 0) {
    page_line line{grouped(count, "stream and pool", "streams and pools") + "; the most, " + short_bytes(first.reserved_peak) +
                   " reserved and " + short_bytes(first.cumulative_peak) + " live, on "};
    section.lines.push_back(line.append(stream_text(first)));
    return section;
  }
  section.table.has_titles = true;
  section.table.columns = {{"Reserved peak", true}, {"at the end", true},  {"Live peak", true},
                           {"at the end", true},    {"Allocations", true}, {"Stream and pool", false}};
  const std::size_t shown = std::min(most, space.streams.size());
  for (std::size_t index = 0; index < shown; ++index) {
    const auto& row = space.streams[index];
    section.table.rows.push_back({short_bytes(row.reserved_peak), short_bytes(row.reserved_current),
                                  short_bytes(row.cumulative_peak), short_bytes(row.cumulative_current),
                                  grouped(row.allocation_count), stream_text(row)});
  }
  if (shown < space.streams.size()) {
    section.further_lines.push_back(
        grouped(count - static_cast<std::int64_t>(shown), "further stream and pool", "further streams and pools"));
  }
  return section;
}

/// The busiest core, and the first `most` rectangles of cores.
[[nodiscard]] page_section core_section(const auto& space, std::size_t most) {
  page_section section;
  section.heading = "Cores";
  if (!lies_on_cores(space)) return section;
  const auto& peaks = space.cores.peaks;
  page_line line{short_and_exact_bytes(peaks.total) + " at most on one core"};
  if (!peaks.busiest_core.empty()) line.add(", ").add_name(peaks.busiest_core);
  line.add("; circular buffers at most " + short_bytes(peaks.circular_buffers) + ", buffers " + short_bytes(peaks.buffers));
  section.lines.push_back(line);
  section.table.has_titles = true;
  section.table.columns = {{"Total", true}, {"Circular buffers", true}, {"Buffers", true}, {"Cores", false}};
  const std::size_t shown = std::min(most, space.cores.ranges.size());
  for (std::size_t index = 0; index < shown; ++index) {
    const auto& row = space.cores.ranges[index];
    section.table.rows.push_back({short_bytes(row.peaks.total), short_bytes(row.peaks.circular_buffers),
                                  short_bytes(row.peaks.buffers), page_line{}.add_name(row.range)});
  }
  if (shown != 0 && shown < space.cores.ranges.size()) {
    section.further_lines.push_back(
        grouped(static_cast<std::int64_t>(space.cores.ranges.size() - shown), "further rectangle", "further rectangles"));
  }
  return section;
}

/// The first allocation for which the device had no memory, and how many more there were.
[[nodiscard]] page_section failure_section(const auto& source, const auto& space, const segment_steps& steps) {
  page_section section;
  section.heading = "Failed";
  if (space.out_of_memory.empty()) return section;
  const auto& failed = space.out_of_memory.front();
  page_line line;
  line.add("out of memory", emphasis::alarm).add(" requesting " + short_bytes(failed.requested));
  add_place(line, source, steps, failed.time_ns, failed.segment, failed.operation);
  line.add("; " + short_bytes(failed.device_free) + " free on the device, " + short_bytes(failed.reserved_bytes) + " reserved, " +
           short_bytes(failed.live_bytes) + " of it live");
  const std::int64_t further =
      add_saturating(static_cast<std::int64_t>(space.out_of_memory.size()) - 1, space.further_out_of_memory.count);
  if (further > 0) line.add("; " + grouped(further, "more failure", "more failures"));
  section.lines.push_back(line);
  return section;
}

}  // namespace memprof::detail

// ---- <memprof/report/text/end_section.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// @file
/// The answers: does it grow from step to step, and what is live at the end, and whose.

namespace memprof::detail {

/// The name that ends a step: of those that come in most steps the one that came last; a null pointer where nothing comes three
/// times, which is the least that a trend can be seen in.
[[nodiscard]] inline const segments_of_name* end_of_step(const std::vector<segments_of_name>& names) {
  std::int64_t most = 0;
  for (const segments_of_name& name : names) most = std::max(most, name.count);
  const segments_of_name* last = nullptr;
  for (const segments_of_name& name : names) {
    if (name.count < 3 || name.count < most / 2) continue;
    if (last == nullptr || name.last_number > last->last_number) last = &name;
  }
  return last;
}

/// What is live after each step, and by how much that grows.
[[nodiscard]] inline page_section growth_section(const std::vector<segments_of_name>& names) {
  page_section section;
  section.heading = "Growth";
  const segments_of_name* const name = end_of_step(names);
  if (name == nullptr) return section;
  const value_summary& live = name->cumulative_current;
  page_line line;
  if (live.least == live.greatest) {
    line.add("0 B per step", emphasis::strong).add(": " + short_bytes(live.last) + " live after each ").add_name(name->name);
    line.add(" (" + grouped(name->count) + ")");
    section.lines.push_back(line);
    return section;
  }
  constexpr double clear = 0.9;  // of the variation is a straight line
  const std::string slope = signed_short_bytes(name->growth.per_step) + " per step";
  if (name->growth.r_squared >= clear) {
    line.add(slope, name->growth.per_step > 0 ? emphasis::caution : emphasis::strong);
  } else {
    line.add("no clear trend").add(" (" + slope + ", r\xc2\xb2 " + decimal(name->growth.r_squared, 2) + ")");
  }
  line.add(": after ")
      .add_name(name->name)
      .add(" " + short_bytes(live.first) + " live at first, " + short_bytes(live.last) + " at last, " + short_bytes(live.least) +
           " at least, " + short_bytes(live.greatest) + " at most");
  section.lines.push_back(line);
  return section;
}

/// What is live at the end by operation, most first; the bytes of no operation have an empty path.
[[nodiscard]] std::vector<std::pair<std::string_view, std::int64_t>> live_owners(const auto& source, const auto& space) {
  std::vector<std::pair<std::string_view, std::int64_t>> owners;
  std::int64_t outside = space.cumulative_current;
  for (const auto& operation : source.operations) {
    for (const auto& usage : operation.usage) {
      if (usage.space != space.name || usage.live == 0) continue;
      owners.emplace_back(operation.path, usage.live);
      outside = subtract_saturating(outside, usage.live);
    }
  }
  if (outside > 0) owners.emplace_back(std::string_view{}, outside);
  std::sort(owners.begin(), owners.end(), [](const auto& left, const auto& right) {
    return left.second != right.second ? left.second > right.second : left.first < right.first;
  });
  return owners;
}

/// What is live at the end, and whose: the first `most` operations and all others.
[[nodiscard]] page_section end_section(const auto& source, const auto& space, std::size_t most) {
  page_section section;
  section.heading = source.complete ? "At end" : "Now";
  const std::int64_t live = space.cumulative_current;
  if (live == 0) {
    section.lines.emplace_back("nothing live");
    return section;
  }
  const std::vector<std::pair<std::string_view, std::int64_t>> owners = live_owners(source, space);
  page_line line{short_and_exact_bytes(live) + " live"};
  if (owners.size() == 1) {
    line.add(", all of it from ").append(owner_name(owners.front().first));
    section.lines.push_back(line);
    return section;
  }
  section.lines.push_back(line);
  section.table.columns = {{"Bytes", true}, {"Share", true}, {"Operation", false}};
  // A row for one further operation would say less than the operation itself.
  const std::size_t shown = owners.size() == most + 1 ? owners.size() : std::min(most, owners.size());
  std::int64_t others = 0;
  for (std::size_t index = 0; index < owners.size(); ++index) {
    if (index >= shown) {
      others = add_saturating(others, owners[index].second);
      continue;
    }
    section.table.rows.push_back(
        {short_bytes(owners[index].second), short_percent(owners[index].second, live), owner_name(owners[index].first)});
  }
  if (shown < owners.size()) {
    section.table.rows.push_back({short_bytes(others), short_percent(others, live),
                                  grouped(static_cast<std::int64_t>(owners.size() - shown)) + " further operations"});
  }
  return section;
}

}  // namespace memprof::detail

// ---- <memprof/report/text/fit_section.hpp>
#include <cstdint>
#include <string>

/// @file
/// The answer: does it fit the device, and if not, what would help.

namespace memprof::detail {

/// What would have had to be freed.
[[nodiscard]] page_line remedy_line(const auto& full) {
  if (!full.holders_known) return "who held the rest is unknown: the profiler itself got no memory";
  if (full.remedy.empty()) return "freeing everything would not suffice: the request exceeds the capacity";
  if (full.remedy.size() == 1) {
    const owned_bytes& owner = full.remedy.front();
    page_line line{"freeing "};
    line.append(owner_name(owner.owner));
    return line.add(", " + short_bytes(owner.bytes) + " in " + grouped(owner.blocks, "block", "blocks") + ", would suffice");
  }
  std::int64_t together = 0;
  for (const owned_bytes& row : full.remedy) together = add_saturating(together, row.bytes);
  return "freeing the " + std::to_string(full.remedy.size()) + " largest owners, " + short_bytes(together) +
         ", would suffice; no single owner does";
}

[[nodiscard]] inline page_line device_name(const auto& source) {
  return source.device.empty() ? page_line{"the device"} : page_line{}.add_name(source.device);
}

/// The first allocation that exceeded the space's capacity, and what would help.
[[nodiscard]] page_section shortfall_section(const auto& source, const auto& space, const segment_steps& steps) {
  const auto& full = space.first_shortfall;
  page_section section;
  section.heading = "Fit";
  page_line line;
  line.add("does not fit ", emphasis::alarm);
  line.append(device_name(source));
  line.add(": " + short_bytes(full.requested) + " requested");
  if (!full.core.empty()) line.add(" on core ").add_name(full.core);
  add_place(line, source, steps, full.time_ns, full.segment, full.operation);
  if (full.category != category::other) line.add(" (" + std::string{to_string(full.category)} + ")");
  line.add("; " + short_bytes(full.free) + " free of " + short_bytes(space.capacity) + ", " + short_bytes(full.shortfall) +
           " short");
  section.lines = {line, remedy_line(full)};
  return section;
}

/// "5.12 GiB of 16.0 GiB free at the peak", or why that is not known.
[[nodiscard]] page_line room_text(const auto& space) {
  if (space.capacity_is_per_core && !lies_on_cores(space)) {
    return "per-core fit unknown: each core has " + short_bytes(space.capacity) + ", but no block was recorded on cores";
  }
  const std::int64_t peak = space.capacity_is_per_core ? space.cores.peaks.total : space.cumulative_peak;
  page_line line{short_bytes(subtract_saturating(space.capacity, peak)) + " of " + short_bytes(space.capacity) +
                 " free at the peak"};
  if (!space.capacity_is_per_core) return line;
  if (space.cores.peaks.busiest_core.empty()) return line.add(" on each core");
  return line.add(" on core ").add_name(space.cores.peaks.busiest_core);
}

/// Whether the space's live bytes fit; nothing if no device was named.
[[nodiscard]] page_section fit_section(const auto& source, const auto& space, const segment_steps& steps) {
  page_section section;
  section.heading = "Fit";
  if (space.first_shortfall.requested != 0) return shortfall_section(source, space, steps);
  if (space.capacity == 0) {
    if (!source.device.empty()) {
      section.lines.push_back(page_line{}.add_name(source.device).add(" does not limit ").add_name(space.name));
    }
    return section;
  }
  page_line line;
  if (!space.capacity_is_per_core || lies_on_cores(space)) {
    line.add("fits ", emphasis::strong);
    line.append(device_name(source));
    line.add(": ");
  }
  line.append(room_text(space));
  section.lines.push_back(line);
  return section;
}

}  // namespace memprof::detail

// ---- <memprof/report/text/page_text.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Lays a report out for a terminal: no line is longer than the page is wide.

namespace memprof::detail {

/// Where the lines of a section begin, behind its heading.
inline constexpr std::size_t page_margin = 10;

[[nodiscard]] inline std::string with_emphasis(const std::string& text, emphasis how, bool is_colored) {
  if (!is_colored || text.empty()) return text;
  switch (how) {
    case emphasis::none: return text;
    case emphasis::strong: return "\x1b[1m" + text + "\x1b[0m";
    case emphasis::alarm: return "\x1b[1;31m" + text + "\x1b[0m";
    case emphasis::caution: return "\x1b[33m" + text + "\x1b[0m";
    case emphasis::faint: return "\x1b[2m" + text + "\x1b[0m";
  }
  return text;
}

/// A finished line, or part of one: its characters with the terminal's control sequences, and the columns that it takes.
struct laid_out {
  std::string text;
  std::size_t width = 0;
  emphasis last = emphasis::none;  ///< of what was added last

  void add(const std::string& plain, emphasis how, bool is_colored) {
    constexpr std::string_view end = "\x1b[0m";
    if (is_colored && how != emphasis::none && how == last && text.ends_with(end)) {
      text.insert(text.size() - end.size(), plain);
    } else {
      text += with_emphasis(plain, how, is_colored);
    }
    width += display_width(plain);
    last = how;
  }
  void pad_to(std::size_t columns) {
    if (width >= columns) return;
    text.append(columns - width, ' ');
    width = columns;
  }
};

/// Whether a space stands between a number and its unit, where no line is broken.
[[nodiscard]] inline bool precedes_unit(std::string_view before, std::string_view after) {
  if (before.empty() || before.back() < '0' || before.back() > '9') return false;
  const std::string_view word = after.substr(0, after.find_first_of(" ,;:)"));
  constexpr std::array<std::string_view, 16> units{"B",  "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "%",
                                                   "ns", "us",  "ms",  "s",   "min", "h",   "d",   "of"};
  return std::find(units.begin(), units.end(), word) != units.end();
}

/// Breaks a line of prose at its spaces. Names stay whole, but no longer than `longest_name`.
class line_breaker {
 public:
  line_breaker(std::size_t columns, bool is_colored, std::size_t longest_name)
      : columns_(columns), longest_name_(longest_name), is_colored_(is_colored) {}

  [[nodiscard]] std::vector<laid_out> operator()(const page_line& line) {
    for (const page_part& part : line.parts()) {
      if (part.is_name) {
        word_.push_back({shortened(part.text, longest_name_), part.how, true});
        continue;
      }
      std::string_view rest = part.text;
      std::size_t space = rest.find(' ');
      while (space != std::string_view::npos) {
        if (precedes_unit(rest.substr(0, space), rest.substr(space + 1))) {
          space = rest.find(' ', space + 1);
          continue;
        }
        add_to_word(rest.substr(0, space), part.how);
        end_word();
        rest.remove_prefix(space + 1);
        space = rest.find(' ');
      }
      add_to_word(rest, part.how);
    }
    end_word();
    return std::move(lines_);
  }

 private:
  void add_to_word(std::string_view text, emphasis how) {
    if (!text.empty()) word_.push_back({std::string{text}, how, false});
  }

  void end_word() {
    if (word_.empty()) return;
    std::size_t width = 0;
    for (const page_part& part : word_) width += display_width(part.text);
    for (page_part& part : word_) {  // what sticks to a name, as a colon, stays
      if (width <= columns_ || !part.is_name) continue;
      const std::size_t whole = display_width(part.text);
      part.text = shortened(part.text, whole - std::min(whole - std::min<std::size_t>(whole, 1), width - columns_));
      width -= whole - display_width(part.text);
    }
    if (lines_.empty() || lines_.back().width + 1 + width > columns_) {
      lines_.emplace_back();
    } else {
      const bool goes_on = lines_.back().last == word_.front().how;
      lines_.back().add(" ", goes_on ? word_.front().how : emphasis::none, is_colored_);
    }
    for (const page_part& part : word_) {
      lines_.back().add(shortened(part.text, columns_ - std::min(columns_, lines_.back().width)), part.how, is_colored_);
    }
    word_.clear();
  }

  std::size_t columns_;
  std::size_t longest_name_;
  bool is_colored_;
  std::vector<page_part> word_;
  std::vector<laid_out> lines_;
};

/// The line of prose on at most `most` lines of that width: names are shortened as far as that takes, to ten columns at least.
[[nodiscard]] inline std::vector<laid_out> broken(const page_line& line, std::size_t columns, std::size_t most, bool is_colored) {
  constexpr std::size_t shortest_name = 10;
  std::size_t longest_name = columns;
  for (;;) {
    std::vector<laid_out> lines = line_breaker{columns, is_colored, longest_name}(line);
    if (lines.size() <= most) return lines;
    if (longest_name <= shortest_name) {
      constexpr std::size_t room_for_ellipsis = 2;
      lines = line_breaker{columns - room_for_ellipsis, is_colored, longest_name}(line);
      lines.resize(most);
      lines.back().add(" \xe2\x80\xa6", emphasis::none, false);
      return lines;
    }
    longest_name = std::max(shortest_name, longest_name * 4 / 5);
  }
}

[[nodiscard]] inline std::size_t width_of(const page_line& cell) {
  std::size_t width = 0;
  for (const page_part& part : cell.parts()) width += display_width(part.text);
  return width;
}

[[nodiscard]] inline bool has_name(const page_line& cell) {
  return std::any_of(cell.parts().begin(), cell.parts().end(), [](const page_part& part) { return part.is_name; });
}

/// A cell in at most `columns`: first its names give way, then its end.
[[nodiscard]] inline laid_out cell_text(const page_line& cell, std::size_t columns, bool is_colored) {
  std::size_t excess = width_of(cell);
  excess -= std::min(excess, columns);
  laid_out result;
  for (const page_part& part : cell.parts()) {
    const std::size_t width = display_width(part.text);
    const std::size_t less = part.is_name ? std::min(excess, width - std::min<std::size_t>(width, 1)) : 0;
    excess -= less;
    const std::size_t room = columns - std::min(columns, result.width);
    result.add(shortened(part.text, std::min(width - less, room)), part.how, is_colored);
  }
  return result;
}

/// How wide the columns are: as their cells, but those with names give way until the table fits `columns`.
[[nodiscard]] inline std::vector<std::size_t> column_widths(const page_table& table, std::size_t columns, std::size_t gap) {
  std::vector<std::size_t> widths(table.columns.size());
  std::vector<bool> gives_way(table.columns.size());
  for (std::size_t column = 0; column < widths.size(); ++column) {
    if (table.has_titles) widths[column] = display_width(table.columns[column].title);
    for (const std::vector<page_line>& row : table.rows) {
      // The last cell of a short row may reach beyond its column.
      if (column >= row.size() || (column + 1 == row.size() && row.size() < widths.size())) continue;
      widths[column] = std::max(widths[column], width_of(row[column]));
      gives_way[column] = gives_way[column] || has_name(row[column]);
    }
  }
  constexpr std::size_t narrowest = 8;
  for (;;) {
    std::size_t whole = gap * (widths.size() - 1);
    for (const std::size_t width : widths) whole += width;
    if (whole <= columns) return widths;
    std::size_t widest = widths.size();
    for (std::size_t column = 0; column < widths.size(); ++column) {
      if (gives_way[column] && widths[column] > narrowest && (widest == widths.size() || widths[column] > widths[widest]))
        widest = column;
    }
    if (widest == widths.size()) return widths;
    --widths[widest];
  }
}

[[nodiscard]] inline std::vector<laid_out> table_text(const page_table& table, std::size_t columns, bool is_colored) {
  std::vector<laid_out> lines;
  if (table.rows.empty()) return lines;
  constexpr std::size_t gap = 2;
  const std::vector<std::size_t> widths = column_widths(table, columns, gap);
  // On a page too narrow for its numbers a table loses its last columns.
  std::size_t fitting = 0;
  for (std::size_t end = 0; fitting < widths.size() && end + widths[fitting] <= columns; ++fitting) end += widths[fitting] + gap;
  const auto add_row = [&](const auto& cell_at, std::size_t cells) {
    laid_out& line = lines.emplace_back();
    std::size_t begin = 0;
    for (std::size_t column = 0; column < std::min(cells, fitting); ++column) {
      const bool is_last = column + 1 == cells;
      const std::size_t room = columns - std::min(columns, begin);
      const laid_out cell =
          cell_text(cell_at(column), is_last && cells < widths.size() ? room : std::min(room, widths[column]), is_colored);
      if (table.columns[column].is_right_aligned && !(is_last && cells < widths.size())) {
        line.pad_to(begin + widths[column] - std::min(widths[column], cell.width));
      } else if (cell.width != 0) {
        line.pad_to(begin);
      }
      line.text += cell.text;
      line.width += cell.width;
      begin += widths[column] + gap;
    }
  };
  if (table.has_titles) {
    add_row([&](std::size_t column) { return page_line{}.add(std::string{table.columns[column].title}, emphasis::faint); },
            widths.size());
  }
  for (const std::vector<page_line>& row : table.rows)
    add_row([&](std::size_t column) -> const page_line& { return row[column]; }, row.size());
  return lines;
}

/// The lines of a section; each paragraph takes at most `most_lines_each`.
[[nodiscard]] inline std::vector<std::string> section_text(const page_section& section, std::size_t columns,
                                                           std::size_t most_lines_each, bool is_colored) {
  std::vector<std::string> lines;
  const std::size_t width = columns - page_margin;
  const auto add = [&](const std::vector<laid_out>& added, std::size_t margin) {
    for (const laid_out& line : added) {
      laid_out whole;
      if (lines.empty()) whole.add(section.heading, emphasis::strong, is_colored);
      whole.pad_to(line.width == 0 ? 0 : margin);
      lines.push_back(whole.text + line.text);
    }
  };
  for (const page_line& line : section.lines) add(broken(line, width, most_lines_each, is_colored), page_margin);
  if (section.is_wide) {
    add(table_text(section.table, columns, is_colored), 0);
  } else {
    add(table_text(section.table, width, is_colored), page_margin);
  }
  for (const page_line& line : section.further_lines) add(broken(line, width, most_lines_each, is_colored), page_margin);
  return lines;
}

}  // namespace memprof::detail

// ---- <memprof/report/text/run_section.hpp>
#include <cstdint>
#include <string>

/// @file
/// The first line of a report: which run it is about.

namespace memprof::detail {

/// The heading of the first line. The reader of this text (format/summary_text.hpp) looks for it.
inline constexpr std::string_view run_heading = "memprof";

/// "nano_gpt --steps 200, rank 0 of 4: 200 steps in 603 segments, 4.21 s".
[[nodiscard]] page_section run_section(const auto& source, const segment_steps& steps) {
  page_section section;
  section.heading = run_heading;
  page_line line;
  if (!source.process.command_line.empty()) {
    line.add_name(source.process.command_line);
    if (source.process.rank >= 0) {
      line.add(", rank " + std::to_string(source.process.rank));
      if (source.process.world_size > 0) line.add(" of " + std::to_string(source.process.world_size));
    }
    line.add(": ");
  }
  if (steps.count > 1) line.add(grouped(steps.count, "step", "steps") + " in ");
  line.add(grouped(count_of_segments(source), "segment", "segments") + ", " + short_time(source.duration_ns));
  if (source.mode == run_mode::no_dispatch) line.add("; no_dispatch: real sizes and lifetimes, nothing allocated");
  if (!source.complete) line.add("; the capture has not ended, numbers so far", emphasis::caution);
  section.lines.push_back(line);
  return section;
}

}  // namespace memprof::detail

// ---- <memprof/report/text/segment_section.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// @file
/// The table of segments: folded by name, or each of them.

namespace memprof::detail {

/// The titles of the table by name, where the numbers of a name differ, and where no name's do. `parse_summary_text` looks for
/// them.
inline constexpr std::array<page_column, 7> segment_columns{{{"Segments: peak", false},
                                                             {"Count", true},
                                                             {"First", true},
                                                             {"Last", true},
                                                             {"Least", true},
                                                             {"Greatest", true},
                                                             {"Mean", true}}};
inline constexpr std::array<page_column, 5> constant_segment_columns{
    {{"Segments", false}, {"Count", true}, {"Peak", true}, {"Change", true}, {"", false}}};

[[nodiscard]] inline double mean_of(const value_summary& values, std::int64_t count) {
  return count == 0 ? 0.0 : static_cast<double>(values.sum) / static_cast<double>(count);
}

[[nodiscard]] inline page_line name_of(const segments_of_name& name) {
  return name.stands_for_others ? page_line{"all other names"} : page_line{}.add_name(name.name);
}

/// Whether the numbers are the same as they are written, so that one stands for all of them.
[[nodiscard]] inline bool looks_constant(const value_summary& values) {
  return short_bytes(values.least) == short_bytes(values.greatest);
}
[[nodiscard]] inline bool looks_constant(const segments_of_name& name) {
  return looks_constant(name.segment_peak) && looks_constant(name.segment_change);
}

[[nodiscard]] inline std::size_t rows_of_name(const segments_of_name& name) { return looks_constant(name) ? 1 : 2; }

/// "each time", or by how much the numbers differ that are written as one.
[[nodiscard]] inline std::string spread_text(const segments_of_name& name) {
  if (name.count < 2) return {};
  const auto spread = [](const value_summary& values) { return subtract_saturating(values.greatest, values.least); };
  const std::int64_t most = std::max(spread(name.segment_peak), spread(name.segment_change));
  return most == 0 ? "each time" : "each time within " + short_bytes(most);
}

/// The row of a name whose peak and change looked the same each time, where all names do.
inline void add_constant_row(page_table& table, const segments_of_name& name) {
  table.rows.push_back({name_of(name), grouped(name.count), short_bytes(name.segment_peak.first),
                        signed_short_bytes(name.segment_change.first), spread_text(name)});
}

/// The rows of a name: one if its peak and its change looked the same each time, else one for each.
inline void add_name_rows(page_table& table, const segments_of_name& name) {
  std::vector<page_line> peaks{name_of(name), grouped(name.count)};
  const value_summary& peak = name.segment_peak;
  const value_summary& change = name.segment_change;
  if (looks_constant(name)) {
    peaks.emplace_back(short_bytes(peak.first));
    const std::string spread = spread_text(name);
    peaks.emplace_back("change " + signed_short_bytes(change.first) + (spread.empty() ? "" : ", " + spread));
    table.rows.push_back(std::move(peaks));
    return;
  }
  for (const std::int64_t value : {peak.first, peak.last, peak.least, peak.greatest}) peaks.emplace_back(short_bytes(value));
  peaks.emplace_back(short_bytes(mean_of(peak, name.count)));
  table.rows.push_back(std::move(peaks));
  std::vector<page_line> changes{"  change", ""};
  for (const std::int64_t value : {change.first, change.last, change.least, change.greatest}) {
    changes.emplace_back(signed_short_bytes(value));
  }
  changes.emplace_back(signed_short_bytes(mean_of(change, name.count)));
  table.rows.push_back(std::move(changes));
}

/// A row or two for each name within `most_rows`, in the order in which they came: those with the greatest peaks and changes if
/// not all have room.
[[nodiscard]] inline page_section segment_section(std::vector<segments_of_name> names, std::size_t most_rows) {
  page_section section;
  section.is_wide = true;
  if (names.empty()) return section;
  section.table.has_titles = true;
  const auto rows_of_all = [&] {
    std::size_t rows = 0;
    for (const segments_of_name& name : names) rows += rows_of_name(name);
    return rows;
  };
  if (rows_of_all() > most_rows) names = segments_by_family(names);
  std::int64_t left_out_names = 0;
  std::int64_t left_out_segments = 0;
  std::size_t rows = rows_of_all();
  if (rows > most_rows) {
    const auto weight = [](const segments_of_name& name) {
      return std::max(
          {name.segment_peak.greatest, name.segment_change.greatest, subtract_saturating(0, name.segment_change.least)});
    };
    std::vector<std::size_t> order(names.size());
    for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
    std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
      const auto weights = std::pair{weight(names[left]), weight(names[right])};
      return weights.first != weights.second ? weights.first > weights.second : left < right;
    });
    std::vector<bool> is_shown(names.size());
    std::size_t used = 1;  // the row that counts the others
    for (const std::size_t index : order) {
      if (used + rows_of_name(names[index]) > most_rows) break;
      used += rows_of_name(names[index]);
      is_shown[index] = true;
    }
    std::vector<segments_of_name> shown;
    for (std::size_t index = 0; index < names.size(); ++index) {
      if (is_shown[index]) {
        shown.push_back(std::move(names[index]));
      } else {
        ++left_out_names;
        left_out_segments += names[index].count;
      }
    }
    names = std::move(shown);
  }
  const bool all_constant =
      std::all_of(names.begin(), names.end(), [](const segments_of_name& name) { return looks_constant(name); });
  if (all_constant) {
    section.table.columns.assign(constant_segment_columns.begin(), constant_segment_columns.end());
  } else {
    section.table.columns.assign(segment_columns.begin(), segment_columns.end());
  }
  for (const segments_of_name& name : names) {
    all_constant ? add_constant_row(section.table, name) : add_name_rows(section.table, name);
  }
  if (left_out_names > 0) {
    section.table.rows.push_back({grouped(left_out_names, "further name", "further names"), grouped(left_out_segments)});
  }
  return section;
}

/// A row for each segment that the profile has, in the order of time.
[[nodiscard]] page_section every_segment_section(const auto& source, const auto& space, const segment_steps& steps) {
  page_section section;
  section.is_wide = true;
  section.table.has_titles = true;
  section.table.columns = {{"Segment", false}, {"Step", true}, {"Begin", true},     {"Peak", true},
                           {"Change", true},   {"Live", true}, {"Allocated", true}, {"Freed", true}};
  for (std::size_t index = 0; index < source.segments.size() && index < space.segments.size(); ++index) {
    const auto& usage = space.segments[index];
    section.table.rows.push_back({page_line{}.add_name(source.segments[index].name), grouped(steps.of_segment[index] + 1),
                                  short_time(source.segments[index].begin_ns), short_bytes(usage.segment_peak),
                                  signed_short_bytes(usage.segment_change), short_bytes(usage.cumulative_current),
                                  short_bytes(usage.allocations), short_bytes(usage.deallocations)});
  }
  const std::int64_t missing = count_of_segments(source) - static_cast<std::int64_t>(source.segments.size());
  if (missing > 0) {
    section.further_lines.emplace_back(grouped(missing, "more segment", "more segments") +
                                       " that the profile has only by name; the trace has all");
  }
  return section;
}

}  // namespace memprof::detail

// ---- <memprof/report/text/space_section.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// @file
/// Which memory space comes first, and a line for each other one.

namespace memprof::detail {

[[nodiscard]] bool is_full(const auto& space) { return space.first_shortfall.requested != 0 || !space.out_of_memory.empty(); }

[[nodiscard]] bool has_anything(const auto& space) {
  return space.cumulative_peak != 0 || space.reserved.peak != 0 || is_full(space) || space.cumulative_current != 0;
}

/// The spaces, the most interesting first: the one that was asked for, then those that were full, then those with the greatest
/// peaks. Throws `memprof::error` if there is none of the name that was asked for.
[[nodiscard]] std::vector<const space_profile*> ordered_spaces(const auto& source, const text_options& options) {
  std::vector<const space_profile*> spaces;
  const space_profile* const chosen = options.primary_space.empty() ? nullptr : &source.space(options.primary_space);
  for (const space_profile& space : source.spaces) spaces.push_back(&space);
  std::sort(spaces.begin(), spaces.end(), [&](const space_profile* left, const space_profile* right) {
    if ((left == chosen) != (right == chosen)) return left == chosen;
    if (is_full(*left) != is_full(*right)) return is_full(*left);
    if (left->cumulative_peak != right->cumulative_peak) return left->cumulative_peak > right->cumulative_peak;
    return left < right;  // as they lie in the profile
  });
  return spaces;
}

/// A row for each of the spaces, of which the first has its own answer and is left out; beyond `most` only how many.
[[nodiscard]] page_section space_section(const auto& source, const std::vector<const space_profile*>& spaces,
                                         const segment_steps& steps, std::size_t most) {
  page_section section;
  section.heading = "Spaces";
  section.table.columns = {{"Space", false}, {"Peak", true}, {"Live at end", true}, {"Fit", false}, {"Peak in", false}};
  std::vector<const space_profile*> others;
  for (std::size_t index = 1; index < spaces.size(); ++index) {
    if (has_anything(*spaces[index])) others.push_back(spaces[index]);
  }
  const std::size_t shown = others.size() <= most + 1 ? others.size() : most;
  for (std::size_t index = 0; index < shown; ++index) {
    const space_profile& space = *others[index];
    page_line fit;
    if (!space.out_of_memory.empty()) {
      fit.add("out of memory", emphasis::alarm);
    } else if (space.first_shortfall.requested != 0) {
      fit.add("does not fit", emphasis::alarm);
    } else if (space.capacity != 0 && !space.capacity_is_per_core) {
      fit.add("fits, " + short_bytes(subtract_saturating(space.capacity, space.cumulative_peak)) + " free");
    }
    page_line place;
    place.add(short_time(space.peak_time_ns));
    add_segment(place, source, steps, space.peak_segment);
    section.table.rows.push_back({page_line{}.add_name(space.name), "peak " + short_bytes(space.cumulative_peak),
                                  "end " + short_bytes(space.cumulative_current), fit,
                                  space.cumulative_peak == 0 ? page_line{} : place});
  }
  if (shown < others.size()) {
    section.further_lines.emplace_back(grouped(static_cast<std::int64_t>(others.size() - shown)) +
                                       " further spaces with peaks of at most " + short_bytes(others[shown]->cumulative_peak));
  }
  return section;
}

/// A line for each memory in which several spaces lie: their joint peak, and what each had of it. Nothing where only one of them
/// ever held anything, since its own peak says that.
[[nodiscard]] page_section together_section(const auto& source, const segment_steps& steps) {
  constexpr std::size_t most_spaces = 4;
  page_section section;
  section.heading = "Together";
  for (const memory_profile& memory : source.memories) {
    std::size_t used = 0;
    for (const space_profile& space : source.spaces) {
      const bool lies_in_it = std::any_of(memory.spaces.begin(), memory.spaces.end(),
                                          [&](const owned_bytes& part) { return part.owner == space.name; });
      used += lies_in_it && space.cumulative_peak != 0 ? 1 : 0;
    }
    if (used < 2) continue;
    page_line line;
    line.add(short_and_exact_bytes(memory.cumulative_peak), emphasis::strong).add(" of ").add_name(memory.name, emphasis::strong);
    add_place(line, source, steps, memory.peak_time_ns, memory.peak_segment, memory.peak_operation);
    std::int64_t others = 0;
    for (std::size_t index = 0; index < memory.spaces.size(); ++index) {
      const owned_bytes& part = memory.spaces[index];
      if (index >= most_spaces) {
        others = add_saturating(others, part.bytes);
        continue;
      }
      line.add(index == 0 ? ": " : ", ").add_name(part.owner).add(" " + short_bytes(part.bytes));
    }
    if (others != 0) line.add(", others " + short_bytes(others));
    section.lines.push_back(line);
  }
  return section;
}

}  // namespace memprof::detail

// ---- <memprof/report/text/summary_lines.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

/// @file
/// The summary: which answers it has, in which order, and what each may take of the lines that there are.

namespace memprof::detail {

/// How much of each answer there is.
struct summary_limits {
  std::size_t owners;
  std::size_t owners_at_end;
  std::size_t faults;
  std::size_t spaces;
  std::size_t lines_each;  ///< of a sentence
};

/// From what is best to read to what leaves room for the rest in any case.
inline constexpr std::array<summary_limits, 4> summary_levels{
    {{5, 3, 8, 6, 3}, {5, 3, 4, 3, 2}, {4, 2, 4, 3, 2}, {3, 1, 3, 2, 1}}};

/// Of kinds of faults in the numbers: no limit.
inline constexpr std::size_t all_faults = 1000;

/// The rows that the table of segments has at least.
inline constexpr std::size_t least_segment_rows = 8;

[[nodiscard]] inline bool asks_for_more(const text_options& options) {
  const text_options usual;
  return options.owners > usual.owners || options.largest_blocks != 0 || options.streams != 0 || options.core_ranges != 0 ||
         options.all_spaces || options.all_segments || options.all_faults;
}

/// The answers about one space, in the order in which they are read.
[[nodiscard]] std::vector<page_section> answers_for(const auto& source, const auto& space, const segment_steps& steps,
                                                    const std::vector<segments_of_name>& names, const text_options& options,
                                                    const summary_limits& limits) {
  return {failure_section(source, space, steps),
          peak_section(source, space, steps),
          owner_section(space.live_at_peak, std::min(options.owners, limits.owners)),
          block_section(space.live_at_peak, options.largest_blocks),
          core_section(space, options.core_ranges),
          reserved_section(space),
          limits.lines_each == 1 ? page_section{} : active_section(space),  // where there is hardly room for the rest
          stream_section(space, options.streams),
          fit_section(source, space, steps),
          growth_section(names),
          end_section(source, space, std::min(options.owners, limits.owners_at_end))};
}

/// All that is said, but for the tables of segments.
[[nodiscard]] std::vector<page_section> summary_sections(const auto& source, const std::vector<const space_profile*>& spaces,
                                                         const segment_steps& steps, const text_options& options,
                                                         const summary_limits& limits) {
  std::vector<page_section> sections{run_section(source, steps)};
  const std::size_t in_full = options.all_spaces ? spaces.size() : std::min<std::size_t>(1, spaces.size());
  for (std::size_t index = 0; index < in_full; ++index) {
    for (page_section& section :
         answers_for(source, *spaces[index], steps, segments_by_name(source, *spaces[index]), options, limits)) {
      sections.push_back(std::move(section));
    }
  }
  if (!options.all_spaces) sections.push_back(space_section(source, spaces, steps, limits.spaces));
  sections.push_back(together_section(source, steps));
  sections.push_back(check_section(source, limits.faults));
  sections.push_back(fact_section(source));
  return sections;
}

/// The lines of a summary, without ends.
[[nodiscard]] std::vector<std::string> summary_lines(const auto& source, const text_options& options) {
  const std::size_t columns = std::max<std::size_t>(options.columns, 60);
  const std::size_t most_lines = std::max<std::size_t>(options.max_lines, 32);
  const std::vector<const space_profile*> spaces = ordered_spaces(source, options);
  const segment_steps steps = steps_of(source);
  std::vector<std::string> lines;
  const auto add = [&](const page_section& section, std::size_t lines_each) {
    for (std::string& line : section_text(section, columns, lines_each, options.is_colored)) lines.push_back(std::move(line));
  };
  if (spaces.empty()) {
    add(run_section(source, steps), 2);
    lines.emplace_back("No allocation was recorded.");
    add(check_section(source, summary_levels[0].faults), 2);
    add(fact_section(source), 2);
    return lines;
  }
  for (summary_limits limits : summary_levels) {
    if (options.owners > text_options{}.owners) limits.owners = limits.owners_at_end = options.owners;
    if (options.all_faults) limits.faults = all_faults;
    lines.clear();
    for (const page_section& section : summary_sections(source, spaces, steps, options, limits)) add(section, limits.lines_each);
    if (asks_for_more(options) || lines.size() + 2 + least_segment_rows <= most_lines) break;
  }
  const std::size_t tables = options.all_spaces ? spaces.size() : 1;
  for (std::size_t index = 0; index < tables && !source.segments.empty(); ++index) {
    const space_profile& space = *spaces[index];
    lines.emplace_back();
    if (options.all_spaces && spaces.size() > 1)
      lines.push_back("Segments in " + shortened(on_one_line(space.name), columns - 12));
    const std::size_t room = asks_for_more(options) ? most_lines : most_lines - std::min(most_lines, lines.size() + 1);
    add(options.all_segments ? every_segment_section(source, space, steps)
                             : segment_section(segments_by_name(source, space), room),
        1);
  }
  return lines;
}

}  // namespace memprof::detail

// ---- <memprof/report/text.hpp>
#include <concepts>
#include <string>

namespace memprof {

/// A profile as text: answers for people, or with `text_format::tracker` the lines of tt-train's memory tracker for scripts.
///
/// The summary has at most `text_options::max_lines` lines of at most `text_options::columns` columns, however long the run was:
/// the peak, where it was and whose; whether it fits, if a device was named; growth per step; what is live at the end; what is
/// wrong with the numbers; and the segments, folded by name. Bytes have three significant digits, in units of 1024 (KiB, MiB),
/// and totals all their digits too. Text is UTF-8. `parse_summary_text` reads back what `memprof analyze` needs.
///
/// Throws `memprof::error` if `text_options::primary_space` names no space of the profile. A template, as are the parts of the
/// report, only so that units that print no profile do not compile it.
template <std::same_as<profile> Profile = profile>
[[nodiscard]] std::string to_text(const Profile& source, const text_options& options = {}) {
  std::string text;
  if (options.format == text_format::tracker) {
    detail::append_tracker_lines(text, source, options);
    return text;
  }
  for (const std::string& line : detail::summary_lines(source, options)) text += line + '\n';
  return text;
}

}  // namespace memprof

// ---- <memprof/detail/terminal.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace memprof::detail {

/// Whether a stream is a terminal that shows colours: not where `NO_COLOR` is set (https://no-color.org) or `TERM` is "dumb".
[[nodiscard]] inline bool shows_colors(std::FILE* stream) noexcept {
  if (::isatty(::fileno(stream)) != 1) return false;
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') && kind != nullptr && std::string_view{kind} != "dumb";
}

/// The columns of the terminal that a stream is; 0 if it is none, or one without a size.
[[nodiscard]] inline std::size_t terminal_columns(std::FILE* stream) noexcept {
  winsize size{};
  return ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace memprof::detail

// ---- <memprof/report/text/fitted_options.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdio>

namespace memprof::detail {

/// The options for a text that goes to `stream`: no wider than its terminal, and coloured if that shows colours.
[[nodiscard]] inline text_options fitted_to(std::FILE* stream, text_options options) noexcept {
  if (const std::size_t columns = terminal_columns(stream); columns != 0) options.columns = std::min(options.columns, columns);
  options.is_colored = options.is_colored || shows_colors(stream);
  return options;
}

}  // namespace memprof::detail

// ---- <memprof/memprof.hpp>
/// @file
/// memprof: where a training loop's memory goes. This header is all a program needs that wants a text summary; it needs no other
/// library. More by one include each: `<memprof/profile/json.hpp>`, `<memprof/backend/new_delete.hpp>`.

#include <cstdio>

namespace memprof {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Prints the summary of the active capture up to now, or of the last one, on stdout: in colours where that is a terminal, and no
/// wider than it.
template <class State = detail::capture_state>
void print_memory_usage(const text_options& options = {}) {
  const profile current = current_profile<State>();
  const detail::internal_guard hidden;  // the text must not show in what it reports
  std::fputs(to_text(current, detail::fitted_to(stdout, options)).c_str(), stdout);
}

}  // namespace enabled
#else
inline namespace disabled {

inline void print_memory_usage(const text_options& = {}) noexcept {}

}  // namespace disabled
#endif

}  // namespace memprof

