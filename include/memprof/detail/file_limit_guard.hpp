#pragma once

#include <memprof/config.hpp>

#include <cerrno>
#include <csignal>
#include <ctime>

#include <pthread.h>

namespace memprof::inline MEMPROF_ABI::detail {

/// Until the end of the scope, a file that grows beyond the process's limit fails with EFBIG alone: SIGXFSZ, which goes with it
/// and would end the program, is blocked.
class [[nodiscard]] file_limit_guard {
 public:
  file_limit_guard() noexcept {
    sigset_t pending;
    ::sigemptyset(&pending);
    (void)::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGXFSZ) == 1;
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  file_limit_guard(const file_limit_guard&) = delete;
  file_limit_guard& operator=(const file_limit_guard&) = delete;
  ~file_limit_guard() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  /// After a call that failed with that error: takes the signal, unless the program has had one before.
  void take_signal_of(int error) const noexcept {
    if (error != EFBIG || was_pending_) return;
    const timespec at_once{};
    (void)::sigtimedwait(&signal_, nullptr, &at_once);
  }

 private:
  bool was_pending_;
  sigset_t signal_;
  sigset_t before_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
