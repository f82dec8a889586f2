#pragma once

#include <memprof/config.hpp>

#include <cstdint>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace memprof::inline MEMPROF_ABI::detail {

/// A file opened by the profiler in a process whose program may close every descriptor, as daemons do, and get the same number
/// for a file of its own, which must be neither written nor closed.
struct own_file {
  int number = -1;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  [[nodiscard]] static own_file of(int number) noexcept {
    struct stat status {};
    if (number < 0 || ::fstat(number, &status) != 0) return {};
    return {number, std::uint64_t{status.st_dev}, std::uint64_t{status.st_ino}};
  }

  /// Whether the descriptor still refers to the file. Costs a system call.
  [[nodiscard]] bool is_there() const noexcept {
    const own_file now = of(number);
    return now.number >= 0 && now.device == device && now.inode == inode;
  }

  /// Opens the file again under that path; false if it is no longer there.
  [[nodiscard]] bool reopen(const char* path) noexcept {
    own_file found = of(::open(path, O_RDWR | O_CLOEXEC));
    if (found.device != device || found.inode != inode) {
      found.close();
      return false;
    }
    number = found.number;
    return true;
  }

  void close() noexcept {
    if (is_there()) ::close(number);
    number = -1;
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
