#pragma once

#include <memprof/detail/pages.hpp>
#include <memprof/record/event_ring.hpp>
#include <memprof/record/live_pages.hpp>
#include <memprof/record/ring_places.hpp>
#include <memprof/trace/file_layout.hpp>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace memprof::inline MEMPROF_ABI::detail {

/// The live area of a trace file: pages of the file if its file system keeps the blocks reserved for them, otherwise private
/// pages that hold only the buffers.
class live_area {
 public:
  live_area() = default;
  live_area(const live_area&) = delete;
  live_area& operator=(const live_area&) = delete;

  /// Creates the area of capture `capture` in an empty file, with room for chunks before it if requested and permitted.
  /// `wake_word` is incremented when rings need more room. Returns 0, or why the file cannot hold a trace.
  [[nodiscard]] int make(int file, std::uint32_t ring_capacity, std::uint32_t capture, std::atomic<std::uint32_t>& wake_word,
                         bool wants_room_before) noexcept {
    live_layout layout{ring_capacity, wants_room_before};
    // Such a file is longer than its chunks: the area must not be what exceeds a limit on file size.
    if (!may_be_as_long(layout.end() + layout.mapped)) layout = {ring_capacity, false};
    is_limited_ = !may_be_as_long(layout.end());
    if (keeps_reserved_blocks(file) && !is_limited_) {
      if (const int error = map(file, layout); error != 0) return error;
    }
    area_ = layout.area;
    mapped_ = layout.mapped;
    first_buffer_ = layout.first_buffer;
    if (is_mapped_) {
      describe(layout, ring_capacity, capture, wake_word);
      return 0;
    }
    own_bytes_ = layout.first_place - layout.mapped;
    pages_ = static_cast<unsigned char*>(map_pages(own_bytes_));
    return pages_ == nullptr ? ENOMEM : 0;
  }

  [[nodiscard]] bool is_mapped() const noexcept { return is_mapped_; }
  /// Whether it is not mapped because the process may create no file of that length.
  [[nodiscard]] bool is_limited() const noexcept { return is_limited_; }
  [[nodiscard]] ring_places& places() noexcept { return places_; }
  [[nodiscard]] unsigned char* buffers() const noexcept { return pages_ + (first_buffer_ - mapped_); }
  /// The state of each buffer within the area.
  [[nodiscard]] unsigned char* buffer_states() const noexcept {
    return pages_ + (area_ - mapped_) + live_area_header::buffer_states;
  }
  /// Its position in the file; none if nothing is mapped.
  [[nodiscard]] live_area_position position() const noexcept {
    if (!is_mapped_) return {};
    return {area_, mapped_ + places_.mapping_bytes};
  }
  /// Bytes of memory that are not the file's.
  [[nodiscard]] std::size_t own_bytes() const noexcept { return own_bytes_; }

  /// Unmaps the pages, except for rings in them.
  void release() noexcept {
    if (is_mapped_) {
      places_.unmap();
    } else {
      unmap_pages(pages_, own_bytes_);
    }
    is_mapped_ = false;
    pages_ = nullptr;
    own_bytes_ = 0;
  }

 private:
  /// Maps the file if possible. Returns 0, or why there can be no file at all.
  [[nodiscard]] int map([[maybe_unused]] int file, [[maybe_unused]] const live_layout& layout) noexcept {
#if defined(__linux__)
    const int error = reserve_blocks(file, layout.mapped, layout.place(layout.spare_places) - layout.mapped);
    if (error == EOPNOTSUPP || error == ENOSYS) return 0;
    if (error != 0) return error;
    const std::size_t bytes = layout.end() - layout.mapped;
    const auto begin = static_cast<::off_t>(layout.mapped);
    void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, begin);
    if (pages == MAP_FAILED) return 0;
    is_mapped_ = true;
    pages_ = static_cast<unsigned char*>(pages);
#endif
    return 0;
  }

  void describe(const live_layout& layout, std::uint32_t ring_capacity, std::uint32_t capture,
                std::atomic<std::uint32_t>& wake_word) noexcept {
    places_.mapping = pages_;
    places_.mapping_bytes = layout.end() - layout.mapped;
    places_.first = pages_ + (layout.first_place - layout.mapped);
    places_.place_bytes = layout.place_bytes;
    places_.capacity = ring_capacity;
    places_.count = layout.places;
    places_.capture = capture;
    places_.spare = layout.spare_places;
    places_.reserved.store(layout.spare_places, std::memory_order_relaxed);
    places_.wake_word = &wake_word;
    unsigned char* const area = pages_ + (layout.area - layout.mapped);
    places_.given_in_file = new (area + live_area_header::given_places) std::atomic<std::uint64_t>{0};
    places_.rings_outside = new (area + live_area_header::rings_outside) std::atomic<std::uint64_t>{0};
    live_area_header header;
    header.buffers = live_layout::buffers;
    header.buffer_bytes = live_layout::buffer_bytes;
    header.places = layout.places;
    header.place_bytes = static_cast<std::uint32_t>(layout.place_bytes);
    header.first_buffer = layout.first_buffer;
    header.first_place = layout.first_place;
    const auto encoded = header.encode();
    std::memcpy(area, encoded.data(), encoded.size());
  }

  bool is_mapped_ = false;
  bool is_limited_ = false;
  unsigned char* pages_ = nullptr;
  std::size_t own_bytes_ = 0;
  std::size_t area_ = 0;    ///< offset of the area in the file
  std::size_t mapped_ = 0;  ///< offset of the mapped pages in the file
  std::size_t first_buffer_ = 0;
  ring_places places_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
