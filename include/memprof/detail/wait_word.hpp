#pragma once

#include <memprof/config.hpp>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace memprof::inline MEMPROF_ABI::detail {

/// Sleeps while the word is `seen`, for at most `at_most_ns`; may wake spuriously.
inline void wait_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t at_most_ns) noexcept {
#if defined(__linux__)
  const timespec limit{at_most_ns / 1'000'000'000, at_most_ns % 1'000'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, &limit, nullptr, 0);
#else
  constexpr std::int64_t look_ns = 1'000'000;
  const timespec limit{0, static_cast<long>(at_most_ns < look_ns ? at_most_ns : look_ns)};
  if (word.load(std::memory_order_relaxed) == seen) ::nanosleep(&limit, nullptr);
#endif
}

/// Wakes so many of those that sleep on the word. Async-signal-safe.
inline void wake(std::atomic<std::uint32_t>& word, int count) noexcept {
#if defined(__linux__)
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
#else
  (void)word;
  (void)count;
#endif
}

/// A counter that threads can wait on with a timeout, and that a signal handler may increment. `std::atomic` has no timeout and
/// makes no guarantee about handlers.
class wait_word {
 public:
  [[nodiscard]] std::uint32_t value() const noexcept { return word_.load(std::memory_order_acquire); }

  /// Increments the counter and wakes the waiters. Async-signal-safe.
  void advance() noexcept {
    word_.fetch_add(1, std::memory_order_acq_rel);  // release pairs with the acquire in `value`
    wake(word_, INT_MAX);
  }

  /// Sleeps while the value is `seen`, for at most `at_most_ns` on the monotonic clock; may wake spuriously.
  void wait(std::uint32_t seen, std::int64_t at_most_ns) const noexcept {
    if (at_most_ns > 0 && value() == seen) wait_on(word_, seen, at_most_ns);
  }

  /// Only for a child after `fork`, or while no thread waits.
  void reset() noexcept { word_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> word_{0};
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
};

}  // namespace memprof::inline MEMPROF_ABI::detail
