#pragma once

#include <memprof/config.hpp>

#include <cerrno>
#include <cstdio>

#include <fcntl.h>

/// @file
/// A lock on a whole file that its holder has until it closes the file or ends, however it ends, and that others can ask for
/// without taking it: Linux's locks of open file descriptions. Elsewhere nobody ever holds one.

namespace memprof::inline MEMPROF_ABI::detail {

/// Takes the lock for writing; false if somebody else has it. File systems without locks grant it.
[[nodiscard]] inline bool lock_file([[maybe_unused]] int file) noexcept {
#if defined(F_OFD_SETLK)
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file, F_OFD_SETLK, &whole) == 0 || (errno != EAGAIN && errno != EACCES);
#else
  return true;
#endif
}

/// Whether somebody else holds it.
[[nodiscard]] inline bool is_file_locked([[maybe_unused]] int file) noexcept {
#if defined(F_OFD_GETLK)
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
#else
  return false;
#endif
}

}  // namespace memprof::inline MEMPROF_ABI::detail
