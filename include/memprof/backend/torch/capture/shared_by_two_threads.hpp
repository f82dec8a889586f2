#pragma once

#include <memprof/backend/torch/capture/memory_from_malloc.hpp>

#include <atomic>

namespace memprof::inline MEMPROF_ABI::detail {

/// Shared by two threads; the last to release deletes it.
template <class Self>
class shared_by_two_threads : public memory_from_malloc {
 public:
  void release() noexcept {
    // Acquire and release pair with those of the other thread, which no longer uses what is deleted here.
    if (is_released_by_one_.exchange(true, std::memory_order_acq_rel)) delete static_cast<Self*>(this);
  }
  /// Whether the other thread has released. Acquire pairs with the release in `release`.
  [[nodiscard]] bool is_released_by_other() const noexcept { return is_released_by_one_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> is_released_by_one_{false};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
