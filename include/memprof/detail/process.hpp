#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <cstring>
#include <string_view>

#include <sys/syscall.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace memprof::inline MEMPROF_ABI::detail {

/// The calling process's id. A child after `fork` has its own, even before its fork handlers have run.
[[nodiscard]] inline std::int64_t process_id() noexcept { return ::getpid(); }

/// The system's id of the calling thread.
[[nodiscard]] inline std::uint64_t thread_id() noexcept {
#if defined(__linux__)
  return static_cast<std::uint64_t>(::syscall(SYS_gettid));
#else
  return 0;
#endif
}

/// The calling thread's name, as set by `pthread_setname_np`; initially the program's name.
class thread_title {
 public:
  thread_title() noexcept {
#if defined(__linux__)
    ::prctl(PR_GET_NAME, text_, 0, 0, 0);
#endif
  }
  [[nodiscard]] std::string_view view() const noexcept { return {text_, std::strlen(text_)}; }

 private:
  char text_[17] = {};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
