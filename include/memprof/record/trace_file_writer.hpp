#pragma once

#include <memprof/detail/pages.hpp>
#include <memprof/record/chunk_buffers.hpp>
#include <memprof/record/live_pages.hpp>
#include <memprof/record/own_file.hpp>
#include <memprof/record/ring_places.hpp>
#include <memprof/record/trace_generation.hpp>
#include <memprof/trace/file_layout.hpp>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <unistd.h>

namespace memprof::inline MEMPROF_ABI::detail {

/// Writes the chunks of a trace file. Without a limit they follow one another, skipping the live area when they reach it. With a
/// limit the file keeps two generations: a new one replaces the older one if it fits there, and otherwise follows the newer one.
/// Before any of the older generation is overwritten, the header says that it is gone.
///
/// Used by the thread that writes the file and, once that has ended, by the thread that ends the capture; except for
/// `begin_generation` and the calls made before the thread runs.
class trace_file_writer {
 public:
  trace_file_writer() = default;
  trace_file_writer(const trace_file_writer&) = delete;
  trace_file_writer& operator=(const trace_file_writer&) = delete;
  ~trace_file_writer() {
    if (trace_generation* const never_begun = next_.load(std::memory_order_acquire)) never_begun->destroy();
  }

  /// Begins a file. Its chunks start before the live area if there is room, otherwise after it. Returns 0, or why it cannot be
  /// written.
  [[nodiscard]] int start(const own_file& file, live_area_position area) noexcept {
    file_ = file;
    area_ = area;
    base_ = end_ = newest_.begin = area.begin == trace_file_header::size ? area.end : trace_file_header::size;
    return write_header(header(trace_file_state::live));
  }

  /// Goes on in the same file under another descriptor.
  void use(const own_file& file) noexcept { file_ = file; }

  /// Whether the last generation has been started in the file.
  [[nodiscard]] bool takes_generation() const noexcept { return next_.load(std::memory_order_acquire) == nullptr; }
  /// Call before the first of its chunks is handed over. Under the registry's lock.
  void begin_generation(trace_generation* next) noexcept { next_.store(next, std::memory_order_release); }

  /// Writes all chunks that were handed over. Returns 0, or the error after which nothing more can be written.
  [[nodiscard]] int write_chunks(chunk_buffers& buffers) noexcept {
    while (written_ != buffers.closed()) {
      if (!file_.is_there()) return EBADF;
      int error = 0;
      // Acquire pairs with the release in `begin_generation`, which precedes that in `close`.
      trace_generation* const next = next_.load(std::memory_order_acquire);
      if (next != nullptr && next->first_chunk == written_) error = put_generation(*next);
      if (error == 0) error = write_chunk(buffers, buffers.chunk(written_));
      if (error != 0) {
        // Leaves no partial chunk at the end of the file; before the live area one may stay, because a buffer there has the whole
        // chunk.
        const std::uint64_t end = has_older() && older_end_ > end_ ? older_end_ : end_;
        if (end >= area_.end) (void)::ftruncate(file_.number, static_cast<::off_t>(end));
        return error;
      }
    }
    return 0;
  }

  /// Number of the first chunk that is not in the file. Once writing has failed.
  [[nodiscard]] std::uint32_t written() const noexcept { return written_; }

  /// Reserves blocks for more rings if there are too few.
  void reserve_places(ring_places& places) const noexcept {
    const std::uint32_t ready = places.reserved.load(std::memory_order_relaxed);
    if (!places.is_short.exchange(false, std::memory_order_relaxed) || ready == places.count || !file_.is_there()) return;
    const std::uint32_t wanted = places.spare < places.count - ready ? ready + places.spare : places.count;
    const std::size_t first = area_.end - places.mapping_bytes + static_cast<std::size_t>(places.first - places.mapping);
    const std::size_t offset = first + ready * places.place_bytes;
    // Without disk space, further rings get no place; nothing else is lost.
    if (reserve_blocks(file_.number, offset, (wanted - ready) * places.place_bytes) == 0)
      places.reserved.store(wanted, std::memory_order_release);
  }

  /// Makes the file identical to one from `write_trace`. Returns 0, or the error.
  [[nodiscard]] int complete(bool keeps_area) noexcept {
    if (!file_.is_there()) return EBADF;
    // From here on the file is complete; what follows only makes it shorter, and every step keeps it complete.
    if (const int error = write_header(header(trace_file_state::complete)); error != 0) return error;
    if (has_older() && !join_generations()) return 0;
    if (area_.begin != 0 && keeps_area) return 0;
    (void)::ftruncate(file_.number, static_cast<::off_t>(end_));
    const std::uint64_t begin = oldest().begin;
    const std::uint64_t bytes = end_ - begin;
    if (begin == trace_file_header::size) {
      if (end_before_area_ != 0) drop_blocks(file_.number, end_before_area_, area_.end - end_before_area_);
      return 0;
    }
    if (trace_file_header::size + bytes > begin) {
      drop_blocks(file_.number, trace_file_header::size, begin - trace_file_header::size);
      return 0;
    }
    if (!copy(begin, trace_file_header::size, bytes)) return 0;
    newest_.begin = trace_file_header::size;
    end_ = trace_file_header::size + bytes;
    if (const int error = write_header(header(trace_file_state::complete)); error != 0) return error;
    (void)::ftruncate(file_.number, static_cast<::off_t>(end_));
    return 0;
  }

  /// Records in the file that writing it failed.
  void stop(int error) noexcept {
    if (!file_.is_there()) return;
    trace_file_header stopped = header(trace_file_state::stopped);
    stopped.error = static_cast<std::uint32_t>(error);
    (void)write_header(stopped);
  }

 private:
  struct generation {
    std::uint64_t begin = 0;        ///< offset in the file
    std::uint32_t first_chunk = 0;  ///< number of its first chunk of events
  };

  [[nodiscard]] bool has_older() const noexcept { return older_end_ != 0; }
  [[nodiscard]] const generation& oldest() const noexcept { return has_older() ? older_ : newest_; }

  [[nodiscard]] trace_file_header header(trace_file_state state) const noexcept {
    trace_file_header made;
    made.state = state;
    made.first_chunk = oldest().begin;
    made.first_number = oldest().first_chunk;
    made.more_chunks = end_before_area_ != 0 ? area_.end : has_older() ? newest_.begin : 0;
    made.live_area = static_cast<std::uint32_t>(area_.begin);
    made.chunks = state == trace_file_state::live ? trace_file_header::unknown : written_ - made.first_number;
    made.bytes = state == trace_file_state::live ? trace_file_header::unknown : end_;
    if (state == trace_file_state::complete) made.live_area = 0;
    return made;
  }
  [[nodiscard]] int write_header(const trace_file_header& made) const noexcept {
    const auto encoded = made.encode();
    return write_at(file_.number, encoded.data(), encoded.size(), 0);
  }

  [[nodiscard]] int write_chunk(chunk_buffers& buffers, const full_chunk& full) noexcept {
    chunk_header header;
    header.bytes = full.bytes;
    header.number = written_;
    header.checksum = full.checksum;
    const auto encoded = header.encode();
    const std::uint64_t size = encoded.size() + full.bytes;
    if (has_older() && end_ < older_end_ && end_ + size > older_.begin) {
      if (const int error = drop_older(); error != 0) return error;  // the generation became longer than expected
    }
    if (end_ < area_.begin && end_ + size > area_.begin) {
      if (const int error = go_behind_area(); error != 0) return error;
    }
    int error = write_at(file_.number, encoded.data(), encoded.size(), end_);
    if (error == 0) error = write_at(file_.number, buffers.bytes_of(full), full.bytes, end_ + encoded.size());
    if (error != 0) return error;
    end_ += size;
    ++written_;
    buffers.give_back(full);
    return 0;
  }

  [[nodiscard]] int go_behind_area() noexcept {
    end_before_area_ = end_;
    end_ = area_.end;
    return write_header(header(trace_file_state::live));
  }

  [[nodiscard]] int drop_older() noexcept {
    older_end_ = 0;
    return write_header(header(trace_file_state::live));
  }

  /// Begins a generation; the newest becomes the older one.
  [[nodiscard]] int put_generation(trace_generation& next) noexcept {
    if (has_older()) {
      if (const int error = drop_older(); error != 0) return error;
    }
    const std::uint64_t needed = next.beginning.size() + next.expected_bytes;
    const std::uint64_t begin = newest_.begin - base_ >= needed ? base_ : end_;
    if (const int error = write_at(file_.number, next.beginning.data(), next.beginning.size(), begin); error != 0) return error;
    older_ = newest_;
    older_end_ = end_;
    newest_ = {begin, next.first_chunk};
    end_ = begin + next.beginning.size();
    next_.store(nullptr, std::memory_order_release);
    next.destroy();
    return write_header(header(trace_file_state::live));
  }

  /// Moves the newest generation directly behind the older one. False if that failed; the file is still complete.
  [[nodiscard]] bool join_generations() noexcept {
    if (newest_.begin != older_end_) {
      const std::uint64_t bytes = end_ - newest_.begin;
      if (!copy(newest_.begin, older_end_, bytes)) return false;
      end_ = older_end_ + bytes;
    }
    newest_ = older_;
    older_end_ = 0;
    return write_header(header(trace_file_state::complete)) == 0;
  }

  /// Copies bytes within the file, front to back, so that an overlapping target is fine if it lies before the source.
  [[nodiscard]] bool copy(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) const noexcept {
    constexpr std::size_t at_once = std::size_t{64} << 10;
    void* const pages = map_pages(at_once);
    if (pages == nullptr) return false;
    bool is_copied = true;
    for (std::uint64_t done = 0; is_copied && done < bytes;) {
      const std::size_t wanted = bytes - done < at_once ? std::size_t{bytes - done} : at_once;
      const ::ssize_t got = ::pread(file_.number, pages, wanted, static_cast<::off_t>(from + done));
      if (got < 0 && errno == EINTR) continue;
      is_copied = got > 0 && write_at(file_.number, pages, static_cast<std::size_t>(got), to + done) == 0;
      if (is_copied) done += static_cast<std::uint64_t>(got);
    }
    unmap_pages(pages, at_once);
    return is_copied;
  }

  own_file file_;
  live_area_position area_;
  std::uint64_t end_before_area_ = 0;  ///< of the chunks before the live area, once others follow it; 0: none do
  std::uint64_t base_ = 0;             ///< earliest offset for chunks
  std::uint64_t end_ = 0;              ///< of the last chunk written
  std::uint32_t written_ = 0;          ///< number of chunks of events
  generation newest_;
  generation older_;
  std::uint64_t older_end_ = 0;  ///< 0: no older generation
  std::atomic<trace_generation*> next_{nullptr};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
