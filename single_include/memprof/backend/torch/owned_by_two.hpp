#pragma once

#include <memprof/memprof.hpp>

#include <memprof/backend/torch/memory_from_malloc.hpp>

#include <atomic>

namespace memprof::detail {

/// Base of what two hold, each on a thread of its own: the one that leaves last frees it.
template <class Self>
class owned_by_two : public memory_from_malloc {
 public:
  void leave() noexcept {
    // Acquire and release pair with those of the other: it no longer looks at what is deleted here.
    if (is_left_.exchange(true, std::memory_order_acq_rel)) delete static_cast<Self*>(this);
  }
  /// Whether the other has left. Acquire pairs with the release of `leave`.
  [[nodiscard]] bool is_left() const noexcept { return is_left_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> is_left_{false};
};

}  // namespace memprof::detail
