#pragma once

#include <memprof/config.hpp>

#include <pthread.h>

namespace memprof::inline MEMPROF_ABI::detail {

/// Puts off the calling thread's cancellation until the end of the scope. A call of the profiler may not be the point where a
/// thread is cancelled: it would be one that the program does not have without it, and unwinding out of `noexcept` ends the
/// process.
class [[nodiscard]] cancellation_guard {
 public:
  cancellation_guard() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  cancellation_guard(const cancellation_guard&) = delete;
  cancellation_guard& operator=(const cancellation_guard&) = delete;
  ~cancellation_guard() { ::pthread_setcancelstate(before_, nullptr); }

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
