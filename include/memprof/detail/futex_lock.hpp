#pragma once

#include <memprof/config.hpp>

#include <atomic>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// A one-word lock whose waiters sleep. Constant-initialised, can be reset in a forked child, and needs no `<mutex>`.
class futex_lock {
 public:
  void lock() noexcept {
    std::uint32_t expected = 0;
    // Acquire pairs with the release in `unlock`.
    if (word_.compare_exchange_strong(expected, 1, std::memory_order_acquire, std::memory_order_relaxed)) return;
    lock_slow();
  }

  /// Takes the lock if it is free; never waits.
  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t expected = 0;
    // Acquire pairs with the release in `unlock`.
    return word_.compare_exchange_strong(expected, 1, std::memory_order_acquire, std::memory_order_relaxed);
  }

  void unlock() noexcept {
    // Release pairs with the acquire in `lock`; 2 means that a thread may be asleep.
    if (word_.exchange(0, std::memory_order_release) == 2) word_.notify_one();
  }

  /// Unlocks it whatever its state. Only for a child after `fork`, where no other thread exists.
  void reset() noexcept { word_.store(0, std::memory_order_relaxed); }

 private:
  [[gnu::cold, gnu::noinline]] void lock_slow() noexcept {
    for (int spin = 0; spin < 100; ++spin) {
      // Loading before trying leaves the word in the holder's cache.
      if (word_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    while (word_.exchange(2, std::memory_order_acquire) != 0) word_.wait(2, std::memory_order_relaxed);
  }

  std::atomic<std::uint32_t> word_{0};
};

/// Tag: the lock is already held.
struct adopt_lock {};

/// Holds a lock until the end of the scope.
template <class Lock>
class [[nodiscard]] lock_guard {
 public:
  explicit lock_guard(Lock& lock) noexcept : lock_(lock) { lock_.lock(); }
  lock_guard(Lock& lock, adopt_lock) noexcept : lock_(lock) {}
  lock_guard(const lock_guard&) = delete;
  lock_guard& operator=(const lock_guard&) = delete;
  ~lock_guard() { lock_.unlock(); }

 private:
  Lock& lock_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
