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
    const shape told = shape_of(bytes, alignment);
    const detail::lock_guard guard{lock_};
    // Without memory for the list the address is never used again, which is safe: the range is far larger than what is live.
    const std::size_t list = make_list(told);
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
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15U) >> 20) & (lists_.size() - 1);
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
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// Nanoseconds since 1970.
[[nodiscard]] inline std::int64_t unix_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
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
  deallocate,           ///< address, bytes as the caller told them (0: not told), space
  annotate,             ///< address, space, tag, label: an interned `name\x1fshape\x1fdtype[\x1frequires_grad]`, 0 for none
  scope_begin,          ///< label: the operation's name; address: `scope_address(number, number of the one around it)`; tag
  scope_end,            ///< label: as in its `scope_begin`; address: `scope_address(number, its thread, if that is another)`
  thread_begin,         ///< address: number of the thread whose events follow: no operation is open; bytes: its id in the
                        ///< system; label: its name
  allocate_on_cores,    ///< address: as `address_on_cores` makes it; bytes on each core; label: packed `core_range`; space, tag
  deallocate_on_cores,  ///< address, bytes (0: not told), label, space: as in its `allocate_on_cores`
  deallocate_circular_buffers,  ///< label: packed `core_range`; all circular buffers on any of these cores; space
  reserve,                      ///< address, bytes, space, label: a `stream_pool` or 0: an allocator took a range from the device
  release,                      ///< address, bytes (0: not told), space, label: it gave one back
  allocate_on_stream,           ///< as `allocate`, with the label of a `stream_pool`
  deallocate_on_stream,         ///< as `deallocate`, with the label of its `allocate_on_stream`
  out_of_memory,                ///< bytes: asked for, address: bytes free on the device, space: it had no memory for a block
  segment_end,                  ///< label: the name of the segment that ends
  clock_reading,                ///< address: nanoseconds since the capture began, when the clock of the stamps showed `stamp`
  lost_events,                  ///< so far; address: dropped ones; bytes: those of signal handlers; tag: 1 if there are others
                                ///< of which nobody knows how many
  capture_end,                  ///< the last event
  gap,                          ///< bytes: events that are missing here; what is live now follows
  live_begin,                   ///< until `live_end` come the events that lead to what is live now, and to nothing else
  live_end,                     ///< from here on events are counted
};

/// The names of `event_kind`, in the order of its values; the first is that of no kind.
inline constexpr std::array<std::string_view, 22> event_kind_names{"unknown",
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
                                                                   "live_begin",
                                                                   "live_end"};
static_assert(event_kind_names.size() == static_cast<std::size_t>(event_kind::live_end) + 1);

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
         (kind >= event_kind::allocate_on_cores && kind < event_kind::out_of_memory);
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

/// Stands between the parts of a name that has several, such as a stream and a pool.
inline constexpr char name_separator = '\x1f';

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

  /// The id of `text`, interned if it is new; 0 if the system has no memory for it.
  [[nodiscard]] label intern(std::string_view text) noexcept {
    if (text.size() > max_name_bytes) text = text.substr(0, max_name_bytes);
    if (2 * (entries_.size() + 1) > slots_.size() && !grow()) return 0;
    const std::uint32_t hash = hash_of(text);
    std::size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
      const entry& known = entries_[slots_[slot] - 1];
      if (known.hash == hash && is_text(known.text, known.size, text)) return slots_[slot];
    }
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
  std::uint64_t unused[4];

  [[nodiscard]] static constexpr std::size_t bytes_for(std::uint32_t capacity) noexcept {
    return sizeof(ring_slots) + capacity * sizeof(event);
  }
};
static_assert(sizeof(ring_slots) == 64);

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
/// Thread-safe. While it is empty, as it nearly always is, asking costs one load.
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

  /// Takes a block away; false if it is none of them.
  [[nodiscard]] bool remove(std::uintptr_t address) noexcept {
    const std::uint64_t hash = hash_of(address);
    if ((filter_[word_of(hash)].load(std::memory_order_relaxed) & bit_of(hash)) == 0) [[likely]]
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
    return static_cast<std::size_t>(hash_of(address) >> 20) & (slots.size() - 1);
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

  /// Addresses of blocks that do not exist; null before the first capture with `run_mode::no_dispatch`.
  std::atomic<phantom_addresses*> phantom{nullptr};

  /// The profiler's own blocks that the program may free; null before the first.
  std::atomic<hidden_blocks*> hidden{nullptr};

  label_table* labels = nullptr;
  label space_names[max_spaces + 1] = {};
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

/// The id of `text`; 0 if the system has no memory. Under the lock.
[[nodiscard]] inline label intern(registry& shared, std::string_view text) noexcept {
  if (shared.labels == nullptr) {
    void* const pages = detail::map_pages(sizeof(label_table));
    if (pages == nullptr) return 0;
    shared.labels = new (pages) label_table;
    shared.space_names[cpu_space] = shared.labels->intern("cpu");
    shared.space_count = 1;
  }
  const std::size_t known = shared.labels->size();
  const label id = shared.labels->intern(text);
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

/// Puts errno back at the end of the scope. Allocations are told of between a failed call and the look at its errno: by
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
class [[nodiscard]] nested_allocation : activity_guard {
 public:
  nested_allocation() noexcept : activity_guard(activity::nested) {}
};

/// The calling thread works for the profiler in a way that its own hooks may see. Signals wait meanwhile: what their handlers
/// allocate could not be told from what the profiler does.
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

/// A ring with pages of its own, or null if the system has none. Under the lock.
[[nodiscard]] inline event_ring* make_ring(registry& shared) noexcept {
  if (!reserve_drain_heap(shared)) return nullptr;
  void* const ring_pages = map_pages(sizeof(event_ring));
  if (ring_pages == nullptr) return nullptr;
  ring_slots* const slots = make_slots(shared.ring_count + 1, shared.ring_capacity);
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

/// Exchanges a drained ring's slots for as many as are asked for now. Keeps the old ones if there is no memory.
inline void resize_ring(registry& shared, event_ring& ring) noexcept {
  ring_slots* const slots = make_slots(ring.id, shared.ring_capacity);
  if (slots == nullptr) return;
  shared.ring_bytes -= ring.bytes();
  slots->first_number = ring.slots->first_number + static_cast<std::uint64_t>(ring.cursor - ring.slots->first);
  unmap_pages(ring.slots, ring_slots::bytes_for(ring.slots->capacity));
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
  if (ring.slots->capacity != shared.ring_capacity) resize_ring(shared, ring);
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
  const bool has_old_slots = ring.slots->capacity != shared.ring_capacity;
  if ((end - ring.cursor < 2 || has_old_slots) && !empty_ring(shared, ring, may_drain)) return room::none;
  ring.limit.store(ring.slots->first + ring.slots->capacity, std::memory_order_relaxed);
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

/// The id of the memory space of that name, a new one if there is none; `any_space` if there are too many or the system has no
/// memory. Under the registry's lock.
[[nodiscard]] inline std::uint8_t id_of_space(registry& shared, std::string_view name) noexcept {
  const label wanted = abi_1::intern(shared, name);
  for (std::uint32_t id = 0; id < shared.space_count; ++id) {
    if (shared.space_names[id] == wanted) return static_cast<std::uint8_t>(id);
  }
  if (wanted == 0 || shared.space_count == registry::max_spaces) return any_space;
  shared.space_names[shared.space_count] = wanted;
  const auto id = static_cast<std::uint8_t>(shared.space_count++);
  if (shared.define_space != nullptr) shared.define_space(shared, id);
  return id;
}

[[noreturn, gnu::cold]] inline void raise_too_many_spaces(std::string_view name) {
  raise("memory_space: cannot add '" + std::string{name} + "': a process has at most " + std::to_string(registry::max_spaces) +
        " memory spaces; give blocks of the same kind the same space");
}

}  // namespace detail

/// A named kind of memory whose blocks are counted together: `cpu`, `cuda:0`, `dram`. A name is one space in the whole process.
class memory_space {
 public:
  /// The space of that name. Throws `memprof::error` at the 256th different name. Takes a lock: make it once, not for each event.
  explicit memory_space(std::string_view name) {
    {
      const detail::control_guard control;
      id_ = detail::id_of_space(abi_1::process_registry, name);
    }
    if (id_ == any_space) detail::raise_too_many_spaces(name);
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

/// Records the end of a segment of capture `number`, or of whichever is active for 0. False if that is not active.
///
/// An event like any other, in the calling thread's ring: its stamp gives it its place among those of all threads, and it needs
/// no lock. Only where full rings drop events it goes another way, since this one must not be dropped.
inline bool record_segment_end(std::uint32_t number, std::string_view name) noexcept {
  registry& shared = abi_1::process_registry;
  thread_slot& self = abi_1::this_thread;
  const std::uint32_t active = shared.active_capture.load(std::memory_order_relaxed);
  if (active == 0 || (number != 0 && active != number)) return false;
  if (!is_outside(self)) {
    note_reentrant(shared, activity::busy);
    return true;
  }
  event ended{0, 0, 0, find_label(name), event_kind::segment_end, any_space, 0};
  if (!shared.drop_when_full.load(std::memory_order_relaxed)) {
    if (self.has_ring()) self.ring->order_word = order_unclaimed;  // so that it gets a stamp
    record<no_pauses>(shared, self, ended);
    return true;
  }
  const control_guard control{shared};
  if (shared.drain == nullptr) return false;
  shared.drain(shared);
  ended.stamp = shared.stamps.next();
  shared.put_event(shared, ended);
  return true;
}

}  // namespace memprof::detail

// ---- <memprof/record/stream_and_pool.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace memprof {

/// A stream of a device and the pool from which an allocator serves it: blocks are told with one so that the profile says which
/// stream and which pool held how much (`space_profile::streams`). By default it is none.
class stream_pool {
 public:
  constexpr stream_pool() = default;
  /// The stream and the pool of these names, of which some 60 characters each are kept. Takes a lock, and nothing from
  /// `operator new`: make it once for each stream and pool, not for each event. It is none if the system has no memory.
  explicit stream_pool(std::string_view stream, std::string_view pool = {}) noexcept {
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
  bool operator==(const stream_pool&) const = default;

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
  constexpr optional_category(category told) noexcept : tag_(static_cast<std::uint16_t>(static_cast<unsigned>(told) + 1U)) {}

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

/// Whether autograd computes a gradient for a tensor (PyTorch's `requires_grad`); `unknown` where nobody told.
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

/// The address by which blocks on cores are told apart: the upper 16 bits also hold, inverted, the first core.
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
inline constexpr std::size_t max_fact_text = 4096;  ///< bytes of a text, and of the table's name
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

  /// The space of that name. Takes a lock: ask once, not for each event. Throws `memprof::error` at the 256th different name.
  [[nodiscard]] memory_space space(std::string_view name) const { return memory_space{name}; }

  /// `space` is the kind of memory, made once: `const memprof::memory_space dram{"dram"}`. Cost: that of one event. `told`
  /// overrides the category of the operation that is open on this thread.
  void allocate(space_id space, block_address address, std::size_t bytes, optional_category told = {}) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::allocate, space.value, told.tag()});
  }
  /// `bytes`, if given, is compared with what was allocated.
  void deallocate(space_id space, block_address address, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, 0, event_kind::deallocate, space.value, 0});
  }

  /// An allocator that keeps freed memory for later (PyTorch's caching allocator) took a range of addresses from the device: the
  /// profile tells it as reserved, beside what the program allocated of it. Cost: that of one event; accounting for it costs a
  /// step for each range that is held. `told`: for which stream, and for which pool.
  void reserve(space_id space, block_address address, std::size_t bytes, stream_pool told = {}) const noexcept {
    detail::record_event({0, address.value, bytes, told.name(), event_kind::reserve, space.value, 0});
  }
  /// The allocator gave a range back, which may be part of those it took, or several; 0: the one that began at `address`.
  void release(space_id space, block_address address, std::size_t bytes = 0, stream_pool told = {}) const noexcept {
    detail::record_event({0, address.value, bytes, told.name(), event_kind::release, space.value, 0});
  }

  /// An allocation for a stream, from a pool; else as `allocate`. The profile sums up the blocks of each in
  /// `space_profile::streams`.
  void allocate_on_stream(space_id space, block_address address, std::size_t bytes, stream_pool where,
                          optional_category told = {}) const noexcept {
    detail::record_event({0, address.value, bytes, where.name(), event_kind::allocate_on_stream, space.value, told.tag()});
  }
  /// The end of such a block, told with the same stream and pool.
  void deallocate_on_stream(space_id space, block_address address, stream_pool where, std::size_t bytes = 0) const noexcept {
    detail::record_event({0, address.value, bytes, where.name(), event_kind::deallocate_on_stream, space.value, 0});
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
  /// of several rectangles is told as a block for each, at the same address. A buffer whose allocator reserves the address on
  /// every core is told on all cores of the device. Cores of different devices belong to different spaces. To `annotate` the
  /// block, use its `address_on_cores`.
  ///
  /// Cost: that of one event; accounting for it costs a step for each core. Rectangles with exchanged corners are counted in
  /// `event_anomalies::rejected_events`, for the calls below too.
  void allocate_on_cores(space_id space, block_address address, std::size_t bytes_per_core, core_range cores,
                         buffer_kind kind = buffer_kind::buffer, optional_category told = {}) const noexcept {
    const auto tag = static_cast<std::uint16_t>(told.tag() | static_cast<unsigned>(kind) << 8);
    detail::record_event({0, address_on_cores(address.value, cores), bytes_per_core, cores.packed(),
                          event_kind::allocate_on_cores, space.value, tag});
  }
  /// The end of a block, told with the same `cores`. `bytes_per_core`, if given, is compared with what was allocated.
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
  /// Throws `memprof::error` if the process has too many memory spaces. `upstream` must outlive the resource.
  explicit memory_resource(std::string_view space = "cpu", std::pmr::memory_resource* upstream = std::pmr::new_delete_resource())
      : space_(space), upstream_(upstream) {}

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
    const detail::nested_allocation nested;
    upstream_->deallocate(address, bytes, alignment);
  }

  // Identity, which needs no run-time types: two resources may count in different spaces.
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  [[nodiscard]] void* allocate_upstream(std::size_t bytes, std::size_t alignment) {
    const detail::nested_allocation nested;
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
  explicit memory_resource(std::string_view = "cpu", std::pmr::memory_resource* upstream = std::pmr::new_delete_resource())
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
    const nested_allocation nested;
    plain_heap::deallocate(address, bytes, alignment);
  }

 private:
  [[nodiscard]] static void* allocate_hidden(std::size_t bytes, std::size_t alignment) {
    const nested_allocation nested;
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

/// The greatest `capture_info::largest_blocks`.
inline constexpr std::uint32_t max_largest_blocks = 4096;

/// What a trace says of itself: where and when it was made, and how much detail its profile has.
struct capture_info {
  std::string library_version;
  run_mode mode = run_mode::normal;
  std::string device;              ///< name of the device whose capacities limit spaces; empty: none was described
  std::int64_t begin_unix_ns = 0;  ///< wall clock at the capture's begin
  std::uint64_t begin_stamp = 0;
  std::uint32_t timeline_points = 4096;  ///< these three as in `capture_options`
  std::uint32_t largest_blocks = 10;
  std::uint32_t owners_per_segment = 32;
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

  bool operator==(const segment&) const = default;
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
/// names that `annotate` told later are not in it. The run went on, so peaks are those without a limit.
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
  event_tally unmatched_frees;  ///< of blocks allocated before the capture or never seen; bytes as the caller told, if it did
  event_tally replaced_allocations;   ///< a second allocation at a live address: the older block counts as deallocated
  event_tally mismatched_sizes;       ///< frees that told another size than was allocated; bytes: sum of the differences
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

/// What lay on single cores. All empty for a space of which no block was told on cores (`event_sink::allocate_on_cores`); in the
/// other numbers of the space such a block counts with its bytes on all its cores together.
struct core_profile {
  core_peaks peaks;                      ///< over the whole capture
  std::vector<core_peaks> segments;      ///< one for each of `profile::segments`; blocks of earlier segments count too
  std::vector<core_range_peaks> ranges;  ///< over the whole capture, the greatest total first

  bool operator==(const core_profile&) const = default;
};

/// What an allocator held of the device within one segment: at most, and at its end.
struct reserved_usage {
  std::int64_t peak = 0;
  std::int64_t current = 0;

  bool operator==(const reserved_usage&) const = default;
};

/// What an allocator that keeps freed memory for later held of the device, in bytes since the capture began; what the program
/// allocated of it is in the other numbers of the space. All 0 and empty if no such allocator told (`event_sink::reserve`).
struct reserved_profile {
  std::int64_t peak = 0;
  std::int64_t current = 0;              ///< at the end
  std::vector<reserved_usage> segments;  ///< one for each of `profile::segments`
  event_tally unmatched_releases;        ///< of ranges, or parts of them, taken before the capture or never seen
  event_tally replaced_reservations;     ///< of addresses that were held already: the older range counts as given back

  bool operator==(const reserved_profile&) const = default;
};

/// What one stream of a device had of a space, from one pool of its allocator; bytes. The last row of a space may stand for all
/// streams and pools beyond the first 64: its `stream` then says so, and `pool` is empty.
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

  bool operator==(const stream_usage&) const = default;
};

/// An allocation that failed because the device had no memory for it, all as it was known at that moment.
struct out_of_memory_failure {
  std::int64_t requested = 0;       ///< bytes, as the allocator told: rounded up, if it rounds
  std::int64_t device_free = 0;     ///< bytes that were free on the device, as it told
  std::int64_t live_bytes = 0;      ///< of the space, since the capture began
  std::int64_t reserved_bytes = 0;  ///< that the allocator held of the device; live ones are part of them
  std::string operation;            ///< path of the operation that asked, empty if none was open
  std::int64_t segment = -1;        ///< index into `profile::segments` of the one in which it was
  std::int64_t time_ns = 0;

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
  std::int64_t capacity = 0;          ///< bytes, as `capture_options::device` told; 0: no limit
  bool capacity_is_per_core = false;  ///< that of each core: only blocks that were told on cores are compared with it
  capacity_shortfall first_shortfall;
  std::vector<segment_usage> segments;  ///< one for each of `profile::segments`, in the same order
  memory_timeline timeline;
  space_anomalies anomalies;
  core_profile cores;                 ///< what lay on single cores, if the space is that of cores
  reserved_profile reserved;          ///< what its allocator held of the device, if that keeps freed memory for later
  std::vector<stream_usage> streams;  ///< most reserved first; empty if no stream was told
  std::vector<out_of_memory_failure> out_of_memory;  ///< the first 32 for which the device had no memory
  event_tally further_out_of_memory;                 ///< those after them

  bool operator==(const space_profile&) const = default;
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

  bool operator==(const operation_usage&) const = default;
};

/// One node of the operation tree. `path` joins the names from the outermost operation, as `append_operation` does.
struct operation_profile {
  std::string path;
  std::string name;
  std::int64_t parent = -1;  ///< index into `profile::operations`, -1 for an outermost operation
  std::int64_t invocations = 0;
  std::vector<operation_usage> usage;  ///< one for each space in which it did anything

  bool operator==(const operation_profile&) const = default;
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

  bool operator==(const event_anomalies&) const = default;
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
  std::vector<segment> segments;
  std::vector<space_profile> spaces;
  std::vector<operation_profile> operations;  ///< parents before children
  std::vector<fact_table> facts;              ///< what sources know that is not memory over time (`rows_of`)
  event_anomalies anomalies;
  profiler_cost cost;

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
#include <string_view>

namespace memprof {

/// What a thread does whose ring is full.
enum class overflow : std::uint8_t {
  drain,  ///< empties all rings into the ledger itself: nothing is lost
  drop,   ///< drops the event and counts it: for threads that must not wait. `snapshot` and `end_capture` empty the rings
};

/// The name of the segment that ends with the capture, unless another is told.
inline constexpr std::string_view end_segment_name = "END_TRACE";

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
  memprof::trace* trace = nullptr;             ///< gets everything that happens, to be read when the capture has ended; empty
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
// ---- <memprof/record/session.hpp>
// ---- <memprof/record/capture_state.hpp>
// ---- <memprof/profile/build.hpp>
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

// ---- <memprof/ledger/ledger.hpp>
// ---- <memprof/ledger/event_of_allocator.hpp>
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

    /// The highest bit of each tag that may be the hash's; a wrong one is possible above a right one, and told by the address.
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

// ---- <memprof/ledger/out_of_memory_ledger.hpp>
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

#include <cstddef>
#include <cstdint>

namespace memprof {

/// An allocation that a device had no memory for, and what was held then; bytes.
struct out_of_memory_record {
  std::int64_t requested;
  std::int64_t device_free;
  std::int64_t live;
  std::int64_t reserved;
  std::uint64_t stamp;
  std::size_t segment;      ///< of the space
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
  detail::page_array<out_of_memory_record> kept_;
  tally further_;
};

}  // namespace memprof

// ---- <memprof/ledger/reserved_ledger.hpp>
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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace memprof {

/// What an allocator held of the device in one segment, in bytes: at most, and at its end.
struct reserved_record {
  std::int64_t peak;
  std::int64_t current;
};

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
    if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - current_)) return false;
    is_used_ = true;
    const std::uint64_t replaced = erase(address, end);
    if (replaced != 0) replaced_reservations.add(replaced);
    insert(first_behind(address), {address, end});
    current_ += static_cast<std::int64_t>(bytes);
    segment_peak_ = std::max(segment_peak_, current_);
    peak_ = std::max(peak_, current_);
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

  /// False if the system has no memory.
  [[nodiscard]] bool end_segment() noexcept {
    const bool is_kept = segments_.push_back(open_segment());
    segment_peak_ = current_;
    return is_kept;
  }

  /// Whether any event came.
  [[nodiscard]] bool is_used() const noexcept { return is_used_; }
  [[nodiscard]] std::int64_t current() const noexcept { return current_; }
  [[nodiscard]] std::int64_t peak() const noexcept { return peak_; }
  [[nodiscard]] const detail::page_array<reserved_record>& segments() const noexcept { return segments_; }
  [[nodiscard]] reserved_record open_segment() const noexcept { return {segment_peak_, current_}; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return ranges_.bytes() + segments_.bytes(); }

  tally unmatched_releases;
  tally replaced_reservations;

 private:
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
    current_ -= static_cast<std::int64_t>(erased);
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
  detail::page_array<reserved_record> segments_;
  std::int64_t current_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t segment_peak_ = 0;
  bool is_used_ = false;
};

}  // namespace memprof

// ---- <memprof/ledger/space_ledger.hpp>
// ---- <memprof/ledger/capacity_overrun.hpp>
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
  std::array<category_at_peak, category_names.size()> categories;
};

}  // namespace memprof

// ---- <memprof/ledger/top_blocks.hpp>
#include <cstddef>
#include <cstdint>

namespace memprof {

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

/// The largest blocks that were live at the peak of each of a growing row of segments, told interval by interval.
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

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t total = 0;
    for (std::size_t level = 0; level < max_levels; ++level) total += counts_[level].bytes() + blocks_[level].bytes();
    return total;
  }

 private:
  static constexpr std::size_t max_levels = 32;

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

#include <cstddef>
#include <cstdint>

namespace memprof {

/// What a space's ledger keeps of the first allocation that made its live bytes exceed its capacity: the block that was asked
/// for, and who held the rest at that moment. Categories and annotations are those known then.
///
/// If the capacity is that of a core, all bytes and holders are those on the core that was full.
struct capacity_overrun {
  block asked{};                             ///< of no bytes as long as nothing has exceeded the capacity
  std::size_t segment = 0;                   ///< the space's segment in which it was asked for
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
  [[gnu::cold]] void begin_on_core(const core_range& full, std::size_t in_segment, std::uint64_t at_stamp,
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

// ---- <memprof/ledger/core_ledger.hpp>
#include <cstddef>
#include <cstdint>

namespace memprof {

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
/// space on the core too. Memory is bounded by the cores up to the farthest that was told, live blocks, different rectangles and
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
    if (!is_used() && !segments_.resize(finished_)) return false;  // those from before the first block have zeros
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

  /// Ends the segment. Costs a pass over the cores. False if the system has no memory.
  [[nodiscard]] bool end_segment() noexcept {
    ++finished_;
    if (!is_used()) return true;
    const core_maxima greatest = open_segment();
    for (core_state& core : grid_) {
      core.overall.raise_to(core.peak);
      core.peak = core.live;
    }
    if (!segments_.resize(finished_)) return false;
    segments_.back() = greatest;
    return true;
  }

  // --- what reports ask ---------------------------------------------------------------------------------------------

  /// The finished segments of the space; may be fewer if there was no memory.
  [[nodiscard]] const detail::page_array<core_maxima>& segments() const noexcept { return segments_; }
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

  /// Bytes taken from the system, without the object itself.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return grid_.bytes() + blocks_[0].bytes() + blocks_[1].bytes() + known_ranges_.bytes() + ranges_.bytes() + ended_.bytes() +
           segments_.bytes();
  }

 private:
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
  std::size_t finished_ = 0;
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
};

}  // namespace memprof

// ---- <memprof/ledger/stream_ledger.hpp>
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

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof {

/// What was live and reserved for one stream of a device in one pool of its allocator, in bytes.
struct stream_record {
  label name;  ///< as `stream_pool` makes it; 0: all streams and pools beyond `stream_ledger::max_rows`
  std::int64_t live;
  std::int64_t peak_live;
  std::int64_t allocation_count;
  std::int64_t reserved;
  std::int64_t peak_reserved;
};

/// A row for each stream and pool with which blocks or ranges were told, up to `max_rows`, and one for all others. What is not
/// told with any is in none.
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
  /// More than is live was told with another name before: no row gets negative.
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

  /// In the order in which they were first told.
  [[nodiscard]] const detail::page_array<stream_record>& rows() const noexcept { return rows_; }
  /// Those that have no row of their own. All 0 if there are none.
  [[nodiscard]] const stream_record& further() const noexcept { return further_; }
  [[nodiscard]] bool has_further() const noexcept { return has_further_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return rows_.bytes(); }

 private:
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
  std::size_t last_ = 0;  ///< most events are told with the same name as the one before
  bool has_further_ = false;
};

}  // namespace memprof

// ---- <memprof/ledger/timeline.hpp>
#include <cstddef>
#include <cstdint>

namespace memprof {

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

/// How much detail a ledger keeps. Totals, peaks and live sets do not depend on it.
struct ledger_options {
  std::uint32_t timeline_points = 4096;   ///< per space, at least 2
  std::uint32_t largest_blocks = 10;      ///< kept for each peak
  std::uint32_t owners_per_segment = 32;  ///< operations kept for each segment's peak; the overall peak keeps all
};

/// Everything the ledger knows of one memory space.
///
/// Two facts keep an event cheap. Frees are `allocated - change`, so only allocations are summed. And a peak is an ordinal: the
/// set that was live at it is the blocks born until then that are live now, and those freed since, of which the largest are kept.
class space_ledger {
 public:
  /// A space that shows up in segment `first_segment`, which began at `begin_stamp`.
  space_ledger(const ledger_options& options, std::size_t first_segment, std::uint64_t begin_stamp) noexcept
      : peak_stamp_(begin_stamp),
        options_(options),
        first_segment_(first_segment),
        line_(options.timeline_points),
        largest_of_finished_(options.largest_blocks) {
    is_usable_ = operations_.resize(1) && freed_since_peak_.resize(options.largest_blocks);
  }

  /// False if the system had no memory for it.
  [[nodiscard]] bool is_usable() const noexcept { return is_usable_; }

  /// Gives the space, or each core of it, a capacity in bytes; 0: none. Before its first event.
  void limit(std::int64_t capacity, bool is_per_core) noexcept {
    if (capacity <= 0) return;
    capacity_ = capacity;
    capacity_is_per_core_ = is_per_core;
    (is_per_core ? core_overrun_above_ : overrun_above_) = capacity;
  }

  // --- events -------------------------------------------------------------------------------------------------------

  /// Fills a new entry of the table: an allocation by the operation and category in `owner`; the operation's statistics are
  /// `here`.
  [[gnu::always_inline]] void add(block* entry, const event& told, operation_stats& here, std::uint64_t owner,
                                  std::uint32_t thread, std::uint64_t stamp) noexcept {
    const auto bytes = static_cast<std::int64_t>(told.bytes);
    entry->bytes = told.bytes;
    entry->born_thread = ++ordinal_ << block::thread_bits | thread;
    entry->owner = owner;
    // "No operation" and "other" are what the rest of the sum is, so they cost nothing here.
    if (entry->operation() != 0) here.owned.change(epoch_, bytes, 1);
    if (entry->category() != 0) categories_[entry->category()].change(epoch_, bytes, 1);
    room_ -= bytes;
    live_ += bytes;
    if (live_ > peak_live_) {
      peak_live_ = live_;
      peak_blocks_ = static_cast<std::int64_t>(live_blocks_.size());
      peak_ordinal_ = ordinal_;
      peak_stamp_ = stamp;
      peak_operation_ = entry->operation();
      freed_count_ = 0;
      ++epoch_;
      // Only a new peak can be the first to exceed the capacity: until then every peak was within it.
      if (live_ > overrun_above_) [[unlikely]]
        note_overrun(*entry);
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
    if (found->born() <= peak_ordinal_) remember_freed(*found.entry);
    live_blocks_.erase(found);
  }

  /// Moves a live block to another category and gives it a name: both say what it was since it was allocated, so the categories
  /// at the open segment's peak change too. Finished segments keep theirs.
  void annotate(const event& told) noexcept {
    block* const entry = live_blocks_.find(told.address).entry;
    if (entry == nullptr) {
      unknown_annotations.add(0);
      return;
    }
    const label description = told.label == 0 || told.label > block::max_annotation ? entry->annotation() : told.label;
    const std::uint32_t category = told.tag == 0 ? entry->category() : told.tag - 1U;
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
    if (core_overrun_above_ == std::numeric_limits<std::int64_t>::max()) return;
    const core_maxima fullest = cores_.fullest(cores);
    if (fullest.peak.total <= core_overrun_above_) return;
    note_overrun_on({fullest.busiest_x, fullest.busiest_y, fullest.busiest_x, fullest.busiest_y}, address, stamp);
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

  /// Ends the segment. Costs a pass over the operations, whatever is live. False if the system has no memory.
  bool end_segment(std::uint64_t stamp) noexcept {
    segment_record record = open_segment();
    const bool is_overall_peak = segments_.empty() || record.live_at_peak > overall_peak_;
    if (!collect_owners(owner_scratch_)) return false;
    if (is_overall_peak) {
      overall_peak_ = record.live_at_peak;
      overall_segment_ = segments_.size();
      overall_owners_.clear();
      if (!overall_owners_.resize(owner_scratch_.size())) return false;
      for (std::size_t row = 0; row < owner_scratch_.size(); ++row) overall_owners_[row] = owner_scratch_[row];
    }
    keep_owners(record);
    if (!segments_.push_back(record)) return false;
    for (std::uint32_t index = 0; index < freed_count_; ++index) {
      largest_of_finished_.offer(segments_.size() - 1, segments_.size(), freed_since_peak_[index]);
    }
    start_segment(stamp);
    const bool is_reserved_kept = reserved_.end_segment();
    return cores_.end_segment() && is_reserved_kept;
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

  [[nodiscard]] std::size_t first_segment() const noexcept { return first_segment_; }
  [[nodiscard]] const detail::page_array<segment_record>& segments() const noexcept { return segments_; }
  [[nodiscard]] const owner_at_peak* owners(const segment_record& record) const noexcept {
    return owners_.data() + record.first_owner;
  }
  /// All owners at the overall peak of the finished segments; `overall_segment` indexes `segments()`.
  [[nodiscard]] const detail::page_array<owner_at_peak>& overall_owners() const noexcept { return overall_owners_; }
  [[nodiscard]] std::size_t overall_segment() const noexcept { return overall_segment_; }
  /// What `limit` told; 0: none.
  [[nodiscard]] std::int64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool capacity_is_per_core() const noexcept { return capacity_is_per_core_; }
  [[nodiscard]] const capacity_overrun& first_overrun() const noexcept { return overrun_; }
  [[nodiscard]] std::int64_t live() const noexcept { return live_; }
  [[nodiscard]] std::int64_t allocated() const noexcept { return std::numeric_limits<std::int64_t>::max() - room_; }
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
           owners_.bytes() + owner_scratch_.bytes() + overall_owners_.bytes() + largest_of_finished_.bytes() + overrun_.bytes() +
           cores_.bytes() + reserved_.bytes() + streams_.bytes() + out_of_memory_.bytes();
  }

  tally unmatched_frees;
  tally replaced_allocations;
  tally mismatched_sizes;
  tally cross_thread_frees;
  tally unknown_annotations;
  tally untracked_allocations;
  tally null_allocations;

 private:
  void start_segment(std::uint64_t stamp) noexcept {
    start_live_ = peak_live_ = live_;
    start_room_ = room_;
    start_ordinal_ = peak_ordinal_ = ordinal_;
    start_blocks_ = peak_blocks_ = static_cast<std::int64_t>(live_blocks_.size());
    peak_stamp_ = stamp;
    peak_operation_ = 0;
    freed_count_ = 0;
    ++epoch_;
  }

  /// Keeps what was asked for and who held the rest, once: `asked` has just been added, as a new peak. Costs a pass over
  /// operations and live blocks.
  [[gnu::cold, gnu::noinline]] void note_overrun(const block& asked) noexcept {
    overrun_above_ = std::numeric_limits<std::int64_t>::max();
    overrun_.asked = asked;
    overrun_.segment = segments_.size();
    overrun_.moment = open_segment();
    overrun_.has_holders = collect_owners(overrun_.owners) && overrun_.keep_largest(live_blocks_, options_.largest_blocks);
    if (!overrun_.has_holders) overrun_.forget_holders();
    overrun_.take_out_asked();
  }

  /// The same for the first block, at `address`, beyond the capacity of a core, which is `core`. Costs a pass over the blocks on
  /// cores.
  [[gnu::cold, gnu::noinline]] void note_overrun_on(const core_range& core, std::uint64_t address, std::uint64_t stamp) noexcept {
    core_overrun_above_ = std::numeric_limits<std::int64_t>::max();
    overrun_.begin_on_core(core, segments_.size(), stamp, options_.largest_blocks);
    std::uint32_t largest_count = 0;
    cores_.for_each_block(core, [&](block live) {
      // Where an event that no `event_sink` sends has taken the block out of the space, nobody owns what still lies on the core.
      const live_blocks::place known = live_blocks_.find(live.address);
      live.owner = known && known->born_thread == live.born_thread ? known->owner : 0;
      if (live.address == address) {
        overrun_.asked = live;
      } else {
        overrun_.add_holder(live, largest_count);
      }
    });
    overrun_.end_on_core(largest_count);
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

  /// A block that was live at the open segment's peak so far, and perhaps at those of finished segments, is freed.
  [[gnu::noinline]] void remember_freed(const block& freed) noexcept {
    top_blocks_view{freed_since_peak_.data(), freed_count_, options_.largest_blocks}.offer(freed);
    if (segments_.empty() || freed.born() > segments_[segments_.size() - 1].peak_ordinal) return;
    const std::size_t first = detail::partition_point(
        segments_.size(), [&](std::size_t index) { return segments_[index].peak_ordinal < freed.born(); });
    largest_of_finished_.offer(first, segments_.size(), freed);
  }

  // The order of the members follows how often an event touches them.
  std::int64_t live_ = 0;
  std::int64_t peak_live_ = 0;
  std::int64_t room_ = std::numeric_limits<std::int64_t>::max();  ///< what `allocated` may still grow by
  std::uint64_t ordinal_ = 0;
  std::uint64_t epoch_ = 1;
  std::uint64_t peak_ordinal_ = 0;
  std::uint64_t peak_stamp_;
  std::int64_t peak_blocks_ = 0;
  std::uint32_t peak_operation_ = 0;
  std::uint32_t freed_count_ = 0;
  live_blocks live_blocks_;
  detail::page_array<operation_stats> operations_;
  std::array<owner_stats, category_names.size()> categories_{};  ///< entry 0 is unused: "other" is what the rest leaves
  ledger_options options_;
  std::size_t first_segment_;
  timeline line_;
  detail::page_array<block> freed_since_peak_;

  std::uint64_t moves_ = 0;
  std::int64_t overrun_above_ = std::numeric_limits<std::int64_t>::max();  ///< the capacity, until it was exceeded
  std::int64_t capacity_ = 0;
  std::int64_t core_overrun_above_ = std::numeric_limits<std::int64_t>::max();  ///< the same for a core
  bool capacity_is_per_core_ = false;
  std::int64_t start_live_ = 0;
  std::int64_t start_room_ = std::numeric_limits<std::int64_t>::max();
  std::uint64_t start_ordinal_ = 0;
  std::int64_t start_blocks_ = 0;

  detail::page_array<segment_record> segments_;
  detail::page_array<owner_at_peak> owners_;
  detail::page_array<owner_at_peak> owner_scratch_;
  detail::page_array<owner_at_peak> overall_owners_;
  std::int64_t overall_peak_ = 0;
  std::size_t overall_segment_ = 0;
  top_blocks_of_segments largest_of_finished_;
  capacity_overrun overrun_;
  bool is_usable_ = false;
  core_ledger cores_;
  reserved_ledger reserved_;
  stream_ledger streams_;
  out_of_memory_ledger out_of_memory_;
};

}  // namespace memprof

// ---- <memprof/ledger/thread_state.hpp>
// ---- <memprof/ledger/category_tag.hpp>
#include <cstdint>

namespace memprof {

/// Whether an event's tag names a category; 0 does not, and what is out of range is taken for 0.
[[nodiscard]] inline bool is_category(std::uint16_t tag) noexcept { return tag - 1U < category_names.size(); }
[[nodiscard]] inline std::uint32_t category_of(std::uint16_t tag) noexcept { return is_category(tag) ? tag - 1U : 0U; }

}  // namespace memprof

// ---- <memprof/ledger/operation_follower.hpp>
// ---- <memprof/ledger/operation_tree.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace memprof {

/// Which operation was called within which: a node is a path of names. Node 0 is "no operation".
///
/// Nodes are made when a path first occurs and never go away; parents have smaller numbers than their children.
class operation_tree {
 public:
  struct node {
    std::uint32_t parent;
    label name;
    std::int64_t invocations;
    std::int64_t finished;  ///< invocations that have ended
  };

  operation_tree() noexcept { is_usable_ = nodes_.push_back({}) && slots_.resize(256); }

  /// At least 1, even if the system had no memory for the tree.
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.empty() ? 1 : nodes_.size(); }
  [[nodiscard]] const node& operator[](std::size_t index) const noexcept { return nodes_[index]; }
  void count_invocation(std::uint32_t index) noexcept {
    if (index != 0) ++nodes_[index].invocations;
  }
  void count_finished(std::uint32_t index) noexcept {
    if (index != 0) ++nodes_[index].finished;
  }

  /// The node of `name` under `parent`, made if it is new; `parent` itself if the system has no memory.
  [[nodiscard]] std::uint32_t child(std::uint32_t parent, label name) noexcept {
    if (!is_usable_) return 0;
    std::size_t slot = slot_of(parent, name, slots_.size());
    for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
      const node& known = nodes_[slots_[slot]];
      if (known.parent == parent && known.name == name) return slots_[slot];
    }
    if (2 * (nodes_.size() + 1) > slots_.size()) {
      if (!grow()) return parent;
      slot = free_slot(slots_, parent, name);
    }
    if (!nodes_.push_back({parent, name, 0, 0})) return parent;
    return slots_[slot] = static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return nodes_.bytes() + slots_.bytes(); }

 private:
  [[nodiscard]] static std::size_t slot_of(std::uint32_t parent, label name, std::size_t slots) noexcept {
    const std::uint64_t key = std::uint64_t{parent} << 32 | name;
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15U) >> 32) & (slots - 1);
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

  bool is_usable_ = false;
  detail::page_array<node> nodes_;
  detail::page_array<std::uint32_t> slots_;
};

}  // namespace memprof

// ---- <memprof/ledger/scope_stack.hpp>
#include <cstdint>
#include <new>

namespace memprof {

/// One open operation of a thread.
struct open_scope {
  std::uint32_t operation;
  label name;
  std::uint32_t number;  ///< as its thread counts them
  std::uint16_t tag;     ///< category of what is allocated in it, plus one; 0: none was given here or further out
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

  /// Closes the scope at `index` and calls `finish(space, usage)` for each space this thread touched, where `usage` counts the
  /// scopes within that have ended. Those within that are still open go on in the one around it.
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
      finish(used_[used], ended);
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
      finish(used_[index], ended);
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
  detail::page_array<open_scope> scopes_;
  std::uint32_t used_count_ = 0;
  std::uint8_t used_[max_spaces] = {};
  space_scopes* by_space_[max_spaces] = {};
};

}  // namespace memprof

#include <cstddef>
#include <cstdint>

namespace memprof {

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
/// coroutines do. `finish(operation, space, usage)` is called for each space that a thread had touched when one of its operations
/// closes.
class operation_follower {
 public:
  [[nodiscard]] const operation_tree& operations() const noexcept { return operations_; }
  /// Operations whose begin or end is missing.
  [[nodiscard]] std::uint64_t unbalanced() const noexcept { return unbalanced_; }
  /// Operations that began where so many were open already that they are not followed.
  [[nodiscard]] std::uint64_t too_deep() const noexcept { return too_deep_; }

  /// Applies a `scope_begin`. False if it must be rejected: it has no number, or the system no memory.
  template <class Finish>
  [[nodiscard, gnu::always_inline]] bool begin(followed_thread& on, const event& begun, Finish&& finish) noexcept {
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
    return on.scopes.push({operation, begun.label, number, tag});
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
  /// Closes the scopes within the one of number `outer`, the thread's innermost: their ends were dropped.
  template <class Finish>
  [[gnu::cold, gnu::noinline]] void close_lost(followed_thread& on, std::uint32_t outer, Finish&& finish) noexcept {
    const std::size_t kept = outer == 0 ? 0 : on.scopes.find(outer) + 1;
    for (; kept < on.scopes.depth(); ++unbalanced_) close_innermost(on, finish);
  }

  template <class Finish>
  [[gnu::always_inline]] void close_innermost(followed_thread& on, Finish&& finish) noexcept {
    const std::uint32_t operation = on.scopes.operation();
    operations_.count_finished(operation);
    on.scopes.close_innermost([&](std::uint8_t space, const scope_usage& usage) { finish(operation, space, usage); });
  }

  template <class Finish>
  [[gnu::noinline]] void close(followed_thread& on, std::size_t index, Finish&& finish) noexcept {
    const std::uint32_t operation = on.scopes[index].operation;
    operations_.count_finished(operation);
    on.scopes.close(index, [&](std::uint8_t space, const scope_usage& usage) { finish(operation, space, usage); });
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
  [[nodiscard, gnu::always_inline]] bool allocate(const event& told, const std::uint64_t& stamp) noexcept {
    space_ledger& account = *space;
    // One test for both, since neither ever happens.
    if (static_cast<unsigned>(!account.has_room_for(told.bytes)) | static_cast<unsigned>(told.address == 0)) [[unlikely]]
      return reject(told);
    live_blocks::insertion made = account.insert(told.address);
    if (!made.is_new) [[unlikely]] {
      if (made.entry == nullptr) {
        account.untracked_allocations.add(told.bytes);
        return true;
      }
      account.replaced_allocations.add(made.entry->bytes);
      release(account.find(told.address));
      made = account.insert(told.address);
    }
    const std::uint64_t owned_by = is_category(told.tag) ? with_category(told.tag) : owner;
    account.add(made.entry, told, *here, owned_by, thread, stamp);
    const auto bytes = static_cast<std::int64_t>(told.bytes);
    here->allocated += bytes;
    ++here->allocation_count;
    usage->allocate(bytes);
    return true;
  }

  [[gnu::always_inline]] void deallocate(const event& told, const std::uint64_t& stamp) noexcept {
    space_ledger& account = *space;
    const live_blocks::place entry = account.find(told.address);
    if (!entry) [[unlikely]] {
      if (told.address != 0) account.unmatched_frees.add(told.bytes);  // to free a null pointer is to do nothing
      account.mark_event(stamp);
      return;
    }
    if (told.bytes != 0 && told.bytes != entry->bytes) [[unlikely]] {
      account.mismatched_sizes.add(told.bytes > entry->bytes ? told.bytes - entry->bytes : entry->bytes - told.bytes);
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
  [[gnu::cold, gnu::noinline]] bool reject(const event& told) noexcept {
    if (told.address != 0) return false;
    space->null_allocations.add(told.bytes);
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
/// and gives back, and when the device has no more.

namespace memprof {

/// Whether the event is one of these.
[[nodiscard]] inline bool is_of_allocator(event_kind kind) noexcept {
  return kind >= event_kind::reserve && kind <= event_kind::out_of_memory;
}

namespace detail {

/// The bytes that live at the event's address; 0 if nothing does.
[[nodiscard]] inline std::int64_t live_bytes_at(space_ledger& space, std::uint64_t address) noexcept {
  const live_blocks::place found = space.find(address);
  return found ? static_cast<std::int64_t>(found->bytes) : 0;
}

[[nodiscard]] inline bool allocate_on_stream(thread_state& run, const event& told, std::uint64_t stamp) noexcept {
  const std::int64_t replaced = live_bytes_at(*run.space, told.address);
  const std::uint64_t count = run.space->allocation_count();
  if (!run.allocate(told, stamp)) return false;
  stream_ledger& streams = run.space->streams();
  streams.deallocate(told.label, replaced);
  if (run.space->allocation_count() != count) streams.allocate(told.label, static_cast<std::int64_t>(told.bytes));
  return true;
}

inline void deallocate_on_stream(thread_state& run, const event& told, std::uint64_t stamp) noexcept {
  run.space->streams().deallocate(told.label, live_bytes_at(*run.space, told.address));
  run.deallocate(told, stamp);
}

[[nodiscard]] inline bool change_reserved(space_ledger& space, const event& told) noexcept {
  reserved_ledger& held = space.reserved();
  const std::int64_t before = held.current();
  const bool is_applied =
      told.kind == event_kind::reserve ? held.reserve(told.address, told.bytes) : held.release(told.address, told.bytes);
  if (is_applied) space.streams().change_reserved(told.label, held.current() - before);
  return is_applied;
}

[[nodiscard]] inline bool note_out_of_memory(thread_state& run, const event& told, std::uint64_t stamp) noexcept {
  constexpr auto greatest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (told.bytes > greatest || told.address > greatest) return false;
  space_ledger& space = *run.space;
  space.out_of_memory().add({static_cast<std::int64_t>(told.bytes), static_cast<std::int64_t>(told.address), space.live(),
                             space.reserved().current(), stamp, space.segments().size(), run.scopes.operation()});
  return true;
}

}  // namespace detail

/// Applies such an event to the space to which the thread has been turned. False if it must be rejected.
[[nodiscard]] inline bool apply_of_allocator(thread_state& run, const event& told, std::uint64_t stamp) noexcept {
  switch (told.kind) {
    case event_kind::allocate_on_stream: return detail::allocate_on_stream(run, told, stamp);
    case event_kind::deallocate_on_stream: detail::deallocate_on_stream(run, told, stamp); return true;
    case event_kind::out_of_memory: return detail::note_out_of_memory(run, told, stamp);
    default: return detail::change_reserved(*run.space, told);
  }
}

}  // namespace memprof

// ---- <memprof/ledger/event_on_cores.hpp>
#include <cstdint>

namespace memprof {

/// An event about blocks on cores, and what it does to a space.
///
/// In the space as a whole a block on cores is an ordinary one, as large as its parts together; `space_ledger::cores` has the
/// parts.
class event_on_cores {
 public:
  explicit event_on_cores(const event& told) noexcept : part_(told), whole_(told), cores_(core_range::unpacked(told.label)) {
    whole_.tag = told.tag & 0xFFU;
    is_possible_ = cores_.is_valid() && !__builtin_mul_overflow(told.bytes, cores_.count(), &whole_.bytes);
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

  event part_;   ///< as told: `bytes` on each core, the kind of buffer in `tag`
  event whole_;  ///< as the space sees it
  core_range cores_;
  bool is_possible_;
};

}  // namespace memprof

// ---- <memprof/trace/clock_readings.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof {

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

#include <cstddef>
#include <cstdint>
#include <new>

namespace memprof {

/// A fold over events: the only place that knows what a peak is.
///
/// No threads, no clock, no I/O, no globals: the same events in the same order give the same result, live or replayed from a
/// file. Memory is bounded by live blocks, operations, segments and threads, never by the number of events. Not synchronised.
/// It survives any input: what is impossible or unusual is counted.
class ledger {
 public:
  static constexpr std::uint32_t max_spaces = any_space;

  /// One finished segment; its end is the next one's begin.
  struct segment_mark {
    label name;
    std::uint64_t begin_stamp;
    std::uint64_t end_stamp;
  };

  explicit ledger(const ledger_options& options = {}, std::uint64_t begin_stamp = 0) noexcept
      : options_(options), stamp_(begin_stamp), segment_begin_(begin_stamp) {}
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;
  ~ledger() {
    for (space_ledger* space : spaces_) destroy(space);
    for (thread_state* thread : threads_) destroy(thread);
  }

  /// Gives a memory space, or each core of it, a capacity in bytes; 0: none. The first allocation that exceeds it is kept with
  /// who held the rest, and events go on; that of a core is compared with blocks on cores alone. False, and nothing changed, if
  /// the space has had events already or the system has no memory.
  [[nodiscard]] bool limit(std::uint8_t space, std::int64_t capacity, bool is_per_core = false) noexcept {
    if (spaces_[space] != nullptr) return false;
    if (space >= limits_.size() && !limits_.resize(std::size_t{space} + 1)) return false;
    limits_[space] = {capacity, is_per_core};
    return true;
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
      run.prefetches = run.space->is_large();
    }
    for (const event* told = first; told != last; ++told) {
      if (run.prefetches && last - told > prefetch_distance) {
        // Nearly always the next events are of the same space; for another the guess only costs a cache line.
        run.space->prefetch(told[prefetch_distance].address);
      }
      // An event that was published late takes effect when it is applied, so no time runs backwards.
      if (told->stamp > stamp_) stamp_ = told->stamp;
      switch (told->kind) {
        case event_kind::allocate:
          if (enter(run, told->space) && !run.allocate(*told, stamp_)) ++rejected_events_;
          break;
        case event_kind::deallocate:
          if (enter(run, told->space)) run.deallocate(*told, stamp_);
          break;
        default:
          if (told->kind == event_kind::scope_begin) {
            begin_scope(run, *told);
          } else if (told->kind == event_kind::scope_end) {
            end_scope(run, *told);
          } else {
            apply_control(run, *told);
          }
          break;
      }
    }
  }

  /// Ends the segment at `stamp`. Costs a pass over the operations of each space; live blocks are not looked at.
  void end_segment(label name, std::uint64_t stamp) noexcept {
    if (stamp > stamp_) stamp_ = stamp;
    if (!segments_.push_back({name, segment_begin_, stamp_})) {
      ++rejected_events_;
      return;
    }
    segment_begin_ = stamp_;
    for (space_ledger* space : spaces_) {
      if (space != nullptr && !space->end_segment(stamp_)) ++rejected_events_;
    }
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
          note_peak(spaces_[space]->operation(open[depth - 1].operation), inner_max, scopes[depth].self_max);
        }
      });
    }
  }

  [[nodiscard]] const operation_tree& operations() const noexcept { return operations_.operations(); }
  [[nodiscard]] const detail::page_array<segment_mark>& segments() const noexcept { return segments_; }
  /// The ledger of a memory space, or null if no event named it.
  [[nodiscard]] const space_ledger* space(std::size_t id) const noexcept { return spaces_[id]; }
  [[nodiscard]] std::uint64_t segment_begin() const noexcept { return segment_begin_; }
  /// Stamp of the last event that had one.
  [[nodiscard]] std::uint64_t last_stamp() const noexcept { return stamp_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  [[nodiscard]] std::uint64_t rejected_events() const noexcept { return rejected_events_; }
  [[nodiscard]] std::uint64_t unbalanced_scopes() const noexcept { return operations_.unbalanced(); }
  [[nodiscard]] std::uint64_t too_deep_scopes() const noexcept { return operations_.too_deep(); }
  /// Events that never came, by cause: dropped ones, those of signal handlers that interrupted the profiler, and those that the
  /// trace lacks.
  [[nodiscard]] std::uint64_t dropped_events() const noexcept { return dropped_events_; }
  [[nodiscard]] std::uint64_t reentrant_events() const noexcept { return reentrant_events_; }
  [[nodiscard]] std::uint64_t missing_events() const noexcept { return missing_events_; }
  /// Whether there are others, of which nobody knows how many.
  [[nodiscard]] bool are_more_missing() const noexcept { return are_more_missing_; }
  /// What turns stamps into time.
  [[nodiscard]] const clock_readings& clock() const noexcept { return clock_; }
  /// Whether the capture's last event has come.
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  [[nodiscard]] const ledger_options& options() const noexcept { return options_; }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t total =
        sizeof(ledger) + operations_.bytes() + segments_.bytes() + clock_.bytes() + threads_.bytes() + limits_.bytes();
    for (const space_ledger* space : spaces_) total += space == nullptr ? 0 : sizeof(space_ledger) + space->bytes();
    for (const thread_state* thread : threads_) total += thread == nullptr ? 0 : sizeof(thread_state) + thread->scopes.bytes();
    return total;
  }

 private:
  /// Far enough for a cache miss to be over when its event comes; near enough that a short run profits.
  static constexpr std::ptrdiff_t prefetch_distance = 8;

  /// Counts what an operation did in a space while it was open.
  struct finish_operation {
    ledger& owner;

    void operator()(std::uint32_t operation, std::uint8_t space, const scope_usage& usage) const noexcept {
      operation_stats& stats = owner.spaces_[space]->operation(operation);
      if (stats.finished++ == 0 || usage.net() > stats.max_delta) stats.max_delta = usage.net();
      note_peak(stats, usage.max_net, usage.self_max);
    }
  };

  struct space_limit {
    std::int64_t capacity;  ///< 0: none
    bool is_per_core;
  };

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
    run.space_id = id;
    run.space = space;
    run.prefetches = space->is_large();
    run.usage = &usage->back();
    run.owner = block::owner_word(run.scopes.operation(), category_of(run.scopes.tag()), 0);
    run.here = &space->operation(run.scopes.operation());
    run.moves = space->moves();
    return true;
  }

  [[gnu::noinline]] void apply_control(thread_state& run, const event& told) noexcept {
    switch (told.kind) {
      case event_kind::annotate:
        if (told.tag > category_names.size()) {
          ++rejected_events_;
        } else if (space_ledger* const space = told.space == any_space ? space_of(told.address) : spaces_[told.space]) {
          space->annotate(told);
        } else {
          ++rejected_events_;
        }
        break;
      case event_kind::thread_begin:
        run.space_id = thread_state::no_space;
        // Threads beyond the last number are taken for one: a program has a million before.
        operations_.begin_thread(run, told.address, block::max_thread, finish_operation{*this});
        break;
      default: apply_rare(run, told); break;  // apart from the others, to which a larger switch would cost instructions
    }
  }

  [[gnu::noinline]] void apply_rare(thread_state& run, const event& told) noexcept {
    if (told.kind >= event_kind::segment_end) return apply_to_capture(told);
    if (is_of_allocator(told.kind)) {
      if (enter(run, told.space) && !apply_of_allocator(run, told, stamp_)) ++rejected_events_;
      return;
    }
    const event_on_cores change{told};
    if (!change.is_possible()) {
      ++rejected_events_;
    } else if (enter(run, told.space) && !change.apply(run, stamp_)) {
      ++rejected_events_;
    }
  }

  /// What the capture itself says, on whatever thread.
  void apply_to_capture(const event& told) noexcept {
    switch (told.kind) {
      case event_kind::segment_end: end_segment(told.label, stamp_); break;
      case event_kind::clock_reading: clock_.add(told.stamp, static_cast<std::int64_t>(told.address)); break;
      case event_kind::lost_events:
        dropped_events_ = told.address;
        reentrant_events_ = told.bytes;
        are_more_missing_ = told.tag != 0;
        break;
      case event_kind::capture_end: has_ended_ = true; break;
      case event_kind::gap:
        if (__builtin_add_overflow(missing_events_, told.bytes, &missing_events_)) missing_events_ = UINT64_MAX;
        break;
      default: ++rejected_events_; break;
    }
  }

  [[gnu::noinline]] void begin_scope(thread_state& run, const event& told) noexcept {
    run.space_id = thread_state::no_space;
    if (!operations_.begin(run, told, finish_operation{*this})) ++rejected_events_;
  }

  [[gnu::noinline]] void end_scope(thread_state& run, const event& told) noexcept {
    run.space_id = thread_state::no_space;
    operations_.end(run, told, finish_operation{*this}, [this](std::uint32_t number) { return turn_thread_of_number(number); });
  }

  /// The thread of that number, which will look anew at the space that it has turned to.
  [[nodiscard]] thread_state* turn_thread_of_number(std::uint32_t number) noexcept {
    for (thread_state* thread : threads_) {
      if (thread == nullptr || thread->thread != number) continue;
      thread->space_id = thread_state::no_space;
      return thread;
    }
    return nullptr;
  }

  static void note_peak(operation_stats& stats, std::int64_t peak, std::int64_t self_peak) noexcept {
    if (peak > stats.peak) stats.peak = peak;
    if (self_peak > stats.self_peak) stats.self_peak = self_peak;
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
    space_ledger* const space = make<space_ledger>(options_, segments_.size(), segment_begin_);
    if (space == nullptr) return nullptr;
    if (!space->is_usable()) {
      destroy(space);
      return nullptr;
    }
    if (id < limits_.size()) space->limit(limits_[id].capacity, limits_[id].is_per_core);
    return spaces_[id] = space;
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
  std::uint64_t stamp_;
  std::uint64_t segment_begin_;
  std::uint64_t events_ = 0;
  std::uint64_t rejected_events_ = 0;
  std::uint64_t dropped_events_ = 0;
  std::uint64_t reentrant_events_ = 0;
  std::uint64_t missing_events_ = 0;
  bool are_more_missing_ = false;
  bool has_ended_ = false;
  clock_readings clock_;
  space_ledger* spaces_[max_spaces + 1] = {};  // the last one stays null: `any_space`
  operation_follower operations_;
  detail::page_array<segment_mark> segments_;
  detail::page_array<thread_state*> threads_;  ///< by ring
  detail::page_array<space_limit> limits_;     ///< by space. Empty unless `limit` was called
};

}  // namespace memprof

// ---- <memprof/profile/core_peaks.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// @file
/// The part of `profile/build.hpp` about memory that each core has of its own. Templates for the reason that is told there.

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

/// What one space held on each core; `first_segment` is that of the space, `segment_count` the profile's. Costs a pass over the
/// cores of each rectangle.
template <class Cores>
[[nodiscard]] core_profile build_cores(const Cores& cores, std::size_t first_segment, std::size_t segment_count) {
  core_profile result;
  if (!cores.is_used()) return result;
  result.peaks = to_core_peaks(cores.overall(any_core));
  result.segments = std::vector<core_peaks>(segment_count);
  for (std::size_t index = first_segment; index < segment_count; ++index) {
    const std::size_t own_index = index - first_segment;
    const bool is_open = own_index >= cores.segments().size();
    result.segments[index] = to_core_peaks(is_open ? cores.open_segment() : cores.segments()[own_index]);
  }
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

/// The names of a row, as `stream_pool` joined them.
inline void name_stream(stream_usage& row, std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && text[end] != name_separator) ++end;
  row.stream = text.substr(0, end);
  if (end < text.size()) row.pool = text.substr(end + 1);
}

[[nodiscard]] inline stream_usage to_stream_usage(const stream_record& record) {
  return {{}, {}, record.peak_live, record.live, record.allocation_count, record.peak_reserved, record.reserved};
}

/// The streams of a space, most reserved first, of equal ones those with the most live bytes, then those that came first.
template <class Streams>
[[nodiscard]] std::vector<stream_usage> build_streams(const Streams& told, name_view labels) {
  const std::size_t count = told.rows().size();
  std::vector<std::size_t> order(count);
  for (std::size_t index = 0; index < count; ++index) order[index] = index;
  sort_rows(order.data(), count, [&](std::size_t left, std::size_t right) {
    const stream_record& a = told.rows()[left];
    const stream_record& b = told.rows()[right];
    if (a.peak_reserved != b.peak_reserved) return a.peak_reserved > b.peak_reserved;
    return a.peak_live != b.peak_live ? a.peak_live > b.peak_live : left < right;
  });
  std::vector<stream_usage> rows(count + (told.has_further() ? 1 : 0));
  for (std::size_t row = 0; row < count; ++row) {
    rows[row] = to_stream_usage(told.rows()[order[row]]);
    name_stream(rows[row], labels.text(told.rows()[order[row]].name));
  }
  if (told.has_further()) {
    rows[count] = to_stream_usage(told.further());
    rows[count].stream = "(beyond the first " + std::to_string(Streams::max_rows) + " streams and pools)";
  }
  return rows;
}

/// What failed in a space; `first_segment` is that of the space, `segment_count` the profile's.
template <class Failed>
[[nodiscard]] std::vector<out_of_memory_failure> build_out_of_memory(const Failed& failed, const clock_readings& time,
                                                                     const std::vector<std::string>& paths,
                                                                     std::size_t first_segment, std::size_t segment_count) {
  std::vector<out_of_memory_failure> rows(failed.kept().size());
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const out_of_memory_record& record = failed.kept()[index];
    const std::size_t segment = first_segment + record.segment;
    rows[index] = {record.requested, record.device_free, record.live, record.reserved, {}, -1, time.to_ns(record.stamp)};
    if (record.operation != 0) rows[index].operation = paths[record.operation];
    // Events behind the last segment of a finished profile are in none.
    if (segment < segment_count) rows[index].segment = static_cast<std::int64_t>(segment);
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
/// What a space's first overrun was in words of the profile, and what would have prevented it. Templates, like all that builds
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

/// The first overrun of a space that had one. `held` was live beside it; `segment_count` is that of the profile.
template <class Space>
[[nodiscard]] capacity_shortfall build_first_shortfall(const Space& space, const clock_readings& time,
                                                       const std::vector<std::string>& paths, live_set held,
                                                       std::size_t segment_count) {
  const capacity_overrun& overrun = space.first_overrun();
  const std::size_t segment = space.first_segment() + overrun.segment;
  capacity_shortfall result;
  result.requested = static_cast<std::int64_t>(overrun.asked.bytes);
  if (overrun.is_on_core) result.core = core_text(overrun.core.x0, overrun.core.y0);
  if (overrun.asked.operation() != 0) result.operation = paths[overrun.asked.operation()];
  result.category = static_cast<category>(overrun.asked.category());
  // Events behind the last segment of a finished profile are in none.
  if (segment < segment_count) result.segment = static_cast<std::int64_t>(segment);
  result.time_ns = time.to_ns(overrun.stamp);
  result.free = space.capacity() - held.bytes;
  result.shortfall = result.requested - result.free;
  result.holders_known = overrun.has_holders;
  result.remedy = least_to_free(held.by_operation, result.shortfall);
  result.held = std::move(held);
  return result;
}

}  // namespace memprof::detail

// ---- <memprof/profile/live_sets.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::detail {

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
  [[nodiscard]] live_set at_first_overrun() const {
    const capacity_overrun& overrun = space_.first_overrun();
    live_set set = totals_of(overrun.moment);
    if (!overrun.has_holders) set.remaining_bytes = set.bytes;
    set.by_operation = named(overrun.owners.data(), overrun.owners.size());
    set.largest_blocks = largest([&](top_blocks_view best) {
      for (const block& held : overrun.largest) best.offer(held);
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
    set.by_category = categories_of(record);
    return set;
  }

  [[nodiscard]] static std::vector<owned_bytes> categories_of(const segment_record& record) {
    std::size_t order[category_names.size()];
    std::size_t count = 0;
    for (std::size_t index = 0; index < category_names.size(); ++index) {
      if (record.categories[index].blocks != 0) order[count++] = index;
    }
    sort_rows(order, count, [&](std::size_t left, std::size_t right) {
      const std::int64_t more = record.categories[left].bytes - record.categories[right].bytes;
      return more != 0 ? more > 0 : left < right;
    });
    std::vector<owned_bytes> rows(count);
    for (std::size_t row = 0; row < count; ++row) {
      const category_at_peak& held = record.categories[order[row]];
      rows[row] = {std::string{category_names[order[row]]}, held.bytes, held.blocks};
    }
    return rows;
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
    for (std::uint32_t index = 0; index < count; ++index) result[index] = described(room[index]);
    return result;
  }

  [[nodiscard]] live_block described(const block& live) const {
    live_block result;
    result.address = live.address;
    result.bytes = static_cast<std::int64_t>(live.bytes);
    result.operation = paths_[live.operation()];
    result.category = static_cast<memprof::category>(live.category());
    std::string_view annotation = labels_.text(live.annotation());
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

  const Space& space_;
  const std::vector<std::string>& paths_;
  name_view labels_;
  std::vector<std::uint64_t> peak_ordinals_;
  top_blocks_of_segments still_live_;
};

}  // namespace memprof::detail

// ---- <memprof/profile/operation_path.hpp>
#include <string>
#include <string_view>

namespace memprof {

/// Appends an operation's name to the path of the operation around it, which is empty for an outermost one: `a/b`.
///
/// A path names one operation. So `/` and `\` in a name become `\/` and `\\`, and an empty name is `\-`; the empty path stands
/// for no operation.
inline void append_operation(std::string& path, std::string_view name) {
  if (!path.empty()) path += '/';
  if (name.empty()) path += "\\-";
  for (const char character : name) {
    if (character == '/' || character == '\\') path += '\\';
    path += character;
  }
}

}  // namespace memprof

#include <algorithm>
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

/// The name in a profile of the segment that has not ended yet.
inline constexpr std::string_view open_segment_name = "OPEN_SEGMENT";

namespace detail {

template <class Tree>
[[nodiscard]] std::vector<std::string> operation_paths(const Tree& tree, name_view labels) {
  std::vector<std::string> paths(tree.size());
  for (std::size_t node = 1; node < tree.size(); ++node) {
    paths[node] = paths[tree[node].parent];
    append_operation(paths[node], labels.text(tree[node].name));
  }
  return paths;
}

/// Sums up a space's self values along the tree; entry 0 is "no operation".
template <class Tree, class Space>
[[nodiscard]] std::vector<operation_usage> usage_of_space(const Tree& tree, const Space& space, std::string_view space_name) {
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
    operation.name = names.labels.text(tree[node].name);
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
    if (id != filled_space) usage = usage_of_space(tree, *events.space(id), names.labels.text(names.space_names[id]));
    filled_space = id;
    operations[node - 1].usage[rows[node]++] = std::move(usage[node]);
  });
  return operations;
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

/// What a space's allocator held; `first_segment` is that of the space, `segment_count` the profile's.
template <class Reserved>
[[nodiscard]] reserved_profile build_reserved(const Reserved& held, std::size_t first_segment, std::size_t segment_count) {
  reserved_profile result;
  if (!held.is_used()) return result;
  result.peak = held.peak();
  result.current = held.current();
  result.segments = std::vector<reserved_usage>(segment_count);
  for (std::size_t index = first_segment; index < segment_count; ++index) {
    const std::size_t own_index = index - first_segment;
    const reserved_record record = own_index < held.segments().size() ? held.segments()[own_index] : held.open_segment();
    result.segments[index] = {record.peak, record.current};
  }
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
template <class Space>
class space_builder {
 public:
  space_builder(const Space& space, const ledger_names& names, const std::vector<std::string>& paths)
      : space_(space), names_(names), paths_(paths), live_sets_(space, paths, names.labels) {}

  [[nodiscard]] space_profile build(std::string_view name, const std::vector<segment>& segments) {
    result_.name = name;
    result_.segments = std::vector<segment_usage>(segments.size());
    for (std::size_t index = 0; index < segments.size(); ++index)
      fill_segment(result_.segments[index], segments[index].name, index);
    result_.cumulative_current = space_.live();
    result_.allocations = space_.allocated();
    result_.deallocations = result_.allocations - result_.cumulative_current;
    result_.allocation_count = static_cast<std::int64_t>(space_.allocation_count());
    result_.deallocation_count = result_.allocation_count - static_cast<std::int64_t>(space_.blocks().size());
    add_overall_peak();
    result_.capacity = space_.capacity();
    result_.capacity_is_per_core = space_.capacity_is_per_core();
    if (space_.first_overrun().has_happened()) {
      result_.first_shortfall =
          build_first_shortfall(space_, names_.time, paths_, live_sets_.at_first_overrun(), segments.size());
    }
    result_.timeline = build_timeline(space_.line(), names_.time, space_.live());
    result_.anomalies = {to_event_tally(space_.unmatched_frees),     to_event_tally(space_.replaced_allocations),
                         to_event_tally(space_.mismatched_sizes),    to_event_tally(space_.cross_thread_frees),
                         to_event_tally(space_.unknown_annotations), to_event_tally(space_.untracked_allocations),
                         to_event_tally(space_.null_allocations),    overlapping(space_.blocks())};
    result_.cores = build_cores(space_.cores(), space_.first_segment(), segments.size());
    result_.reserved = build_reserved(space_.reserved(), space_.first_segment(), segments.size());
    result_.streams = build_streams(space_.streams(), names_.labels);
    result_.out_of_memory =
        build_out_of_memory(space_.out_of_memory(), names_.time, paths_, space_.first_segment(), segments.size());
    result_.further_out_of_memory = to_event_tally(space_.out_of_memory().further());
    return std::move(result_);
  }

 private:
  void fill_segment(segment_usage& usage, const std::string& name, std::size_t index) {
    usage.segment = name;
    if (index >= space_.first_segment()) {
      const std::size_t own_index = index - space_.first_segment();
      const bool is_open = own_index >= space_.segments().size();
      const segment_record record = is_open ? space_.open_segment() : space_.segments()[own_index];
      fill(usage, record);
      usage.live_at_peak = is_open ? live_sets_.at_open() : live_sets_.at_finished(own_index);
    }
    if (usage.live_at_peak.bytes > result_.cumulative_peak) {
      result_.cumulative_peak = usage.live_at_peak.bytes;
      result_.peak_segment = static_cast<std::int64_t>(index);
    }
    usage.cumulative_peak = result_.cumulative_peak;
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
    if (result_.peak_segment < 0) return;
    const auto index = static_cast<std::size_t>(result_.peak_segment);
    const segment_usage& usage = result_.segments[index];
    result_.peak_time_ns = usage.peak_time_ns;
    result_.peak_operation = usage.peak_operation;
    const bool is_finished = index - space_.first_segment() < space_.segments().size();
    result_.live_at_peak = is_finished ? live_sets_.with_all_owners(usage.live_at_peak) : usage.live_at_peak;
  }

  const Space& space_;
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
  const auto& marks = events.segments();
  result.segments = std::vector<segment>(marks.size() + (names.is_complete ? 0 : 1));
  for (std::size_t index = 0; index < marks.size(); ++index) {
    result.segments[index] = {std::string{names.labels.text(marks[index].name)}, names.time.to_ns(marks[index].begin_stamp),
                              names.time.to_ns(marks[index].end_stamp)};
  }
  if (!names.is_complete) {
    result.segments[marks.size()] = {std::string{open_segment_name}, names.time.to_ns(events.segment_begin()),
                                     names.time.to_ns(events.last_stamp())};
  }
  const std::vector<std::string> paths = detail::operation_paths(events.operations(), names.labels);
  result.operations = detail::build_operations(events, names, paths);
  std::size_t space_count = 0;
  for (std::size_t id = 0; id < ledger::max_spaces; ++id) space_count += events.space(id) != nullptr ? 1 : 0;
  result.spaces = std::vector<space_profile>(space_count);
  for (std::size_t id = 0, index = 0; id < ledger::max_spaces; ++id) {
    const space_ledger* const space = events.space(id);
    if (space == nullptr) continue;
    const std::string_view name = names.labels.text(names.space_names[id]);
    result.spaces[index++] = detail::space_builder{*space, names, paths}.build(name, result.segments);
    if (space->untracked_allocations.count != 0) result.exact = false;
  }
  result.anomalies.rejected_events = static_cast<std::int64_t>(events.rejected_events());
  result.anomalies.unbalanced_scopes = static_cast<std::int64_t>(events.unbalanced_scopes());
  result.anomalies.too_deep_scopes = static_cast<std::int64_t>(events.too_deep_scopes());
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

// ---- <memprof/profile/trace_fold.hpp>
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
    return static_cast<std::size_t>(address * 0x9E3779B97F4A7C15U >> 52);
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

  bool operator==(const space_definition&) const = default;
};

/// Whoever takes a trace record by record, in order.
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
    tables.push_back(std::move(part));
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
      if (in.has_failed() || id >= any_space || name > 0xFFFF'FFFFU || space.capacity < 0) return false;
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
  unsigned char bytes_[4 * max_varint_bytes];
  std::size_t size_ = 0;
};

[[nodiscard]] inline small_payload encode_space(const space_definition& space) noexcept {
  small_payload out;
  out.number(space.id).number(space.name).number(zigzag(space.capacity)).number(space.is_per_core ? 1 : 0);
  return out;
}

}  // namespace detail
}  // namespace memprof

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
  }
  void facts(fact_table&& table, bool is_first) { detail::merge_facts(facts_, std::move(table), is_first); }
  void events(const event* first, const event* last, std::uint32_t ring) noexcept {
    if (!events_) begin({});
    events_->apply(first, last, ring);
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

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return sizeof(trace_fold) + (events_ ? events_->bytes() - sizeof(ledger) : 0) + own_names_.bytes() + info_.bytes();
  }

 private:
  void begin(const capture_info& info) noexcept {
    events_.emplace(ledger_options{info.timeline_points, info.largest_blocks, info.owners_per_segment}, info.begin_stamp);
  }

  const label_table* borrowed_names_ = nullptr;
  label_table own_names_;
  detail::page_array<char> info_;  ///< encoded: while a capture is active it holds nothing that `operator new` gave
  label space_names_[any_space + 1] = {};
  std::vector<fact_table> facts_;
  std::optional<ledger> events_;
};
static_assert(trace_visitor<trace_fold>);

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
[[nodiscard]] inline module_paths find_other_registries() noexcept {
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

[[nodiscard]] inline module_paths find_other_registries() noexcept { return {}; }

#endif

/// Says on stderr whose events are missing.
inline void warn_about_other_registries(const module_paths& paths) noexcept {
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
    const nested_allocation hidden;
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

// ---- <memprof/trace/trace.hpp>
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
    visitor.definition(static_cast<control>(first),
                       std::string_view{reinterpret_cast<const char*>(in), static_cast<std::size_t>(value)});
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
    for (const chunk& each : chunks_) detail::unmap_pages(each.bytes, chunk_bytes);
    detail::unmap_pages(encoder_, sizeof(detail::trace_encoder));
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
  void info(const capture_info& info) { define(detail::control::header, detail::encode_info(info)); }
  /// Names come before the first event that uses them, and their ids are 1, 2, 3, ...
  void name(label id, std::string_view text) noexcept {
    const detail::small_payload number = detail::small_payload{}.number(id);
    define(detail::control::name, number.view(), text);
  }
  void space(const space_definition& space) noexcept { define(detail::control::space, detail::encode_space(space).view()); }
  /// Replaces the table of that name.
  void facts(const fact_table& table) {
    detail::for_each_part(fitted(table), [&](std::string_view payload) { define(detail::control::facts, payload); });
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
  [[nodiscard]] bool empty() const noexcept { return chunks_.empty(); }
  /// Events that came after those that are kept.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return chunks_.size() * chunk_bytes + chunks_.bytes(); }
  /// Bytes that records take.
  [[nodiscard]] std::size_t encoded_bytes() const noexcept {
    std::size_t total = 0;
    for (const chunk& each : chunks_) total += each.used;
    return total;
  }

  /// Calls `visit(bytes, size)` for each of the pieces of the encoding that can be read alone (docs/trace_format.md).
  template <class Visitor>
  void for_each_chunk(Visitor&& visit) const {
    for (const chunk& each : chunks_) visit(each.bytes, each.used);
  }

 private:
  static constexpr std::size_t chunk_bytes = std::size_t{256} * 1024;

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
    return !chunks_.empty() && chunk_bytes - chunks_[chunks_.size() - 1].used >= bytes;
  }

  [[nodiscard]] const event* encode(const event* first, const event* last, std::uint32_t ring) noexcept {
    chunk& open = chunks_.back();
    detail::encoded_bytes out{open.bytes + open.used, open.bytes + chunk_bytes};
    const event* const done = encoder_->encode(first, last, ring, out);
    open.used = static_cast<std::size_t>(out.next - open.bytes);
    return done;
  }

  void define(detail::control kind, std::string_view payload, std::string_view more = {}) noexcept {
    if (left_out_ != 0) return;
    const std::size_t size = payload.size() + more.size();
    if (detail::trace_encoder::control_bytes(size) > chunk_bytes) return;  // no record is as long
    if (!has_room(detail::trace_encoder::control_bytes(size)) && !begin_chunk()) {
      ++left_out_;
      return;
    }
    chunk& open = chunks_.back();
    detail::encoded_bytes out{open.bytes + open.used, open.bytes + chunk_bytes};
    detail::trace_encoder::put_control(kind, payload, more, out);
    open.used = static_cast<std::size_t>(out.next - open.bytes);
  }

  [[nodiscard]] bool begin_chunk() noexcept {
    if (left_out_ != 0 || (chunks_.size() + 1) * chunk_bytes > max_bytes_) return false;
    if (encoder_ == nullptr) {
      void* const pages = detail::map_pages(sizeof(detail::trace_encoder));
      if (pages == nullptr) return false;
      encoder_ = new (pages) detail::trace_encoder;
    }
    void* const pages = detail::map_pages(chunk_bytes);
    if (pages == nullptr) return false;
    if (!chunks_.push_back({static_cast<unsigned char*>(pages), 0})) {
      detail::unmap_pages(pages, chunk_bytes);
      return false;
    }
    encoder_->restart();
    return true;
  }

  void swap(trace& other) noexcept {
    std::swap(max_bytes_, other.max_bytes_);
    std::swap(size_, other.size_);
    std::swap(left_out_, other.left_out_);
    std::swap(chunks_, other.chunks_);
    std::swap(encoder_, other.encoder_);
  }

  std::size_t max_bytes_ = std::numeric_limits<std::size_t>::max();
  std::uint64_t size_ = 0;
  std::uint64_t left_out_ = 0;
  detail::page_array<chunk> chunks_;
  detail::trace_encoder* encoder_ = nullptr;
};

}  // namespace memprof

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
  kept_backends backends;
  trace_fold fold;

  // --- what comes in ------------------------------------------------------------------------------------------------

  /// The drain's consumer.
  void apply(const event* first, const event* last, std::uint32_t ring_id) noexcept {
    fold.events(first, last, ring_id);
    if (kept != nullptr) kept->events(first, last, ring_id);
  }
  void info(const capture_info& info) {
    fold.info(info);
    if (kept != nullptr) kept->info(info);
  }
  void name(label id, std::string_view text) noexcept {
    if (kept != nullptr) kept->name(id, text);
  }
  void space(const space_definition& space) noexcept {
    fold.space(space);
    if (kept != nullptr) kept->space(space);
  }
  void facts(const fact_table& table) {
    fold.facts(fitted(table), true);
    reachable_facts = fold.facts().data();
    if (kept != nullptr) kept->facts(table);
  }
  void put(const event& own) noexcept { apply(&own, &own + 1, no_ring_id); }
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

inline constexpr std::uint64_t million = 1'000'000;

/// Bytes that the profiler holds: rings, names and the capture.
[[nodiscard]] inline std::uint64_t profiler_bytes(const registry& shared, const capture_state& state) noexcept {
  const phantom_addresses* const phantom = shared.phantom.load(std::memory_order_relaxed);
  const hidden_blocks* const hidden = shared.hidden.load(std::memory_order_relaxed);
  return sizeof(registry) + (phantom == nullptr ? 0 : sizeof(phantom_addresses) + phantom->bytes()) +
         (hidden == nullptr ? 0 : sizeof(hidden_blocks) + hidden->bytes()) + shared.ring_bytes +
         shared.drain_heap_capacity * sizeof(event_ring*) + (shared.labels == nullptr ? 0 : shared.labels->bytes()) +
         (sizeof(capture_state) - sizeof(trace_fold)) + state.fold.bytes();
}

/// Empties the rings into the active capture: what `registry::drain` points to.
inline void drain_into_capture(registry& shared) noexcept {
  constexpr std::int64_t between_readings_ns = 1'000'000'000;
  capture_state& state = *state_of(shared);
  const std::uint64_t before = shared.stamps.next();
  drain_rings<no_pauses>(shared, state);
  state.drain_stamps += shared.stamps.next() - before;
  if (monotonic_ns() - state.begin_ns - state.last_reading_ns >= between_readings_ns) put_clock_reading(shared, state);
  if (state.profiler_bytes_at_million == 0 && state.fold.events().events() >= million) {
    state.profiler_bytes_at_million = profiler_bytes(shared, state);
  }
}

inline void put_event_into_capture(registry& shared, const event& own) noexcept { state_of(shared)->put(own); }
inline void define_name_in_capture(registry& shared, label id) noexcept { state_of(shared)->name(id, shared.labels->text(id)); }
inline void define_space_in_capture(registry& shared, std::uint8_t id) noexcept {
  state_of(shared)->space({id, shared.space_names[id], 0, false});
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
inline void begin_trace(registry& shared, capture_state& state, const capture_options& options, run_mode mode) {
  capture_info info;
  info.library_version = version_string;
  info.mode = mode;
  info.device = options.device.name.view();
  info.begin_unix_ns = unix_ns();
  info.begin_stamp = shared.stamps.next();
  info.timeline_points = options.timeline_points;
  info.largest_blocks = options.largest_blocks;
  info.owners_per_segment = options.owners_per_segment;
  info.process = describe_process();
  state.begin_stamp = info.begin_stamp;
  state.info(info);
  for (label id = 1; id <= shared.labels->size(); ++id) state.name(id, shared.labels->text(id));
  for (std::uint32_t id = 0; id < shared.space_count; ++id) {
    space_definition space{static_cast<std::uint8_t>(id), shared.space_names[id], 0, false};
    if (const device_space* const limited = options.device.find_space(shared.labels->text(space.name))) {
      space.capacity = limited->capacity;
      space.is_per_core = limited->is_per_core;
    }
    state.space(space);
  }
  state.put({info.begin_stamp, 0, static_cast<std::uint64_t>(info.begin_unix_ns), 0, event_kind::clock_reading, any_space, 0});
}

/// Ends the trace with a last segment. Under the lock, drained.
inline void end_trace(registry& shared, capture_state& state, std::string_view last_segment) noexcept {
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
  for (event_ring* ring = shared.rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    ring->tail = ring->slots->published.load(std::memory_order_relaxed);
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
}

}  // namespace memprof::detail

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
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
  if (options.trace != nullptr && !options.trace->empty()) {
    raise("begin_capture: capture_options::trace holds a trace already; give each capture one of its own");
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

/// Begins a capture and returns its number. Its profile has `mode`: a backend may simulate though the program's own resources do
/// not. Throws `memprof::error` if one is active or an option is out of range.
[[nodiscard]] inline std::uint32_t begin_session(const capture_options& options, run_mode mode) {
  check(options);
  registry& shared = abi_1::process_registry;
  pin_module();
  const lock_guard serial{shared.backend_lock};
  kept_backends of_last_capture;  // destroyed when the lock is free again
  const internal_guard hidden;
  const registry_guard lock{shared};
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
  of_last_capture = forget_capture(shared);
  (void)abi_1::intern(shared, "cpu");  // makes the table of names, with the space "cpu" in it
  make_limited_spaces(shared, options.device);
  watch_forks(shared);
  prepare_order(shared);
  shared.ring_capacity = options.ring_capacity;
  shared.drop_when_full.store(options.overflow_policy == overflow::drop, std::memory_order_relaxed);
  // In pages of its own: `operator new` is what may be watched.
  void* const pages = map_pages(sizeof(capture_state));
  if (pages == nullptr) raise("begin_capture: the system has no memory for the capture");
  auto* const state = new (pages) capture_state(options, shared);
  if (watcher != nullptr && state->kept == nullptr) state->kept = watcher->trace_for_capture();
  shared.capture = state;
  begin_trace(shared, *state, options, mode);
  state->record_ns = measure_record_cost(shared);
  if (++shared.capture_count == 0) ++shared.capture_count;
  shared.dropped_events.store(0, std::memory_order_relaxed);
  shared.reentrant_events.store(0, std::memory_order_relaxed);
  shared.no_dispatch.store(options.mode == run_mode::no_dispatch ? shared.capture_count : 0, std::memory_order_relaxed);
  if (auto* const hidden_blocks = shared.hidden.load(std::memory_order_relaxed); hidden_blocks != nullptr) hidden_blocks->clear();
  start_recording<no_pauses>(shared);
  connect_capture(shared);
  return shared.capture_count;
}

[[nodiscard]] inline std::uint32_t active_session() noexcept {
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
  if (active_session() != number) return backends;
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
  if (number == 0 || active_session() != number) return {};
  kept_backends& kept = state_of(abi_1::process_registry)->backends;
  if (!kept.is_attached()) return {};
  return {kept.get(), kept.calls(), takes_end && kept.take_attached()};
}

/// Asks the backends of capture `number` for what they know beside events, if it is active and has any.
inline void report_facts_of(std::uint32_t number) {
  const lock_guard serial{backend_lock()};
  const found_backends found = find_backends(number, false);
  if (found.calls == nullptr) return;
  const nested_allocation hidden;
  found.calls->report_facts(found.backends);
}

/// Switches the backends of capture `number` off, if it is active and has any, and asks them a last time.
inline void detach_backends_of(std::uint32_t number) noexcept {
  const lock_guard serial{backend_lock()};
  const found_backends found = find_backends(number, true);
  if (!found.is_first_end) return;
  const nested_allocation hidden;
  found.calls->detach(found.backends);
  found.calls->report_facts(found.backends);
}

/// Ends capture `number` with a last segment. False if it is not the active one.
inline bool end_session(std::uint32_t number, std::string_view name) noexcept {
  registry& shared = abi_1::process_registry;
  if (number == 0 || active_session() != number || !is_outside(abi_1::this_thread)) return false;
  detach_backends_of(number);
  const module_paths unrecorded = find_other_registries();
  warn_about_other_registries(unrecorded);
  const control_guard control;
  if (active_session() != number) return false;
  shared.active_capture.store(0, std::memory_order_relaxed);
  shared.no_dispatch.store(0, std::memory_order_relaxed);
  shared.drain(shared);
  put_unrecorded_modules(*state_of(shared), unrecorded);
  end_trace(shared, *state_of(shared), name);
  disconnect_capture(shared);
  return true;
}

/// Ends whatever capture is active and forgets the last one.
inline void clear_session() noexcept {
  registry& shared = abi_1::process_registry;
  end_session(active_session(), end_segment_name);
  const lock_guard serial{backend_lock()};
  kept_backends of_last_capture;  // destroyed when the registry's lock is free again
  const control_guard control;
  if (shared.active_capture.load(std::memory_order_relaxed) == 0) of_last_capture = forget_capture(shared);
}

/// The profile of capture `number`, or of whichever there is for 0. False if it is gone.
template <class State = capture_state>
[[nodiscard]] bool read_session(std::uint32_t number, profile& result) {
  registry& shared = abi_1::process_registry;
  if (!is_outside(abi_1::this_thread)) return false;
  report_facts_of(number == 0 ? active_session() : number);
  const module_paths unrecorded = find_other_registries();
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

/// Ends the active capture with a last segment; its profile stays readable until the next `begin_capture` or `clear`. Warns on
/// stderr if none is active.
inline void end_capture(std::string_view name = end_segment_name) {
  if (detail::end_session(detail::active_session(), name)) return;
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
  ~capture_guard() { detail::end_session(number_, end_segment_name); }

  /// As the free function, for this guard's capture.
  void snapshot(std::string_view name) noexcept {
    if (number_ == 0 || !detail::record_segment_end(number_, name)) detail::warn_of_late_snapshot(name);
  }

  /// Ends the capture with a last segment. Does nothing if it has ended already.
  void end(std::string_view name = end_segment_name) { detail::end_session(number_, name); }

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
  const std::uint32_t number = detail::begin_session(options, is_simulated ? run_mode::no_dispatch : options.mode);
  capture_guard guard{number};
  if constexpr (sizeof...(Backends) != 0) {
    using attached = detail::attached_backends<Backends...>;
    const detail::nested_allocation hidden;
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

/// The name of the innermost `track_operation` that is open on this thread, for backends that open operations of their own; 0 if
/// there is none.
[[nodiscard]] inline label innermost_scope() noexcept { return abi_1::this_thread.innermost_name; }

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
  ~operation_scope() {
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
/// `told` is the category of what is allocated within, unless an inner scope tells another. Cost: two events; nothing but one
/// load while no capture is active.
template <fixed_string Name>
[[nodiscard]] operation_scope track_operation(optional_category told = {}) noexcept {
  return operation_scope{[] { return detail::static_label<Name>(); }, told.tag()};
}

/// The same for a name made at run time; the text is interned, so use a bounded number of different names.
[[nodiscard]] inline operation_scope track_operation(std::string_view name, optional_category told = {}) noexcept {
  return operation_scope{[name] { return detail::find_label(name); }, told.tag()};
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

/// The text on one line: control characters, which could break the format or the terminal, are written as "\n" or "\x1b".
[[nodiscard]] inline std::string on_one_line(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    if (code >= 0x20 && code != 0x7f) {
      result += character;
    } else if (character == '\n') {
      result += "\\n";
    } else if (character == '\t') {
      result += "\\t";
    } else {
      result += {'\\', 'x', digits[code >> 4], digits[code & 15]};
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

// ---- <memprof/report/text/anomaly_lines.hpp>
#include <string>

/// @file
/// The part of the text report that says in words what was unusual; nothing is said of what did not happen.

namespace memprof::detail {

void append_line(auto& text, const std::string& line) { text += "  " + line + '\n'; }

[[nodiscard]] std::string in_space(const auto& space) { return " in " + on_one_line(space.name); }

/// Why totals and peaks may be too small, one reason a line; empty if there is none.
[[nodiscard]] std::string losses(const auto& source) {
  std::string lines;
  const event_anomalies& on_the_way = source.anomalies;
  if (on_the_way.dropped_events != 0) {
    append_line(lines,
                counted(on_the_way.dropped_events, "event was", "events were") +
                    " dropped because a ring was full (overflow::drop; a larger ring_capacity drops fewer, overflow::drain "
                    "none)");
  }
  if (on_the_way.reentrant_events != 0) {
    append_line(lines, counted(on_the_way.reentrant_events, "event was", "events were") +
                           " lost because a signal handler allocated or freed while another event was recorded");
  }
  if (on_the_way.missing_events != 0) {
    append_line(lines, "at least " + counted(on_the_way.missing_events, "event is", "events are") + " missing in the trace");
  }
  if (on_the_way.rejected_events != 0) {
    append_line(lines, counted(on_the_way.rejected_events, "event was", "events were") +
                           " rejected: impossible values, or no memory to keep them");
  }
  for (const auto& [path] : rows_of<unrecorded_module>(source.facts)) {
    append_line(lines, "what " + on_one_line(path) +
                           " allocated is missing: it has a registry of its own; link the executable with -rdynamic (CMake: "
                           "ENABLE_EXPORTS ON)");
  }
  for (const space_profile& space : source.spaces) {
    const event_tally& untracked = space.anomalies.untracked_allocations;
    if (untracked.count == 0) continue;
    append_line(lines, counted(untracked.count, "allocation", "allocations") + in_space(space) + " (" +
                           megabytes(untracked.bytes) + ") could not be kept because the profiler itself got no memory");
  }
  return lines;
}

/// What else happened that a careful reader wants to know, one thing a line.
[[nodiscard]] std::string oddities(const auto& source) {
  std::string lines;
  for (const space_profile& space : source.spaces) {
    const auto add = [&](const event_tally& tally, const char* singular, const char* plural, const std::string& rest) {
      if (tally.count != 0) append_line(lines, counted(tally.count, singular, plural) + in_space(space) + rest);
    };
    const auto of = [](const event_tally& tally) { return " (" + megabytes(tally.bytes) + ")"; };
    const space_anomalies& found = space.anomalies;
    add(found.unmatched_frees, "free", "frees",
        " of blocks that the capture never saw allocated" + of(found.unmatched_frees) + ": not counted as deallocations");
    add(found.replaced_allocations, "allocation", "allocations",
        " at the address of a live block" + of(found.replaced_allocations) + ": the older block counts as deallocated");
    add(found.mismatched_sizes, "free", "frees",
        " that told another size than was allocated" + of(found.mismatched_sizes) + ": the allocated size counts");
    add(found.cross_thread_frees, "free", "frees",
        " by another thread than the one that allocated" + of(found.cross_thread_frees) + ": usual in pipelines");
    add(space.reserved.unmatched_releases, "release", "releases",
        " of memory that the capture never saw reserved" + of(space.reserved.unmatched_releases));
    add(space.reserved.replaced_reservations, "reservation", "reservations",
        " of memory that was reserved already" + of(space.reserved.replaced_reservations) + ": the older one counts as released");
    add(found.null_allocations, "allocation", "allocations",
        " at a null address" + of(found.null_allocations) + ": failed, not counted");
    add(found.overlapping_blocks, "live block", "live blocks",
        " within another live block" + of(found.overlapping_blocks) + ": counted twice");
    add(found.unknown_annotations, "annotation", "annotations", " of an address that was not live");
  }
  if (source.anomalies.unbalanced_scopes != 0) {
    append_line(lines, counted(source.anomalies.unbalanced_scopes, "operation", "operations") + " without a begin or an end");
  }
  if (source.anomalies.too_deep_scopes != 0) {
    append_line(lines, counted(source.anomalies.too_deep_scopes, "operation", "operations") +
                           " within 256 others: counted as part of the 256th");
  }
  return lines;
}

/// Says loudly, before any number is explained, what is missing altogether, and that the numbers are not exact, and why.
void append_warning(auto& text, const auto& source) {
  for (const missing_source& missing : rows_of<missing_source>(source.facts)) {
    text += "WARNING: NOT CAPTURED: " + on_one_line(missing.source) + ": " + on_one_line(missing.reason) + '\n';
  }
  if (source.exact) return;
  const std::string reasons = losses(source);
  text += "WARNING: NOT EXACT, totals may be too small, and live bytes and peaks too small or too large\n";
  text += reasons.empty() ? "  the profile does not say why\n" : reasons;
}

void append_oddities(auto& text, const auto& source) {
  const std::string lines = oddities(source);
  if (!lines.empty()) text += "Unusual:\n" + lines;
}

}  // namespace memprof::detail

// ---- <memprof/report/text/core_lines.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

/// @file
/// The parts of the text report about memory that each core has of its own: the line of L1 that the tracker of tt-train prints,
/// and which cores it was.

namespace memprof::detail {

/// Whether blocks of the space were told on cores.
[[nodiscard]] bool lies_on_cores(const auto& space) { return !space.cores.ranges.empty(); }

[[nodiscard]] inline std::string upper_case(std::string text) {
  for (char& character : text) {
    if (character >= 'a' && character <= 'z') character = static_cast<char>(character - 'a' + 'A');
  }
  return text;
}

/// The peaks in one segment; zeros if the profile has no such segment.
[[nodiscard]] core_peaks core_peaks_in(const auto& space, std::size_t segment) {
  return segment < space.cores.segments.size() ? space.cores.segments[segment] : core_peaks{};
}

void append_core_usage(auto& text, const std::string& label, const auto& peaks) {
  text += label + ": Peak CB " + megabytes(peaks.circular_buffers) + ", Peak Buffer " + megabytes(peaks.buffers) +
          ", Peak Total " + megabytes(peaks.total) + '\n';
}

/// The busiest core, and the first `most` rectangles of cores in a table.
void append_core_ranges(auto& text, const auto& cores, std::size_t most) {
  text += "  On one core at most " + megabytes(cores.peaks.total) + " (" + counted(cores.peaks.total, "byte", "bytes") + ")";
  if (!cores.peaks.busiest_core.empty()) text += ", first of all on core " + on_one_line(cores.peaks.busiest_core);
  const std::size_t shown = std::min(most, cores.ranges.size());
  text += shown == 0 ? "\n" : ":\n         Peak CB      Peak Buffer       Peak Total  Cores\n";
  for (std::size_t index = 0; index < shown; ++index) {
    constexpr std::size_t width = 15;
    const core_range_peaks& row = cores.ranges[index];
    text += right_aligned(megabytes(row.peaks.circular_buffers), width + 1) +
            right_aligned(megabytes(row.peaks.buffers), width + 2) + right_aligned(megabytes(row.peaks.total), width + 2) + "  " +
            on_one_line(row.range) + '\n';
  }
  if (shown != 0 && shown < cores.ranges.size()) {
    text +=
        "    (" + counted(static_cast<std::int64_t>(cores.ranges.size() - shown), "more rectangle", "more rectangles") + ")\n";
  }
}

}  // namespace memprof::detail

// ---- <memprof/report/text/segment_text.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// How the text report says when and where something happened.

namespace memprof::detail {

[[nodiscard]] inline std::string operation_text(std::string_view path) {
  return path.empty() ? std::string{"outside every operation"} : "in operation " + on_one_line(path);
}

[[nodiscard]] inline std::string after_begin(std::int64_t time_ns) {
  constexpr double ns_per_second = 1e9;
  return decimal(static_cast<double>(time_ns) / ns_per_second, 3) + " s after the capture began";
}

/// "in segment FORWARD_PASS (2 of 2), "; empty if the index leads to none.
[[nodiscard]] std::string segment_text(const auto& source, std::int64_t index) {
  if (index < 0 || static_cast<std::size_t>(index) >= source.segments.size()) return {};
  return "in segment " + on_one_line(source.segments[static_cast<std::size_t>(index)].name) + " (" + std::to_string(index + 1) +
         " of " + std::to_string(source.segments.size()) + "), ";
}

}  // namespace memprof::detail

// ---- <memprof/report/text/text_options.hpp>
#include <cstddef>
#include <string_view>

namespace memprof {

/// What a text report shows.
struct text_options {
  /// The memory space whose lines say "DRAM", as the logs of tt-train do. Empty: the space "dram" if there is one, else the first
  /// that is not "cpu", else "cpu".
  std::string_view primary_space = {};
  std::size_t max_segments = 0;         ///< lines for the first segments only; 0 is no limit
  std::size_t owners = 5;               ///< operations named at a peak
  std::size_t largest_blocks = 5;       ///< blocks named at a peak
  std::size_t core_ranges = 5;          ///< rectangles of cores named for a space whose blocks lie on cores
  std::size_t streams = 10;             ///< streams and pools named for a space whose allocator tells them
  std::size_t out_of_memory = 3;        ///< allocations named for which a device had no memory
  std::size_t pytorch_operations = 10;  ///< rows of each table about PyTorch's operators
};

}  // namespace memprof

// ---- <memprof/report/text/device_lines.hpp>
#include <algorithm>
#include <cstddef>
#include <string>

/// @file
/// The parts of the text report that answer: which stream and pool held the memory, and what did the device have no room for.

namespace memprof::detail {

/// "stream default, private pool 0:1".
[[nodiscard]] std::string stream_text(const auto& row) {
  std::string text = row.stream.starts_with('(') ? on_one_line(row.stream) : "stream " + on_one_line(row.stream);
  if (row.pool == "unknown") return text + ", pool unknown";
  return row.pool.empty() ? text : text + ", private pool " + on_one_line(row.pool);
}

/// One stream with the allocator's own pool holds all that is said of the space anyway.
[[nodiscard]] bool are_worth_a_table(const auto& streams) {
  return streams.size() > 1 || (streams.size() == 1 && !streams.front().pool.empty() && streams.front().pool != "unknown");
}

/// The first streams of the space, which are those with the most reserved bytes.
void append_streams(auto& text, const auto& space, const text_options& options) {
  if (!are_worth_a_table(space.streams)) return;
  constexpr std::size_t width = 15;
  text += "  By stream and pool:\n   Reserved peak  Reserved now      Live peak       Live now  Allocations\n";
  const std::size_t shown = std::min(options.streams, space.streams.size());
  for (std::size_t index = 0; index < shown; ++index) {
    const stream_usage& row = space.streams[index];
    text += right_aligned(megabytes(row.reserved_peak), width + 1) + right_aligned(megabytes(row.reserved_current), width - 1) +
            right_aligned(megabytes(row.cumulative_peak), width) + right_aligned(megabytes(row.cumulative_current), width) +
            right_aligned(std::to_string(row.allocation_count), width - 2) + "  " + stream_text(row) + '\n';
  }
  if (shown < space.streams.size()) text += "    (" + std::to_string(space.streams.size() - shown) + " more)\n";
}

/// Each allocation for which the device had no memory, up to the first ones.
void append_out_of_memory(auto& text, const auto& source, const auto& space, const text_options& options) {
  const std::size_t shown = std::min(options.out_of_memory, space.out_of_memory.size());
  for (std::size_t index = 0; index < shown; ++index) {
    const out_of_memory_failure& failed = space.out_of_memory[index];
    text += on_one_line(space.name) + " WAS OUT OF MEMORY: " + megabytes(failed.requested) + " were asked for, " +
            after_begin(failed.time_ns) + ",\n  " + segment_text(source, failed.segment) + operation_text(failed.operation) +
            ";\n  " + megabytes(failed.device_free) + " were free on the device, " + megabytes(failed.reserved_bytes) +
            " reserved by its allocator, " + megabytes(failed.live_bytes) + " of them live\n";
  }
  const auto left_out = static_cast<std::int64_t>(space.out_of_memory.size() - shown) + space.further_out_of_memory.count;
  if (left_out > 0) text += "  and " + counted(left_out, "further time", "further times") + '\n';
}

}  // namespace memprof::detail

// ---- <memprof/report/text/reserved_lines.hpp>
#include <algorithm>
#include <cstdint>
#include <string>

/// @file
/// The part of the text report about what an allocator held of the device beyond what the program had allocated of it.

namespace memprof::detail {

/// Nothing if no allocator told.
void append_reserved(auto& text, const auto& space) {
  const reserved_profile& held = space.reserved;
  if (held.peak == 0) return;
  text += "  Reserved by its allocator: at most " + megabytes(held.peak) + " (" + counted(held.peak, "byte", "bytes") + "), " +
          megabytes(std::max(held.peak - space.cumulative_peak, std::int64_t{0})) + " more than was ever live, " +
          megabytes(held.current) + " at the end\n";
}

}  // namespace memprof::detail

// ---- <memprof/report/text/peak_lines.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The part of the text report that answers: how much was it, when, and whose.

namespace memprof::detail {

/// One row of a table: bytes, their share of `whole`, and whose they are.
void append_share(auto& text, std::int64_t bytes, std::int64_t whole, const std::string& what) {
  constexpr std::size_t bytes_width = 15;
  constexpr std::size_t share_width = 6;
  const double share = whole == 0 ? 0.0 : 100.0 * static_cast<double>(bytes) / static_cast<double>(whole);
  text +=
      right_aligned(megabytes(bytes), bytes_width) + "  " + right_aligned(decimal(share, 1), share_width) + " %  " + what + '\n';
}

/// The first `most` operations, and all others as one row, so that the rows add up.
void append_owners(auto& text, const auto& live, std::size_t most) {
  text += "  Largest owners at that moment:\n";
  const std::size_t shown = std::min(most, live.by_operation.size());
  std::int64_t others_bytes = live.remaining_bytes;
  for (std::size_t index = 0; index < live.by_operation.size(); ++index) {
    const owned_bytes& row = live.by_operation[index];
    if (index >= shown) {
      others_bytes += row.bytes;
      continue;
    }
    const std::string owner = row.owner.empty() ? operation_text({}) : on_one_line(row.owner);
    append_share(text, row.bytes, live.bytes, owner + " (" + counted(row.blocks, "block", "blocks") + ")");
  }
  const std::int64_t others = static_cast<std::int64_t>(live.by_operation.size() - shown) + live.remaining_operations;
  if (others > 0) append_share(text, others_bytes, live.bytes, counted(others, "further operation", "further operations"));
}

void append_categories(auto& text, const auto& live) {
  const bool none_set =
      live.by_category.empty() || (live.by_category.size() == 1 && live.by_category.front().owner == to_string(category::other));
  if (none_set) return;
  text += "  By category:\n";
  for (const owned_bytes& row : live.by_category) {
    append_share(text, row.bytes, live.bytes, on_one_line(row.owner) + " (" + counted(row.blocks, "block", "blocks") + ")");
  }
}

/// What is known of a block: its annotation, or else its address.
[[nodiscard]] std::string block_text(const auto& block) {
  std::string text = on_one_line(block.name);
  for (const std::string* const part : {&block.shape, &block.dtype}) {
    if (!part->empty()) text += (text.empty() ? "" : " ") + on_one_line(*part);
  }
  if (block.requires_grad == requires_grad::yes) text += text.empty() ? "requires_grad" : " requires_grad";
  if (text.empty()) {
    std::array<char, 16> digits{};
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), block.address, 16);
    text = "0x" + std::string{digits.data(), written.ptr};
  }
  if (block.category != category::other) text += ", " + std::string{to_string(block.category)};
  return text + ", allocated " + operation_text(block.operation);
}

void append_blocks(auto& text, const auto& live, std::size_t most) {
  const std::size_t shown = std::min(most, live.largest_blocks.size());
  if (shown == 0) return;
  text += "  Largest blocks:\n";
  for (std::size_t index = 0; index < shown; ++index) {
    const live_block& block = live.largest_blocks[index];
    append_share(text, block.bytes, live.bytes, block_text(block));
  }
}

/// When and where the greatest number of bytes was live in one space, and whose they were.
void append_peak(auto& text, const auto& source, const auto& space, const text_options& options) {
  text += "Peak of " + on_one_line(space.name) + (lies_on_cores(space) ? " on all cores together: " : ": ") +
          megabytes(space.cumulative_peak) + " (" + counted(space.cumulative_peak, "byte", "bytes") + ")";
  if (space.cumulative_peak == 0) {
    text += ", nothing was live\n";
    append_reserved(text, space);
    return append_streams(text, space, options);
  }
  text += ", " + after_begin(space.peak_time_ns) + ",\n  " + segment_text(source, space.peak_segment) +
          operation_text(space.peak_operation) + '\n';
  append_reserved(text, space);
  append_streams(text, space, options);
  append_owners(text, space.live_at_peak, options.owners);
  append_categories(text, space.live_at_peak);
  append_blocks(text, space.live_at_peak, options.largest_blocks);
  if (lies_on_cores(space)) append_core_ranges(text, space.cores, options.core_ranges);
}

}  // namespace memprof::detail

// ---- <memprof/report/text/capacity_lines.hpp>
#include <cstdint>
#include <string>

/// @file
/// The part of the text report that answers: would it have fitted the device, and if not, what would have helped.

namespace memprof::detail {

/// What would have had to be freed, in one sentence.
[[nodiscard]] std::string remedy_text(const auto& full) {
  if (!full.holders_known) return "Who held the rest is not known: the profiler itself got no memory.";
  if (full.remedy.empty()) return "Freeing all of it would not have been enough: more was asked for than the capacity.";
  std::int64_t together = 0;
  for (const owned_bytes& row : full.remedy) together += row.bytes;
  if (full.remedy.size() == 1) {
    const owned_bytes& owner = full.remedy.front();
    return "Freeing what " + (owner.owner.empty() ? operation_text({}) : on_one_line(owner.owner)) + " held, " +
           megabytes(together) + " in " + counted(owner.blocks, "block", "blocks") + ", would have been enough.";
  }
  return "Freeing what the largest " + std::to_string(full.remedy.size()) + " owners held, " + megabytes(together) +
         " together, would have been enough; no single one held as much.";
}

/// The first allocation that exceeded the space's capacity, and who held the rest.
void append_shortfall(auto& text, const auto& source, const auto& space, const text_options& options) {
  const capacity_shortfall& full = space.first_shortfall;
  text += on_one_line(space.name) + " would have been full" + (full.core.empty() ? "" : " on core " + on_one_line(full.core)) +
          ": " + megabytes(full.requested) + " more were asked for, " + after_begin(full.time_ns) + ",\n  " +
          segment_text(source, full.segment) + operation_text(full.operation);
  if (full.category != category::other) text += ", for category " + std::string{to_string(full.category)};
  text += ";\n  " + megabytes(full.free) + " were free of " + megabytes(space.capacity) + ", " + megabytes(full.shortfall) +
          " too few.\n  " + remedy_text(full) + '\n';
  if (!full.holders_known) return;
  append_owners(text, full.held, options.owners);
  append_categories(text, full.held);
  append_blocks(text, full.held, options.largest_blocks);
}

/// What was left of a capacity that was never exceeded.
inline void append_room(std::string& text, const space_profile& space) {
  const bool on_cores = space.capacity_is_per_core;
  const std::string busiest = on_one_line(space.cores.peaks.busiest_core);
  text += on_one_line(space.name) + " would not have been full: at its peak " +
          megabytes(space.capacity - (on_cores ? space.cores.peaks.total : space.cumulative_peak)) + " were free of " +
          megabytes(space.capacity);
  if (on_cores) text += busiest.empty() ? " on each core" : " on core " + busiest;
  text += '\n';
}

/// Whether the space's live bytes would have fitted; nothing if it has no capacity.
void append_capacity(auto& text, const auto& source, const auto& space, const text_options& options) {
  if (space.capacity == 0) return;
  if (space.first_shortfall.requested != 0) return append_shortfall(text, source, space, options);
  if (!space.capacity_is_per_core || lies_on_cores(space)) return append_room(text, space);
  text += "Whether " + on_one_line(space.name) + " would have been full is not known: each core has " +
          megabytes(space.capacity) + ", but no block was told on cores\n";
}

}  // namespace memprof::detail

// ---- <memprof/report/text/segment_lines.hpp>
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

/// @file
/// The part of the text report that scripts read: line for line what the memory tracker of tt-train prints, so that parsers of
/// its logs (analyze_memory.py, extract_results.py) read ours. Lines of further memory spaces stand where those parsers look
/// past.

namespace memprof::detail {

/// The space that the options choose, or a null pointer if there is none; one whose blocks lie on cores has lines of its own.
[[nodiscard]] const space_profile* primary_space(const auto& source, const text_options& options) {
  if (!options.primary_space.empty()) return &source.space(options.primary_space);
  if (const space_profile* const dram = source.find_space("dram")) return dram;
  for (const space_profile& space : source.spaces) {
    if (space.name != "cpu" && !lies_on_cores(space)) return &space;
  }
  return source.find_space("cpu");
}

/// What stands before the colon in the lines of another space. The parsers search for "DRAM:" anywhere in a line.
[[nodiscard]] std::string space_label(const auto& space) {
  const std::string label = lies_on_cores(space) ? upper_case(on_one_line(space.name)) : on_one_line(space.name);
  return std::string_view{label}.ends_with("DRAM") ? label + " space" : label;
}

void append_usage(auto& text, const std::string& label, const auto& usage) {
  text += "  " + label + ": Segment Peak " + megabytes(usage.segment_peak) + ", Allocations " + megabytes(usage.allocations) +
          ", Deallocations " + megabytes(usage.deallocations) + ", Segment Change " + signed_megabytes(usage.segment_change) +
          '\n';
  text += "  " + label + ": Cumulative Peak " + megabytes(usage.cumulative_peak) + ", Cumulative Current " +
          megabytes(usage.cumulative_current) + '\n';
}

/// The blocks "--- NAME ---" and the totals, `primary` under the name "DRAM"; zeros if there is no space. For spaces whose blocks
/// lie on cores the tracker's line of L1.
void append_segments(auto& text, const auto& source, const space_profile* primary, const text_options& options) {
  const std::size_t shown =
      options.max_segments == 0 ? source.segments.size() : std::min(options.max_segments, source.segments.size());
  const segment_usage none;
  const auto usage_in = [&none](const space_profile* space, std::size_t index) -> const segment_usage& {
    return space != nullptr && index < space->segments.size() ? space->segments[index] : none;
  };

  text += "=== Memory Usage Summary ===\n\n";
  for (std::size_t index = 0; index < shown; ++index) {
    text += "--- " + on_one_line(source.segments[index].name) + " ---\n";
    append_usage(text, "DRAM", usage_in(primary, index));
    for (const space_profile& space : source.spaces) {
      if (lies_on_cores(space)) append_core_usage(text, "  " + space_label(space), core_peaks_in(space, index));
    }
    for (const space_profile& space : source.spaces) {
      if (&space != primary && !lies_on_cores(space)) append_usage(text, space_label(space), usage_in(&space, index));
    }
  }
  if (shown < source.segments.size()) {
    text += "(" + counted(static_cast<std::int64_t>(source.segments.size() - shown), "more segment", "more segments") + ")\n";
  }

  text += "\n=== Final Totals ===\n";
  const auto append_totals = [&text](const std::string& label, std::int64_t peak, std::int64_t current) {
    text += "Overall " + label + " Peak: " + megabytes(peak) + ", Final " + label + " Usage: " + megabytes(current) + '\n';
  };
  append_totals("DRAM", primary == nullptr ? 0 : primary->cumulative_peak, primary == nullptr ? 0 : primary->cumulative_current);
  for (const space_profile& space : source.spaces) {
    if (lies_on_cores(space)) {
      append_core_usage(text, "Overall " + space_label(space), space.cores.peaks);
    } else if (&space != primary) {
      append_totals(space_label(space), space.cumulative_peak, space.cumulative_current);
    }
  }
  text += '\n';
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

// ---- <memprof/profile/fact/pytorch_operation.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof {

/// What all calls of one PyTorch operator with inputs of the same shapes did, as `track_pytorch_ops` counted them.
struct pytorch_operation {
  std::string name;                 ///< for example "aten::addmm"
  std::string input_shapes;         ///< for example "[512], [4, 768], [768, 512]"; "[]" is a scalar tensor
  std::int64_t count = 0;           ///< calls
  std::int64_t cpu_time_ns = 0;     ///< inclusive
  std::int64_t device_time_ns = 0;  ///< inclusive, between events in the current stream; 0: not measured
  std::int64_t cpu_memory = 0;      ///< self, bytes: allocated - freed
  std::int64_t device_memory = 0;   ///< the same on devices whose allocations the capture sees

  bool operator==(const pytorch_operation&) const = default;

  static constexpr std::string_view table = "pytorch_operations";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("name", row.name);
    visit("input_shapes", row.input_shapes);
    visit("count", row.count);
    visit("cpu_time_ns", row.cpu_time_ns);
    visit("device_time_ns", row.device_time_ns);
    visit("cpu_memory", row.cpu_memory);
    visit("device_memory", row.device_memory);
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

// ---- <memprof/report/text/torch_lines.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

/// @file
/// The parts of the text report about PyTorch's operators: which allocated most, and which a simulated run only estimated or did
/// not know.

namespace memprof::detail {

/// A row that says how many were left out of a table.
void append_further(auto& text, std::size_t all, std::size_t shown, const char* what) {
  if (shown < all) text += "    (" + std::to_string(all - shown) + " more " + what + ")\n";
}

/// The first operators of the profile, which are those that it puts first.
void append_pytorch_operations(auto& text, const auto& operations, const text_options& options) {
  if (operations.empty()) return;
  const std::size_t shown = std::min(options.pytorch_operations, operations.size());
  text += "PyTorch operators:\n      Calls       CPU time       CPU memory    Device memory  Operator and input shapes\n";
  for (std::size_t index = 0; index < shown; ++index) {
    constexpr std::size_t width = 15;
    constexpr double ns_per_ms = 1e6;
    const pytorch_operation& row = operations[index];
    text += right_aligned(std::to_string(row.count), width - 4) +
            right_aligned(decimal(static_cast<double>(row.cpu_time_ns) / ns_per_ms, 3) + " ms", width) +
            right_aligned(signed_megabytes(row.cpu_memory), width + 2) +
            right_aligned(signed_megabytes(row.device_memory), width + 2) + "  " + on_one_line(row.name) +
            (row.input_shapes.empty() ? "" : " " + on_one_line(row.input_shapes)) + '\n';
  }
  append_further(text, operations.size(), shown, "operators or shapes");
}

/// What was estimated, so that nobody takes it for exact.
void append_approximations(auto& text, const auto& approximations, const text_options& options) {
  if (approximations.empty()) return;
  const std::size_t shown = std::min(options.pytorch_operations, approximations.size());
  text += "Estimated, not exact:\n";
  for (std::size_t index = 0; index < shown; ++index) {
    const approximated_operation& row = approximations[index];
    text += "  " + on_one_line(row.name) + ": " + counted(row.count, "call", "calls") + ", " + megabytes(row.bytes) + "; " +
            on_one_line(row.cause) + '\n';
  }
  append_further(text, approximations.size(), shown, "operations");
}

/// Values that a simulated run did not know, after which the program may have gone another way.
void append_unknown_reads(auto& text, const auto& reads, const text_options& options) {
  if (reads.empty()) return;
  const std::size_t shown = std::min(options.pytorch_operations, reads.size());
  text += "Read without being known (zeros were given; the program may take another way with real data):\n";
  for (std::size_t index = 0; index < shown; ++index) {
    const unknown_read& row = reads[index];
    text += "  " + (row.name.empty() ? std::string{"(memory)"} : on_one_line(row.name)) + ": " +
            counted(row.count, "time", "times") + (row.operation.empty() ? "" : " in " + on_one_line(row.operation)) + '\n';
  }
  append_further(text, reads.size(), shown, "reads");
}

}  // namespace memprof::detail

// ---- <memprof/report/text.hpp>
#include <concepts>
#include <string>

namespace memprof {

namespace detail {

/// Which device the capture was told of; that it limits nothing may be a misspelt space.
void append_device(auto& text, const auto& source) {
  if (source.device.empty()) return;
  bool limits_any = false;
  for (const space_profile& space : source.spaces) limits_any = limits_any || space.capacity != 0;
  text += "Device " + on_one_line(source.device) + (limits_any ? ".\n" : " limits none of these memory spaces.\n");
}

void append_state(auto& text, const auto& source, const space_profile* primary) {
  if (primary != nullptr) text += "DRAM stands for the memory space " + on_one_line(primary->name) + ".\n";
  if (source.mode == run_mode::no_dispatch)
    text += "Run mode no_dispatch: sizes and lifetimes are real, nothing was allocated.\n";
  append_device(text, source);
  if (!source.complete) text += "The capture has not ended: the numbers are those so far.\n";
}

void append_cost(auto& text, const auto& cost) {
  if (cost.events == 0 && cost.memory_bytes == 0) return;  // a trace does not know it
  text += "The profiler itself: " + megabytes(cost.memory_bytes) + " of memory";
  if (cost.memory_bytes_at_million_events != 0) {
    text += " (" + megabytes(cost.memory_bytes_at_million_events) + " when it had seen a million events)";
  }
  text += ", " + counted(cost.events, "event", "events") + ", " + decimal(cost.record_ns_per_event, 1) + " ns to record and " +
          decimal(cost.drain_ns_per_event, 1) + " ns to account for each\n";
}

}  // namespace detail

/// A profile as text for people and for existing log parsers.
///
/// First the summary that the memory tracker of tt-train prints, line for line, one memory space under the name DRAM; then which
/// space that is, a warning if the numbers are not exact, the peak of each space with its segment, operation and largest owners,
/// whether that would have fitted the described device, whatever was unusual, and the profiler's own cost. MB is 2^20 bytes.
/// Throws `memprof::error` if `text_options::primary_space` names no space of the profile. A template, as are the parts of the
/// report, only so that units that print no profile do not compile it.
template <std::same_as<profile> Profile = profile>
[[nodiscard]] std::string to_text(const Profile& source, const text_options& options = {}) {
  const space_profile* const primary = detail::primary_space(source, options);
  std::string text;
  if (source.segments.empty()) {
    text += "WARNING: No traces captured\n";
    // Before the first snapshot there is no segment, but perhaps a peak already.
    if (source.spaces.empty() && source.facts.empty()) return text;
  } else {
    detail::append_segments(text, source, primary, options);
  }
  detail::append_state(text, source, primary);
  detail::append_warning(text, source);
  for (const space_profile& space : source.spaces) {
    if (&space != primary && space.cumulative_peak == 0 && space.reserved.peak == 0 && space.out_of_memory.empty()) continue;
    detail::append_out_of_memory(text, source, space, options);
    detail::append_peak(text, source, space, options);
    detail::append_capacity(text, source, space, options);
  }
  detail::append_pytorch_operations(text, rows_of<pytorch_operation>(source.facts), options);
  detail::append_approximations(text, rows_of<approximated_operation>(source.facts), options);
  detail::append_unknown_reads(text, rows_of<unknown_read>(source.facts), options);
  detail::append_oddities(text, source);
  detail::append_cost(text, source.cost);
  return text;
}

}  // namespace memprof

// ---- <memprof/memprof.hpp>
/// @file
/// memprof: where a training loop's memory goes. This header is all a program needs that wants a text summary; it needs no other
/// library. More by one include each: `<memprof/profile/json.hpp>`, `<memprof/backend/new_delete.hpp>`.

#include <cstdio>

namespace memprof {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Prints the text summary of the active capture up to now, or of the last one, on stdout.
template <class State = detail::capture_state>
void print_memory_usage() {
  const profile current = current_profile<State>();
  const detail::internal_guard hidden;  // the text must not show in what it reports
  std::fputs(to_text(current).c_str(), stdout);
}

}  // namespace enabled
#else
inline namespace disabled {

inline void print_memory_usage() noexcept {}

}  // namespace disabled
#endif

}  // namespace memprof

