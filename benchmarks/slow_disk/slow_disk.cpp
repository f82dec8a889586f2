// A disk that writes 1 MB per second, for programs started with this library in LD_PRELOAD: it replaces only pwrite, which
// memprof uses to write trace files.
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>

namespace {

ssize_t write_slowly(int file, const void* bytes, std::size_t size, off_t offset) {
  constexpr std::size_t at_once = 10'000;
  if (size > at_once) size = at_once;
  const ssize_t written = ::syscall(SYS_pwrite64, file, bytes, size, offset);
  if (written <= 0) return written;
  const timespec pause{0, written * 1000L};  // a microsecond per byte
  ::nanosleep(&pause, nullptr);
  return written;
}

}  // namespace

extern "C" {
ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) { return write_slowly(file, bytes, size, offset); }
ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t offset) { return write_slowly(file, bytes, size, offset); }
}
