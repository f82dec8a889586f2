#pragma once

#include <memprof/config.hpp>

#include <cerrno>
#include <cstdio>

#include <fcntl.h>

/// @file
/// A lock on a whole file, held until its holder closes the file or ends, however it ends; others can test it without taking it.
/// Uses Linux open file description locks; on other systems nobody ever holds it.

namespace memprof::inline MEMPROF_ABI::detail {

/// Takes the write lock; false if another holder has it. File systems without locks grant it.
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

/// Whether another holder has it.
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
