#pragma once

#include <memprof/backend/torch/device_allocator.hpp>
#include <memprof/config.hpp>
#include <memprof/trace/label.hpp>

#include <torch/csrc/autograd/graph_task.h>

#include <atomic>
#include <cstdint>

/// @file
/// The fake CUDA device: which capture its blocks belong to, and the model of its allocator that the embedding program may
/// supply.

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether this thread makes a backward pass. On a device, another one does.
[[nodiscard]] inline bool is_in_backward_pass() { return torch::autograd::get_current_graph_task_id() != -1; }

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

  /// Both return the label of the block's stream and pool; 0: the default stream, and no private pool.
  [[nodiscard]] label allocate(const void* address, std::int64_t bytes) const {
    const device_allocator* const model = allocator();
    return model == nullptr ? 0 : model->allocate(model->self, address, bytes, is_in_backward_pass());
  }
  [[nodiscard]] label deallocate(const void* address) const {
    const device_allocator* const model = allocator();
    return model == nullptr ? 0 : model->deallocate(model->self, address);
  }
  /// The calling thread's stream.
  [[nodiscard]] std::uint64_t stream() const {
    const device_allocator* const model = allocator();
    return model == nullptr ? 0 : model->stream(model->self);
  }
  /// Whether the thread may wait for that stream. Not if it is captured, and then the capture has failed.
  [[nodiscard]] bool try_to_wait() const {
    const device_allocator* const model = allocator();
    return model == nullptr || model->try_to_wait(model->self);
  }
  /// The calling thread's stream has work to do.
  void add_work() const {
    if (const device_allocator* const model = allocator()) model->add_work(model->self);
  }

 private:
  std::atomic<const device_allocator*> allocator_{nullptr};
  std::atomic<std::uint32_t> capture_{0};
  std::atomic<bool> is_of_parent_{false};
};

[[gnu::visibility("default")]] inline constinit fake_device fake_cuda_device{};

}  // namespace memprof::inline MEMPROF_ABI::detail
