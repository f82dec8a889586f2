#pragma once

#include <memprof/detail/wait_word.hpp>

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
    constexpr std::int64_t look_ns = 1'000'000'000;
    while (!lock_slow(look_ns)) {
    }
  }

  /// As `lock`, but gives up after about `at_most_ns`: false if another thread still holds it then.
  [[nodiscard]] bool lock_for(std::int64_t at_most_ns) noexcept { return try_lock() || lock_slow(at_most_ns); }

  /// Takes the lock if it is free; never waits.
  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t expected = 0;
    // Acquire pairs with the release in `unlock`.
    return word_.compare_exchange_strong(expected, 1, std::memory_order_acquire, std::memory_order_relaxed);
  }

  void unlock() noexcept {
    // Release pairs with the acquire in `lock`; 2 means that a thread may be asleep.
    if (word_.exchange(0, std::memory_order_release) == 2) wake(word_, 1);
  }

  /// Unlocks it whatever its state. Only for a child after `fork`, where no other thread exists.
  void reset() noexcept { word_.store(0, std::memory_order_relaxed); }

 private:
  [[nodiscard, gnu::cold, gnu::noinline]] bool lock_slow(std::int64_t at_most_ns) noexcept {
    for (int spin = 0; spin < 100; ++spin) {
      // Loading before trying leaves the word in the holder's cache.
      if (word_.load(std::memory_order_relaxed) == 0 && try_lock()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    // Acquire, as in `lock`. Whoever takes it here leaves a 2, because others may be asleep.
    if (word_.exchange(2, std::memory_order_acquire) == 0) return true;
    wait_on(word_, 2, at_most_ns);
    return word_.exchange(2, std::memory_order_acquire) == 0;
  }

  std::atomic<std::uint32_t> word_{0};
};

/// Tag: take the lock only if it is free.
struct try_to_lock {};

/// Holds a lock until the end of the scope.
template <class Lock>
class [[nodiscard]] lock_guard {
 public:
  explicit lock_guard(Lock& lock) noexcept : lock_(lock) { lock_.lock(); }
  lock_guard(const lock_guard&) = delete;
  lock_guard& operator=(const lock_guard&) = delete;
  ~lock_guard() { lock_.unlock(); }

 private:
  Lock& lock_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
