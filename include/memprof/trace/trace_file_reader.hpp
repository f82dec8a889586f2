#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/trace/crc32c.hpp>
#include <memprof/trace/file_layout.hpp>
#include <memprof/trace/live_snapshot.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

/// @file
/// Reads the chunks of a trace file in order, whether or not its capture has ended: docs/trace_format.md.

namespace memprof::inline MEMPROF_ABI {

/// What was found of a trace in a file.
struct trace_file_status {
  std::uint64_t chunks = 0;       ///< number of intact chunks read
  std::uint64_t bytes = 0;        ///< bytes of the file up to the end of the last of them
  std::string damage;             ///< why reading ended before the trace did, a sentence without its full stop; empty: it did not
  bool has_ended = false;         ///< the capture had ended; otherwise the trace covers what was known when written
  bool is_being_written = false;  ///< a capture is writing it; what was read is the trace so far
  bool was_left = false;          ///< its process ended without ending the capture; what was read is all that it recorded
  std::uint64_t from_rings = 0;   ///< events found only in the rings of a process that did not end its capture
  std::uint64_t dropped = 0;      ///< events before the first kept one (`capture_options::trace_limit`); profiles count them
};

namespace detail {

/// Returned by a `zstd_unpacker` for invalid bytes.
inline constexpr std::size_t no_unpacking = ~std::size_t{0};
/// Unpacks [in, in + size) into [out, out + room) and returns its length.
using chunk_unpacker = std::size_t (*)(unsigned char* out, std::size_t room, const unsigned char* in, std::size_t size) noexcept;
/// Set by <memprof/trace/trace_zstd.hpp>; null if no translation unit of the program includes it.
inline constinit chunk_unpacker zstd_unpacker = nullptr;

/// Reads a trace file chunk by chunk. If a capture is still writing the file, it reads the state at one instant.
class trace_file_reader {
 public:
  /// Reads `file` from its current position; it must stay open. `path` is its name for messages. Raises an error unless a trace
  /// of a supported version begins there.
  trace_file_reader(std::FILE* file, const std::filesystem::path& path) : path_{path}, file_{file} {
    const long begin = std::ftell(file);
    std::array<unsigned char, trace_file_header::size> first{};
    const std::size_t got = read(first.data(), first.size());
    if (as_text(first).substr(0, trace_magic.size()) != trace_magic) refuse("it is not a trace");
    if (got < first.size()) refuse("it is cut off within its header of " + std::to_string(first.size()) + " bytes");
    take_header(first);
    const bool is_complete = header_.state == trace_file_state::complete;
    // Chunks that continue after a hole are reached in order, but not if generations have changed places.
    if (is_complete && (header_.more_chunks == 0 || (begin < 0 && header_.first_number == 0))) {
      std::uint64_t skipped = header_.first_chunk - trace_file_header::size;
      for (unsigned char byte = 0; skipped != 0 && read(&byte, 1) == 1;) --skipped;
    } else {
      if (begin < 0) {
        refuse(is_complete ? "its chunks are not in order, and such a trace cannot be read through a pipe; copy it to a file"
                           : "its capture has not ended, and such a trace cannot be read through a pipe; copy it to a file");
      }
      begin_ = static_cast<std::uint64_t>(begin);
      seeks_ = true;
    }
    if (!is_complete) look_at_live_file();
    begin_to_read();
  }

  /// The payload of the next chunk; none after the last one, or on damage, which `status` then describes.
  [[nodiscard]] std::optional<std::string_view> next() {
    constexpr int attempts = 100;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      if (!status_.damage.empty()) return std::nullopt;
      if (is_at_beginning_) {
        const char* const fault = read_chunk();
        if (fault == nullptr && is_generation_beginning_) return take_beginning();
        // If no chunk follows the beginning, the first is only in the live area, or both were overwritten.
        if (fault != nullptr && (!has_beginning_ || is_gone_meanwhile())) {
          if (has_changed_meanwhile()) continue;
          return stop(fault);
        }
        is_at_beginning_ = false;
        has_chunk_ = fault == nullptr;  // the first event chunk
      }
      if (is_behind_last_chunk()) {
        look_for_another();
        return std::nullopt;
      }
      const live_snapshot::chunk* const found = live_ ? live_->find(number_) : nullptr;
      if (found != nullptr && !found->payload.empty()) {
        // It may also be in the file.
        if (!std::exchange(has_chunk_, false)) offset_ += chunk_header::size + found->payload.size();
        return take(found->payload);
      }
      const char* const fault = read_events();
      if (fault == nullptr) return take(payload_);
      // Without a commit, a buffer has either the newest chunk or one that is in the file.
      if (found != nullptr && number_ + 1 == live_->chunks_so_far()) return take(found->payload);
      if (has_changed_meanwhile()) continue;
      // If nothing is mapped, the last chunk of a killed process may be only partly there.
      if (live_ && header_.live_area == 0 && header_.state == trace_file_state::live) return std::nullopt;
      return stop(fault);
    }
    return stop("overwritten by its capture faster than it is read,");
  }

  /// Call if the last payload holds an invalid record.
  void report_bad_record() { stop("damaged, although its checksum is right: it was written incorrectly"); }

  /// Completes the status of an incomplete file, after all chunks were read.
  void finish_live() {
    if (!live_ || !status_.damage.empty()) return;
    if (live_->is_damaged()) {
      status_.damage = quoted_path() + " is damaged in the part that its capture had not written out";
    } else if (header_.state == trace_file_state::stopped) {
      status_.damage = quoted_path() + " ends early because writing it failed (" +
                       memprof::detail::text_of_errno(static_cast<int>(header_.error)) + ")";
    } else {
      status_.is_being_written = live_->is_being_written() && !is_complete_meanwhile_;
      status_.was_left = !live_->is_being_written() && !is_complete_meanwhile_;
    }
  }

  /// The live area of an incomplete file; null otherwise.
  [[nodiscard]] live_snapshot* live() noexcept { return live_ ? &*live_ : nullptr; }
  [[nodiscard]] const trace_file_status& status() const noexcept { return status_; }

 private:
  [[nodiscard]] std::size_t read(unsigned char* out, std::size_t size) {
    const std::size_t got = std::fread(out, 1, size, file_);
    if (got < size && std::ferror(file_) != 0) raise_about_file("read", path_, reason_in_errno());
    return got;
  }

  [[nodiscard]] std::string quoted_path() const { return std::string{"'"}.append(path_.string()).append("'"); }

  void take_header(const std::array<unsigned char, trace_file_header::size>& bytes) {
    const bool is_intact = header_.decode(bytes);
    if (header_.version > trace_file_version && is_intact) {
      refuse("it is a trace of version " + std::to_string(header_.version) + ", and this memprof reads version " +
             std::to_string(trace_file_version) + "; read it with a newer memprof");
    }
    if (!is_intact || header_.version == 0 || header_.first_chunk < trace_file_header::size ||
        header_.state > trace_file_state::stopped) {
      refuse("its header is damaged");
    }
  }

  /// Reads the live area, then the header once more: meanwhile the capture may end, or begin a generation.
  void look_at_live_file() {
    live_.emplace(::fileno(file_), begin_, header_.live_area, header_.state == trace_file_state::live);
    trace_file_header now;
    if (header_.state == trace_file_state::live && read_header(now)) take_changed(now);
  }

  [[nodiscard]] bool read_header(trace_file_header& now) const {
    std::array<unsigned char, trace_file_header::size> bytes{};
    constexpr int attempts = 100;  // it may be written while it is being read
    for (int attempt = 0; attempt < attempts; ++attempt) {
      if (!read_at(::fileno(file_), begin_, bytes.data(), bytes.size())) return false;
      if (now.decode(bytes)) return now.first_chunk >= trace_file_header::size;
    }
    return false;
  }
  /// Whether the file has lost the next chunk and the beginning before it.
  [[nodiscard]] bool is_gone_meanwhile() const {
    trace_file_header now;
    return live_ && read_header(now) && now.first_number > number_;
  }
  void take_changed(const trace_file_header& now) noexcept {
    header_ = now;
    is_complete_meanwhile_ = is_complete_meanwhile_ || now.state == trace_file_state::complete;
  }

  /// Starts at the first chunk in the file.
  void begin_to_read() noexcept {
    number_ = header_.first_number;
    is_at_beginning_ = header_.first_number != 0;
    has_beginning_ = has_chunk_ = false;
    offset_ = header_.first_chunk;
    status_.bytes = offset_;
  }

  /// Whether the header has changed since it was read, so that what was read of the file may be invalid. If so, looks for the
  /// next chunk again; if that chunk is gone, reading continues where the file now begins.
  [[nodiscard]] bool has_changed_meanwhile();

  /// Whether all chunks were read; for an incomplete file, all that existed when its live area was read.
  [[nodiscard]] bool is_behind_last_chunk() const noexcept {
    const bool counts_live = live_ && !is_complete_meanwhile_ && live_->chunks_so_far();
    if (counts_live) return number_ >= *live_->chunks_so_far();
    return header_.chunks != trace_file_header::unknown && number_ - header_.first_number >= header_.chunks;
  }

  /// Whether another trace follows the last chunk of a complete one, as in files that were joined.
  void look_for_another();

  /// The offset of the next chunk, or of the beginning before it; 0 if the file does not have it.
  [[nodiscard]] std::uint64_t find_chunk();

  /// Reads the next chunk of events. Skips a generation's beginning, which a reader coming from the previous chunk does not need.
  [[nodiscard]] const char* read_events();

  /// Reads the next chunk in the file; null, or what is wrong with it.
  [[nodiscard]] const char* read_chunk();

  /// Whether these bytes begin the hole between the chunks of a file read through a pipe; if so, skips it.
  [[nodiscard]] bool skips_hole(const std::array<unsigned char, chunk_header::size>& bytes, std::size_t got);

  void check_packing(std::uint32_t packing) const;

  /// False if the payload is not validly packed, too densely packed, or longer than a chunk may be.
  [[nodiscard]] bool unpack();

  /// Reads at that offset of the trace, which is the file's current position unless it is seekable.
  [[nodiscard]] std::size_t read_on(unsigned char* out, std::size_t size, std::uint64_t offset);

  std::string_view take(const vector<unsigned char>& payload) {
    page_budget::add_input(payload.size());
    ++status_.chunks;
    ++number_;
    status_.bytes = offset_;
    return {reinterpret_cast<const char*>(payload.data()), payload.size()};
  }
  std::string_view take_beginning() {
    page_budget::add_input(payload_.size());
    has_beginning_ = true;
    status_.bytes = offset_;
    return {reinterpret_cast<const char*>(payload_.data()), payload_.size()};
  }

  [[noreturn]] void refuse(const std::string& reason) const { raise_about_file("read", path_, reason); }
  std::nullopt_t stop(std::string_view what);

  std::filesystem::path path_;
  std::FILE* file_;
  trace_file_header header_;
  trace_file_status status_;
  vector<unsigned char> payload_;
  vector<unsigned char> unpacked_;

  std::uint64_t number_ = 0;              ///< number of the next chunk
  std::uint64_t offset_ = 0;              ///< offset of what comes next in the file
  bool seeks_ = false;                    ///< otherwise the file is read front to back
  bool is_at_beginning_ = false;          ///< at the beginning of a generation whose predecessor is gone
  bool has_beginning_ = false;            ///< a part of it has been read
  bool is_generation_beginning_ = false;  ///< the last chunk read is part of a beginning
  bool has_chunk_ = false;                ///< the next chunk has already been read

  std::optional<live_snapshot> live_;
  std::uint64_t begin_ = 0;  ///< offset of the trace in the file
  bool is_complete_meanwhile_ = false;
};

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI

#include <memprof/trace/trace_file_chunks.hpp>
