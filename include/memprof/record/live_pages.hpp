#pragma once

#include <memprof/detail/file_limit_guard.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/record/event_ring.hpp>
#include <memprof/trace/file_layout.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#endif

/// @file
/// The pages of a trace file that its capture stores into directly.

namespace memprof::inline MEMPROF_ABI::detail {

/// Layout of a trace file's live area. All offsets are multiples of a page.
struct live_layout {
  /// One second at three million events per second, or 40 ms at the highest rate of a single thread: the writing thread may get
  /// no processor for that long.
  static constexpr std::uint32_t buffers = 32;
  static constexpr std::uint32_t buffer_bytes = std::uint32_t{256} << 10;
  static constexpr std::size_t bytes_of_places = std::size_t{64} << 20;  ///< at most, unless fewer than `fewest_places` would fit
  static constexpr std::size_t fewest_places = 16;
  static constexpr std::size_t max_bytes_of_places = std::size_t{1} << 30;
  static constexpr std::size_t spare_bytes = std::size_t{1} << 20;

  /// With room for chunks before it, as long as the area itself, the area is cut off once the file is complete, unless the chunks
  /// outgrew that room. Without, it begins directly after the file's header, in the same page.
  live_layout(std::uint32_t ring_capacity, bool has_room_before) noexcept {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto rounded = [page](std::size_t bytes) { return (bytes + page - 1) / page * page; };
    place_bytes = rounded(ring_slots::bytes_for(ring_capacity));
    const std::size_t fitting = std::min(fewest_places, max_bytes_of_places / place_bytes);
    const std::size_t wanted = std::max(fitting, bytes_of_places / place_bytes);
    places = static_cast<std::uint32_t>(std::min<std::size_t>(wanted, live_area_header::max_places));
    spare_places = std::min(places, static_cast<std::uint32_t>(1 + spare_bytes / place_bytes));
    constexpr std::size_t states = buffers * live_buffer_state::size;
    const std::size_t head = rounded(trace_file_header::size + live_area_header::buffer_states + states);
    const std::size_t up_to_places = head + buffers * rounded(buffer_bytes);
    mapped = has_room_before ? up_to_places + places * place_bytes : 0;
    area = has_room_before ? mapped : trace_file_header::size;
    first_buffer = mapped + head;
    first_place = mapped + up_to_places;
  }

  [[nodiscard]] std::size_t place(std::uint32_t index) const noexcept { return first_place + index * place_bytes; }
  /// Where the first chunk goes if all places are mapped.
  [[nodiscard]] std::size_t end() const noexcept { return place(places); }

  std::size_t mapped;  ///< where the mapped pages begin
  std::size_t area;
  std::size_t first_buffer;
  std::size_t first_place;
  std::size_t place_bytes;
  std::uint32_t places;
  std::uint32_t spare_places;  ///< number of places whose blocks are reserved before a thread asks for them
};

/// Position of the live area in its file.
struct live_area_position {
  std::uint64_t begin = 0;  ///< 0: there is none
  std::uint64_t end = 0;
};

/// Whether the file system keeps reserved blocks in place, so that a store into a mapped page never lacks a block; such a store
/// would end the program (SIGBUS). Copy-on-write file systems cannot guarantee this, nor can network or user-space file systems.
[[nodiscard]] inline bool keeps_reserved_blocks([[maybe_unused]] int file) noexcept {
#if defined(__linux__)
  struct statfs system {};
  if (::fstatfs(file, &system) != 0) return false;
  constexpr unsigned long ext = 0xEF53, xfs = 0x58465342, tmpfs = 0x01021994, overlay = 0x794C7630;
  const auto kind = static_cast<unsigned long>(system.f_type) & 0xFFFF'FFFFU;
  return kind == ext || kind == xfs || kind == tmpfs || kind == overlay;
#else
  return false;
#endif
}

/// Reserves blocks for that part of a file, extending the file if necessary. Returns 0, or the error: EOPNOTSUPP if the system
/// cannot.
[[nodiscard]] inline int reserve_blocks([[maybe_unused]] int file, [[maybe_unused]] std::size_t offset,
                                        [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__)
  // Not posix_fallocate: where the file system lacks the call, it writes zeros, possibly over what other threads have stored
  // meanwhile.
  const file_limit_guard limit;
  for (;;) {
    if (::fallocate(file, 0, static_cast<::off_t>(offset), static_cast<::off_t>(bytes)) == 0) return 0;
    const int error = errno;
    limit.take_signal_of(error);
    if (error != EINTR) return error;
  }
#else
  return EOPNOTSUPP;
#endif
}

/// Whether the process may create a file of that many bytes. If not, trying would raise SIGXFSZ.
[[nodiscard]] inline bool may_be_as_long(std::size_t bytes) noexcept {
  struct rlimit limit {};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes;
}

/// Releases the blocks of that part of a file, if the system can; it then reads as zeros.
inline void drop_blocks([[maybe_unused]] int file, [[maybe_unused]] std::size_t offset,
                        [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__)
  (void)::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<::off_t>(offset), static_cast<::off_t>(bytes));
#endif
}

/// Writes all the bytes at that offset. Returns 0, or the error.
[[nodiscard]] inline int write_at(int file, const void* bytes, std::size_t size, std::uint64_t offset) noexcept {
  const auto* next = static_cast<const unsigned char*>(bytes);
  const file_limit_guard limit;
  while (size != 0) {
    const ::ssize_t written = ::pwrite(file, next, size, static_cast<::off_t>(offset));
    const int error = written < 0 ? errno : ENOSPC;
    if (error == EINTR) continue;
    limit.take_signal_of(error);
    if (written <= 0) return error;
    next += written;
    offset += static_cast<std::uint64_t>(written);
    size -= static_cast<std::size_t>(written);
  }
  return 0;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
