#pragma once

#include <memprof/config.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

/// @file
/// What simulated tensors take on the fake CUDA device at this moment, for programs that ask: `torch.cuda.memory_allocated()`.

namespace memprof::inline MEMPROF_ABI::detail {

/// A model of the device's allocator, of whoever has one: it is told of each block, and says whether there is room. Its functions
/// may be called from any thread.
struct device_allocator {
  void* self;
  /// Whether there is room for a block of that size; if not, `message` (of `room` bytes) says so as the allocator would, and
  /// `free_bytes` what the device has left.
  bool (*has_room)(void* self, std::int64_t bytes, char* message, std::size_t room, std::int64_t* free_bytes);
  /// Blocks are known by address.
  void (*allocate)(void* self, const void* address, std::int64_t bytes);
  void (*deallocate)(void* self, const void* address);
};

/// The usage in one capture. Thread-safe; the numbers of a moment when no thread allocates agree with each other.
class device_usage {
 public:
  /// Begins a capture, without a limit.
  void begin() noexcept {
    capture_.fetch_add(1, std::memory_order_relaxed);
    for (std::atomic<std::int64_t>* const number :
         {&live_, &peak_, &reserved_, &allocated_, &allocations_, &deallocations_, &limit_}) {
      number->store(0, std::memory_order_relaxed);
    }
  }
  /// Requests that exceed so many bytes fail; 0: none do.
  void set_limit(std::int64_t bytes) noexcept { limit_.store(bytes, std::memory_order_relaxed); }

  /// The number of the capture: blocks of an earlier one do not count when they are freed.
  [[nodiscard]] std::uint32_t capture() const noexcept { return capture_.load(std::memory_order_relaxed); }

  /// `used` must live until another or none is set; null: none.
  void set_allocator(const device_allocator* used) noexcept { allocator_.store(used, std::memory_order_release); }
  [[nodiscard]] const device_allocator* allocator() const noexcept { return allocator_.load(std::memory_order_acquire); }

  void allocate(const void* address, std::int64_t bytes) noexcept {
    if (const device_allocator* const model = allocator()) model->allocate(model->self, address, bytes);
    const std::int64_t live = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    raise_to(peak_, live);
    raise_to(reserved_, live);
    allocated_.fetch_add(bytes, std::memory_order_relaxed);
    allocations_.fetch_add(1, std::memory_order_relaxed);
  }
  void deallocate(const void* address, std::int64_t bytes) noexcept {
    if (const device_allocator* const model = allocator()) model->deallocate(model->self, address);
    live_.fetch_sub(bytes, std::memory_order_relaxed);
    deallocations_.fetch_add(1, std::memory_order_relaxed);
  }
  void reset_peak() noexcept { peak_.store(live(), std::memory_order_relaxed); }
  void reset_reserved() noexcept { reserved_.store(live(), std::memory_order_relaxed); }

  /// What is left of the limit if a request of `bytes`, rounded up to 512 as CUDA's caching allocator does, exceeds it; otherwise
  /// -1.
  [[nodiscard]] std::int64_t left_if_too_little(std::int64_t bytes) const noexcept {
    const std::int64_t limit = limit_.load(std::memory_order_relaxed);
    if (limit == 0) return -1;
    const std::int64_t left = std::max<std::int64_t>(limit - live(), 0);
    return (bytes + 511) / 512 * 512 > left ? left : -1;
  }

  [[nodiscard]] std::int64_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t live() const noexcept { return live_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
  /// The most that was live since the capture began, or `reset_reserved`: what a caching allocator holds at least.
  [[nodiscard]] std::int64_t reserved() const noexcept { return reserved_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t allocated() const noexcept { return allocated_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t allocations() const noexcept { return allocations_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t deallocations() const noexcept { return deallocations_.load(std::memory_order_relaxed); }

 private:
  static void raise_to(std::atomic<std::int64_t>& number, std::int64_t least) noexcept {
    std::int64_t known = number.load(std::memory_order_relaxed);
    while (known < least && !number.compare_exchange_weak(known, least, std::memory_order_relaxed)) {
    }
  }

  std::atomic<const device_allocator*> allocator_{nullptr};
  std::atomic<std::uint32_t> capture_{0};
  std::atomic<std::int64_t> limit_{0};
  std::atomic<std::int64_t> live_{0};
  std::atomic<std::int64_t> peak_{0};
  std::atomic<std::int64_t> reserved_{0};
  std::atomic<std::int64_t> allocated_{0};
  std::atomic<std::int64_t> allocations_{0};
  std::atomic<std::int64_t> deallocations_{0};
};

[[gnu::visibility("default")]] inline constinit device_usage fake_device_usage{};

}  // namespace memprof::inline MEMPROF_ABI::detail
