#pragma once

#include <memprof/memprof.hpp>

#include <memprof/backend/torch/capture/shared_by_two_threads.hpp>

#include <atomic>

namespace memprof::detail {

/// Whether a scope has ended that may end on another thread than it began on. The thread on which it began and libtorch's context
/// of it share this.
class shared_end final : public shared_by_two_threads<shared_end> {
 public:
  /// Release pairs with the acquire of `is_told`: what the other thread did before belongs to the scope.
  void tell() noexcept { is_told_.store(true, std::memory_order_release); }
  [[nodiscard]] bool is_told() const noexcept { return is_told_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> is_told_{false};
};

}  // namespace memprof::detail
