#pragma once

#include <memprof/memprof.hpp>

#include <memprof/backend/torch/memory_from_malloc.hpp>

#include <atomic>

namespace memprof::detail {

/// Whether a scope has ended that may end on another thread than it began on. The thread on which it began and libtorch's context
/// of it share this; the one that leaves last frees it.
class shared_end final : public memory_from_malloc {
 public:
  /// Release pairs with the acquire of `is_told`: what the other thread did before belongs to the scope.
  void tell() noexcept { is_told_.store(true, std::memory_order_release); }
  [[nodiscard]] bool is_told() const noexcept { return is_told_.load(std::memory_order_acquire); }

  void leave() noexcept {
    // Acquire and release pair with those of the other: it no longer looks at what is deleted here.
    if (is_left_.exchange(true, std::memory_order_acq_rel)) delete this;
  }

 private:
  std::atomic<bool> is_told_{false};
  std::atomic<bool> is_left_{false};  ///< by the first of the two
};

}  // namespace memprof::detail
