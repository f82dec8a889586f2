#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <ctime>
#include <mutex>

namespace pairs {

[[nodiscard]] inline double nanoseconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// A bounded queue of blocks from one thread to another. It never allocates, because that would be measured, too.
///
/// Blocks travel in batches, so that the lock costs almost nothing per block.
class channel {
 public:
  struct batch {
    std::array<void*, 256> blocks;
    std::size_t count = 0;
  };

  /// False if the queue is full.
  [[nodiscard]] bool try_push(const batch& sent) {
    const std::lock_guard lock{mutex_};
    if (size_ == batches_.size()) return false;
    batches_[(first_ + size_++) % batches_.size()] = sent;
    changed_.notify_one();
    return true;
  }

  /// False if the queue is empty.
  [[nodiscard]] bool try_pop(batch& received) {
    const std::lock_guard lock{mutex_};
    return take(received);
  }

  /// Waits for a batch; false if there will be none.
  [[nodiscard]] bool pop(batch& received) {
    std::unique_lock lock{mutex_};
    wait(lock, [this] { return size_ != 0 || is_closed_; });
    return take(received);
  }

  /// Waits until there is room.
  void wait_for_room() {
    std::unique_lock lock{mutex_};
    wait(lock, [this] { return size_ != batches_.size(); });
  }

  void close() {
    const std::lock_guard lock{mutex_};
    is_closed_ = true;
    changed_.notify_one();
  }

  /// How long both threads have slept here. Call when they have ended.
  [[nodiscard]] double waited_ns() const { return waited_ns_; }

 private:
  template <class Condition>
  void wait(std::unique_lock<std::mutex>& lock, Condition is_met) {
    if (is_met()) return;
    const double begin = nanoseconds_of(CLOCK_MONOTONIC);
    changed_.wait(lock, is_met);
    waited_ns_ += nanoseconds_of(CLOCK_MONOTONIC) - begin;
  }

  bool take(batch& received) {
    if (size_ == 0) return false;
    received = batches_[first_];
    first_ = (first_ + 1) % batches_.size();
    --size_;
    changed_.notify_one();
    return true;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<batch, 16> batches_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  bool is_closed_ = false;
  double waited_ns_ = 0;
};

}  // namespace pairs
