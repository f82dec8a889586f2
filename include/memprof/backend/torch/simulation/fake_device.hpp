#pragma once

#include <memprof/config.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

/// @file
/// The fake CUDA device: which capture its blocks belong to, and the model of its allocator that the embedding program may
/// supply.

namespace memprof::inline MEMPROF_ABI::detail {

/// A model of the device's allocator. It is told of each block, and asked first whether there is room for it. Its functions may
/// be called from any thread.
struct device_allocator {
  void* self;
  /// Whether there is room for a block of that size; if not, `message` (of `room` bytes) says so as the allocator would, and
  /// `free_bytes` what the device has left.
  bool (*has_room)(void* self, std::int64_t bytes, char* message, std::size_t room, std::int64_t* free_bytes);
  /// Blocks are known by address.
  void (*allocate)(void* self, const void* address, std::int64_t bytes);
  void (*deallocate)(void* self, const void* address);
};

/// Thread-safe.
class fake_device {
 public:
  void begin_capture() noexcept { capture_.fetch_add(1, std::memory_order_relaxed); }
  /// The number of the capture: blocks of an earlier one do not count when they are freed.
  [[nodiscard]] std::uint32_t capture() const noexcept { return capture_.load(std::memory_order_relaxed); }

  /// `used` must live until another or none is set; null: none.
  void set_allocator(const device_allocator* used) noexcept { allocator_.store(used, std::memory_order_release); }
  [[nodiscard]] const device_allocator* allocator() const noexcept { return allocator_.load(std::memory_order_acquire); }

  void allocate(const void* address, std::int64_t bytes) const {
    if (const device_allocator* const model = allocator()) model->allocate(model->self, address, bytes);
  }
  void deallocate(const void* address) const {
    if (const device_allocator* const model = allocator()) model->deallocate(model->self, address);
  }

 private:
  std::atomic<const device_allocator*> allocator_{nullptr};
  std::atomic<std::uint32_t> capture_{0};
};

[[gnu::visibility("default")]] inline constinit fake_device fake_cuda_device{};

}  // namespace memprof::inline MEMPROF_ABI::detail
