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

/// Whether a scope has ended, if it may end on another thread than it began on. Shared by the thread on which it began and by
/// libtorch's context for it.
class shared_end final : public shared_by_two_threads<shared_end> {
 public:
  /// Release pairs with the acquire in `has_ended`: what the other thread did before belongs to the scope.
  void mark_ended() noexcept { has_ended_.store(true, std::memory_order_release); }
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> has_ended_{false};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
