#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/file_limit_guard.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include <unistd.h>

namespace memprof::inline MEMPROF_ABI::detail {

/// A trace file's name, and messages about it on stderr.
class trace_file_message {
 public:
  void set_path(const std::string& path) noexcept { std::snprintf(path_, sizeof path_, "%s", path.c_str()); }
  [[nodiscard]] const char* path() const noexcept { return path_; }

  /// Prints a line; `format` takes the path and `what`. In a single write, and without stderr's lock, which may be held by a
  /// thread that waits for this one.
  [[gnu::cold, gnu::noinline]] void say(const char* format, const char* what) const noexcept {
    char line[sizeof path_ + 512];
    const int size = std::snprintf(line, sizeof line, format, path_, what);
    if (size <= 0) return;
    const auto length = static_cast<std::size_t>(size) < sizeof line ? static_cast<std::size_t>(size) : sizeof line - 1;
    const file_limit_guard limit;
    if (::write(STDERR_FILENO, line, length) < 0) limit.take_signal_of(errno);
  }

 private:
  char path_[4096] = {};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
