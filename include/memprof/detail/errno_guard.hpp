#pragma once

#include <memprof/config.hpp>

#include <cerrno>

namespace memprof::inline MEMPROF_ABI::detail {

/// Puts errno back at the end of the scope. Allocations are recorded between a failed call and the look at its errno: by
/// destructors, and by signal handlers.
class [[nodiscard]] errno_guard {
 public:
  errno_guard() noexcept : before_(errno) {}
  errno_guard(const errno_guard&) = delete;
  errno_guard& operator=(const errno_guard&) = delete;
  ~errno_guard() { errno = before_; }

 private:
  int before_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
