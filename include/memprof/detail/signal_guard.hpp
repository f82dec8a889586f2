#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/cancellation_guard.hpp>

#include <csignal>

#include <pthread.h>

namespace memprof::inline MEMPROF_ABI::detail {

/// Blocks the calling thread's signals until the end of the scope, when their handlers run, and its cancellation. Signals raised
/// by a fault of the thread itself are not blocked.
class [[nodiscard]] signal_guard {
 public:
  signal_guard() noexcept {
    sigset_t held;
    ::sigfillset(&held);
    constexpr int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    for (const int fault : faults) ::sigdelset(&held, fault);
    ::pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  signal_guard(const signal_guard&) = delete;
  signal_guard& operator=(const signal_guard&) = delete;
  ~signal_guard() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  /// Runs the handlers of signals that have come meanwhile.
  void let_through() const noexcept {
    sigset_t held;
    ::pthread_sigmask(SIG_SETMASK, &before_, &held);
    ::pthread_sigmask(SIG_SETMASK, &held, nullptr);
  }

 private:
  cancellation_guard cancellation_;  // the C library does not let its signal be blocked
  sigset_t before_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
