#pragma once

#include <memprof/backend/torch/capture/shared_by_two_threads.hpp>

#include <atomic>

namespace memprof::inline MEMPROF_ABI::detail {

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
