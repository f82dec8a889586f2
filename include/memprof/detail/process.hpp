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

/// The number of the calling process: another one in a child after `fork`, also before its fork handlers have run.
[[nodiscard]] inline std::int64_t process_id() noexcept { return ::getpid(); }

/// The system's number of the calling thread.
[[nodiscard]] inline std::uint64_t thread_id() noexcept {
#if defined(__linux__)
  return static_cast<std::uint64_t>(::syscall(SYS_gettid));
#else
  return 0;
#endif
}

/// The name of the calling thread, as `pthread_setname_np` sets it; at first that of the program.
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
