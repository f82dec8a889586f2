#pragma once

#include <memprof/config.hpp>

#include <atomic>
#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/// @file
/// The two clocks of the event path: stamps, which order events between threads, and nanoseconds, which people read.

namespace memprof::inline MEMPROF_ABI::detail {

/// Nanoseconds of the system's monotonic clock.
[[nodiscard]] inline std::int64_t monotonic_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Nanoseconds since 1970.
[[nodiscard]] inline std::int64_t unix_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Source of stamps. All threads whose events are merged share one object.
///
/// If a call on one thread starts after a call on another has returned, its stamp is greater. `rdtscp` guarantees this where the
/// time stamp counter runs at the same rate on all cores: unlike a bare `rdtsc`, it waits for earlier loads (without that, we
/// measured one inversion in 2,000,000 hand-offs). Elsewhere a shared counter that follows the monotonic clock guarantees it,
/// more slowly.
struct stamp_source {
  enum class kind : std::uint32_t { unknown, time_stamp_counter, shared_counter };

  std::atomic<kind> chosen{kind::unknown};
  std::atomic<std::uint64_t> counter{0};

  /// The next stamp; never 0.
  [[nodiscard]] std::uint64_t next() noexcept {
#if defined(__x86_64__)
    // Relaxed: the choice is a constant of the machine, so every thread makes the same one.
    if (chosen.load(std::memory_order_relaxed) == kind::time_stamp_counter) [[likely]] {
      unsigned processor;
      return __builtin_ia32_rdtscp(&processor);  // the built-in, because the header takes a third of a second to compile
    }
#endif
    return next_slow();
  }

 private:
  [[gnu::cold, gnu::noinline]] std::uint64_t next_slow() noexcept {
#if defined(__x86_64__)
    if (chosen.load(std::memory_order_relaxed) == kind::unknown) {
      unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
      const bool has_rdtscp = __get_cpuid(0x80000001U, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 27)) != 0;
      const bool is_invariant = __get_cpuid(0x80000007U, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 8)) != 0;
      chosen.store(has_rdtscp && is_invariant ? kind::time_stamp_counter : kind::shared_counter, std::memory_order_relaxed);
      return next();
    }
#endif
    // Strictly increasing: two successive calls never get equal stamps, however coarse the clock is.
    std::uint64_t last = counter.load(std::memory_order_relaxed);
    for (;;) {
      const auto now = static_cast<std::uint64_t>(monotonic_ns());
      const std::uint64_t stamp = now > last ? now : last + 1;
      // Acquire and release pair with the same exchange on other threads: a stamp carries everything that happened before it.
      if (counter.compare_exchange_weak(last, stamp, std::memory_order_acq_rel, std::memory_order_relaxed)) return stamp;
    }
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
