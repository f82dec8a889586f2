#pragma once

#include <memprof/detail/file_io.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

namespace memprof::inline MEMPROF_ABI::detail {

/// Reads a file from its start, byte by byte or in pieces, and tracks its position. Takes one buffer, whatever the file's size.
class byte_reader {
 public:
  /// The caller keeps the file, which must be seekable; `path` is its name for messages.
  byte_reader(std::FILE* file, std::filesystem::path path);

  /// The next byte; -1 at the end.
  [[nodiscard]] int next() {
    if (position_ == filled_ && !fill()) {
      has_run_out_ = true;
      return -1;
    }
    return static_cast<unsigned char>(buffer_[position_++]);
  }
  /// Replaces `out` with the next `size` bytes; false if there are not that many.
  [[nodiscard]] bool next(std::string& out, std::uint64_t size);
  /// Reads a little-endian number of `size` bytes; false if there are not that many.
  [[nodiscard]] bool next_number(std::uint64_t& value, int size);

  /// The number of bytes read so far.
  [[nodiscard]] std::uint64_t offset() const noexcept { return before_ + position_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t left() const noexcept { return size_ - std::min(offset(), size_); }
  /// Whether more was read than there is.
  [[nodiscard]] bool has_run_out() const noexcept { return has_run_out_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  [[nodiscard]] bool fill();

  std::FILE* file_;
  std::filesystem::path path_;
  std::uint64_t size_ = 0;
  bool has_run_out_ = false;
  std::uint64_t before_ = 0;
  std::size_t position_ = 0;
  std::size_t filled_ = 0;
  std::array<char, std::size_t{64} * 1024> buffer_{};
};

/// Replaces `line` with the next line of a log, without its line ending; false if there is none. Of a long line, the first
/// mebibyte is kept. Raises an error for a line of more than 64 MiB, which no log has; `number` is the line's number.
[[nodiscard]] bool next_line(byte_reader& in, std::string& line, std::uint64_t number);

}  // namespace memprof::inline MEMPROF_ABI::detail
