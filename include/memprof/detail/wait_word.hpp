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

/// A counter that threads can wait on with a timeout, and that a signal handler may increment. `std::atomic` has no timeout and
/// makes no guarantee about handlers.
class wait_word {
 public:
  [[nodiscard]] std::uint32_t value() const noexcept { return word_.load(std::memory_order_acquire); }

  /// Increments the counter and wakes the waiters. Async-signal-safe.
  void advance() noexcept {
    word_.fetch_add(1, std::memory_order_acq_rel);  // release pairs with the acquire in `value`
#if defined(__linux__)
    ::syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
#endif
  }

  /// Sleeps while the value is `seen`, for at most `at_most_ns` on the monotonic clock; may wake spuriously.
  void wait(std::uint32_t seen, std::int64_t at_most_ns) const noexcept {
    if (at_most_ns <= 0 || value() != seen) return;
#if defined(__linux__)
    const timespec limit{at_most_ns / 1'000'000'000, at_most_ns % 1'000'000'000};
    ::syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, seen, &limit, nullptr, 0);
#else
    constexpr std::int64_t look_ns = 20'000'000;
    const timespec limit{0, static_cast<long>(at_most_ns < look_ns ? at_most_ns : look_ns)};
    ::nanosleep(&limit, nullptr);
#endif
  }

  /// Only for a child after `fork`, or while no thread waits.
  void reset() noexcept { word_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> word_{0};
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
};

}  // namespace memprof::inline MEMPROF_ABI::detail
