#pragma once

#include <memprof/config.hpp>

#include <cerrno>

namespace memprof::inline MEMPROF_ABI::detail {

/// Restores errno at the end of the scope. Destructors and signal handlers may allocate, and so record, between a failed call and
/// the check of its errno.
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
