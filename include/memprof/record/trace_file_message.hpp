#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include <unistd.h>

namespace memprof::inline MEMPROF_ABI::detail {

/// The name of a trace file, and how a line on stderr says what became of it.
class trace_file_message {
 public:
  void set_path(const std::string& path) noexcept { std::snprintf(path_, sizeof path_, "%s", path.c_str()); }
  [[nodiscard]] const char* path() const noexcept { return path_; }

  /// Writes a line of `format`, which takes the path and `what`. In one piece, and without the lock of stderr, which a thread may
  /// hold that waits for us.
  [[gnu::cold, gnu::noinline]] void say(const char* format, const char* what) const noexcept {
    char line[sizeof path_ + 512];
    const int size = std::snprintf(line, sizeof line, format, path_, what);
    if (size <= 0) return;
    const auto length = static_cast<std::size_t>(size) < sizeof line ? static_cast<std::size_t>(size) : sizeof line - 1;
    [[maybe_unused]] const ::ssize_t said = ::write(STDERR_FILENO, line, length);
  }

 private:
  char path_[4096] = {};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
