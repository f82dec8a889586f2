#pragma once

#include <memprof/backend/torch/device_allocator.hpp>
#include <memprof/config.hpp>

#include <atomic>
#include <cstdint>

/// @file
/// The fake CUDA device: which capture its blocks belong to, and the model of its allocator that the embedding program may
/// supply.

namespace memprof::inline MEMPROF_ABI::detail {

/// Thread-safe.
class fake_device {
 public:
  void begin_capture() noexcept {
    capture_.fetch_add(1, std::memory_order_relaxed);
    is_of_parent_.store(false, std::memory_order_relaxed);
  }
  /// In a forked process, until it begins a capture: as with CUDA, the device is of no use there.
  void leave_to_parent() noexcept { is_of_parent_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_of_parent() const noexcept { return is_of_parent_.load(std::memory_order_relaxed); }
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
  std::atomic<bool> is_of_parent_{false};
};

[[gnu::visibility("default")]] inline constinit fake_device fake_cuda_device{};

}  // namespace memprof::inline MEMPROF_ABI::detail
