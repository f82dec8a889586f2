#pragma once

#include <memprof/config.hpp>

#include <atomic>
#include <csignal>
#include <cstdint>

#include <pthread.h>

/// @file
/// Whether a thread may be running a signal handler, which nothing tells directly.

namespace memprof::inline MEMPROF_ABI::detail {

/// Recognises a thread that may be in a signal handler by what handlers do to their thread: they block their signal, or they run
/// on its alternate stack; those with SA_NODEFER on the usual stack do neither, so where a program has one, any thread may be in
/// it. A thread that blocks signals for another reason is in no handler if those have none, and were blocked where the capture
/// began, from where threads inherit it. That a signal has no handler now is not enough: a handler may have removed itself.
///
/// Costs a system call for each signal. Async-signal-safe.
class handler_watch {
 public:
  /// Where a capture begins, which is in no handler that interrupted `malloc`, as that allocates.
  void restart() noexcept {
    const signals found = look();
    usual_.store(blocked(), std::memory_order_relaxed);
    handled_.store(found.handled, std::memory_order_relaxed);
    undeferred_.store(found.undeferred, std::memory_order_relaxed);
    undeferred_elsewhere_.store(found.undeferred_elsewhere, std::memory_order_relaxed);
  }

  [[nodiscard]] bool may_be_in_handler() noexcept {
    stack_t alternate{};
    if (::sigaltstack(nullptr, &alternate) != 0 || (alternate.ss_flags & SS_ONSTACK) != 0) return true;
    const signals found = look();
    // What a program had once counts: a handler may run that it has replaced since.
    const std::uint64_t handled = handled_.fetch_or(found.handled, std::memory_order_relaxed) | found.handled;
    if ((undeferred_.fetch_or(found.undeferred, std::memory_order_relaxed) | found.undeferred) != 0) return true;
    const std::uint64_t elsewhere =
        undeferred_elsewhere_.fetch_or(found.undeferred_elsewhere, std::memory_order_relaxed) | found.undeferred_elsewhere;
    const bool has_alternate_stack = (alternate.ss_flags & SS_DISABLE) == 0;
    if (elsewhere != 0 && !has_alternate_stack) return true;
    return (blocked() & ~(usual_.load(std::memory_order_relaxed) & ~handled)) != 0;
  }

 private:
  /// Sets of signals, a bit each.
  struct signals {
    std::uint64_t handled = 0;
    std::uint64_t undeferred = 0;            ///< with SA_NODEFER on the stack of the thread
    std::uint64_t undeferred_elsewhere = 0;  ///< with SA_NODEFER on an alternate stack, if the thread has one
  };

  template <class Visitor>
  static void for_each_signal(Visitor&& visit) noexcept {
    constexpr int last_usual = 31;
    for (int number = 1; number <= 64 && number < NSIG; ++number) {
#if defined(SIGRTMIN)
      if (number > last_usual && number < SIGRTMIN) continue;  // those of the C library itself
#endif
      visit(number, std::uint64_t{1} << (number - 1));
    }
  }

  [[nodiscard]] static signals look() noexcept {
    signals found;
    for_each_signal([&](int number, std::uint64_t bit) {
      struct sigaction now {};
      if (::sigaction(number, nullptr, &now) != 0) return;
      // A union: both kinds of handlers are where the standard's is.
      if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) return;
      found.handled |= bit;
      if ((now.sa_flags & SA_NODEFER) == 0) return;
      ((now.sa_flags & SA_ONSTACK) != 0 ? found.undeferred_elsewhere : found.undeferred) |= bit;
    });
    return found;
  }

  /// Those that this thread blocks; all if that cannot be found out.
  [[nodiscard]] static std::uint64_t blocked() noexcept {
    sigset_t now;
    if (::pthread_sigmask(SIG_SETMASK, nullptr, &now) != 0) return ~std::uint64_t{0};
    std::uint64_t found = 0;
    for_each_signal([&](int number, std::uint64_t bit) {
      if (::sigismember(&now, number) == 1) found |= bit;
    });
    return found;
  }

  std::atomic<std::uint64_t> usual_{0};  ///< blocked where the capture began
  std::atomic<std::uint64_t> handled_{0};
  std::atomic<std::uint64_t> undeferred_{0};
  std::atomic<std::uint64_t> undeferred_elsewhere_{0};
};

/// That of the active capture.
inline constinit handler_watch process_handlers{};

/// Whether this thread runs a signal handler on its alternate stack, which may have no more than SIGSTKSZ bytes: 8,192.
[[nodiscard]] inline bool is_on_alternate_stack() noexcept {
  stack_t alternate{};
  return ::sigaltstack(nullptr, &alternate) != 0 || (alternate.ss_flags & SS_ONSTACK) != 0;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
