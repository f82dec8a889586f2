#pragma once

#include <memprof/detail/file_lock.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/file_layout.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

/// @file
/// The contents of a trace file's live area at one instant, even while its capture goes on storing there.

namespace memprof::inline MEMPROF_ABI::detail {

/// Reads `size` bytes at that offset; bytes past the end of the file read as zeros. False if the system refuses.
[[nodiscard]] inline bool read_at(int file, std::uint64_t offset, void* out, std::size_t size) noexcept {
  auto* next = static_cast<unsigned char*>(out);
  while (size != 0) {
    const ::ssize_t got = ::pread(file, next, size, static_cast<::off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) {
      std::memset(next, 0, size);
      return true;
    }
    next += got;
    offset += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

/// The live area of a file whose header says that a capture is writing it or that writing failed.
class live_snapshot {
 public:
  /// A chunk that may not be in the file yet, up to its last valid byte.
  struct chunk {
    std::uint64_t number;
    vector<unsigned char> payload;
  };
  /// The events held by a ring.
  struct ring {
    std::uint32_t id;
    std::uint64_t first_number;  ///< number of the ring's earlier events
    vector<event> events;
  };

  /// Reads the area at `area`; the trace itself begins at `base`. Damaged parts are left out.
  live_snapshot(int file, std::uint64_t base, std::uint32_t area, bool wants_rings) : file_{file}, base_{base}, area_{area} {
    // Without an area, only the lock is checked. With one, the rings come first: whatever is drained meanwhile is then found in
    // the chunks.
    is_being_written_ = is_file_locked(file);
    std::array<unsigned char, live_area_header::size> bytes{};
    if (area == 0) return;
    if (!read(area, bytes.data(), bytes.size()) || !header_.decode(bytes)) {
      is_damaged_ = true;
      return;
    }
    if (wants_rings) {
      const std::uint64_t given = number_at(area + live_area_header::given_places);
      read_rings();
      if (used_places_ < given) is_damaged_ = true;  // the file has become shorter
    }
    read_chunks();
    rings_outside_ = number_at(area + live_area_header::rings_outside);
  }

  [[nodiscard]] bool is_being_written() const noexcept { return is_being_written_; }
  [[nodiscard]] bool is_damaged() const noexcept { return is_damaged_; }
  /// Number of threads whose last events are nowhere in the file.
  [[nodiscard]] std::uint64_t rings_outside() const noexcept { return rings_outside_; }
  [[nodiscard]] vector<ring>& rings() noexcept { return rings_; }

  /// The chunk with that number; null if it is not in the area.
  [[nodiscard]] const chunk* find(std::uint64_t number) const noexcept {
    for (const chunk& each : chunks_) {
      if (each.number == number) return &each;
    }
    return nullptr;
  }
  /// One more than the number of the last chunk; empty if the area has had none.
  [[nodiscard]] std::optional<std::uint64_t> chunks_so_far() const noexcept { return chunks_so_far_; }

 private:
  [[nodiscard]] bool read(std::uint64_t offset, void* out, std::size_t size) const noexcept {
    return read_at(file_, base_ + offset, out, size);
  }

  /// Reads an 8-byte number.
  [[nodiscard]] std::uint64_t number_at(std::uint64_t offset) const noexcept {
    std::array<unsigned char, 8> bytes{};
    (void)read(offset, bytes.data(), bytes.size());
    return get_little_endian<std::uint64_t>(bytes.data());
  }

  /// Whether the file really has these bytes: a false claim must not cost memory.
  [[nodiscard]] bool has_bytes(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    struct stat status {};
    return ::fstat(file_, &status) == 0 && base_ + offset + bytes <= static_cast<std::uint64_t>(status.st_size);
  }

  [[nodiscard]] live_buffer_state state_of(std::uint32_t index) const noexcept {
    std::array<unsigned char, live_buffer_state::size> bytes{};
    (void)read(area_ + live_area_header::buffer_states + index * live_buffer_state::size, bytes.data(), bytes.size());
    return {get_little_endian<std::uint64_t>(bytes.data()), get_little_endian<std::uint64_t>(&bytes[8])};
  }

  void read_chunks() {
    // Chunks opened from here on are left out: one of them might come into a buffer already read, and the next into one not yet
    // read.
    std::uint64_t opened = 0;
    for (std::uint32_t index = 0; index < header_.buffers; ++index) opened = std::max(opened, state_of(index).number);
    if (opened != 0) chunks_so_far_ = opened;
    for (std::uint32_t index = 0; index < header_.buffers; ++index) {
      // It may be filled, or reused for another chunk, while it is being read.
      constexpr int attempts = 100;
      bool is_read = false;
      for (int attempt = 0; attempt < attempts && !is_read; ++attempt) is_read = read_chunk(index, opened);
      if (!is_read) is_damaged_ = true;
    }
  }

  /// Reads the chunk in a buffer, unless it was opened after chunk number `opened`, counted from 1: the buffer's previous chunk
  /// is then in the file.
  [[nodiscard]] bool read_chunk(std::uint32_t index, std::uint64_t opened) {
    const live_buffer_state state = state_of(index);
    if (state.number == 0) return state.commit == 0;
    if (state.number > opened) return true;
    const auto size = static_cast<std::uint32_t>(state.commit);
    const std::uint64_t buffer = header_.first_buffer + std::uint64_t{index} * header_.buffer_bytes;
    if (size > header_.buffer_bytes || !has_bytes(buffer, size)) return false;
    chunk found{state.number - 1, vector<unsigned char>(size)};
    if (!read(buffer, found.payload.data(), size)) return false;
    const std::uint32_t checksum = crc32c::extend(0, found.payload.data(), size);
    if (state.commit != 0 && live_buffer_state::commit_of(size, checksum, state.number) != state.commit) return false;
    if (state_of(index).number != state.number) return false;
    chunks_.push_back(std::move(found));
    return true;
  }

  [[nodiscard]] std::uint64_t place(std::uint32_t index) const noexcept {
    return header_.first_place + std::uint64_t{index} * header_.place_bytes;
  }

  /// Reads the header of a place, and how many events it holds; false if no ring uses it. Impossible values count as damage.
  [[nodiscard]] bool read_header(std::uint32_t index, live_ring_header& header, std::size_t& events) {
    std::array<unsigned char, live_ring_header::size> bytes{};
    if (!read(place(index), bytes.data(), bytes.size())) return false;
    header.decode(bytes.data());
    if (header.published == 0) return false;
    const std::uint64_t held = header.published - header.first;
    const bool is_sound = header.check == live_ring_header::check_of(header.first, header.ring, header.capacity) &&
                          held % sizeof(event) == 0 && held / sizeof(event) <= header.capacity &&
                          live_ring_header::size + std::uint64_t{header.capacity} * sizeof(event) <= header_.place_bytes &&
                          has_bytes(place(index), live_ring_header::size + held);
    if (!is_sound) is_damaged_ = true;
    events = is_sound ? held / sizeof(event) : 0;
    return is_sound;
  }

  /// Reads the events of a place; false if its ring started over meanwhile.
  [[nodiscard]] bool read_ring(std::uint32_t index, ring& found) {
    live_ring_header before;
    live_ring_header after;
    std::size_t count = 0;
    std::size_t now = 0;
    if (!read_header(index, before, count)) return true;
    found = {before.ring, before.first_number, vector<event>(count)};
    if (!read(place(index) + live_ring_header::size, found.events.data(), count * sizeof(event))) return true;
    return read_header(index, after, now) && after.first_number == before.first_number && now >= count;
  }

  void read_rings() {
    // The cut of a drain (record/event_order.hpp), but with the youngest stamp of a first pass over all rings in place of the
    // clock. The second pass leaves out events with a later stamp, and unstamped events after one.
    std::uint64_t until = ~std::uint64_t{0};
    if (is_being_written_) {
      until = 0;
      for (std::uint32_t index = 0; index < header_.places; ++index) {
        ring seen{};
        (void)read_ring(index, seen);
        for (const event& each : seen.events) until = std::max(until, each.stamp);
      }
    }
    for (std::uint32_t index = 0; index < header_.places; ++index) {
      ring seen{};
      constexpr int attempts = 100;
      bool is_read = false;
      for (int attempt = 0; attempt < attempts && !is_read; ++attempt) is_read = read_ring(index, seen);
      if (seen.id != 0) ++used_places_;
      if (!is_read || seen.events.empty()) continue;
      std::size_t count = seen.events.size();
      for (std::size_t position = count; position-- > 0;) {
        const std::uint64_t stamp = seen.events[position].stamp;
        if (stamp == 0) continue;
        if (stamp <= until) break;
        count = position;
      }
      seen.events.resize(count);
      rings_.push_back(std::move(seen));
    }
  }

  int file_;
  std::uint64_t base_;
  std::uint32_t area_;
  live_area_header header_;
  bool is_being_written_ = false;
  bool is_damaged_ = false;
  std::uint64_t rings_outside_ = 0;
  std::uint64_t used_places_ = 0;
  vector<chunk> chunks_;
  vector<ring> rings_;
  std::optional<std::uint64_t> chunks_so_far_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
