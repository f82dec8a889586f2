#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// Reads a file from its start, byte by byte or in pieces, and tracks its position. Takes one buffer, whatever the file's size.
class byte_reader {
 public:
  /// The caller keeps the file, which must be seekable; `path` is its name for messages.
  byte_reader(std::FILE* file, std::filesystem::path path) : file_(file), path_(std::move(path)) {
    if (std::fseek(file_, 0, SEEK_END) == 0) {
      const long end = std::ftell(file_);
      size_ = end < 0 ? 0 : static_cast<std::uint64_t>(end);
    }
    std::rewind(file_);
  }

  /// The next byte; -1 at the end.
  [[nodiscard]] int next() {
    if (position_ == filled_ && !fill()) {
      has_run_out_ = true;
      return -1;
    }
    return static_cast<unsigned char>(buffer_[position_++]);
  }
  /// Replaces `out` with the next `size` bytes; false if there are not that many.
  [[nodiscard]] bool next(std::string& out, std::uint64_t size) {
    has_run_out_ = has_run_out_ || size > left();
    if (size > left()) return false;
    out.clear();
    while (out.size() < size) {
      if (position_ == filled_ && !fill()) return false;
      const std::size_t part = std::min<std::size_t>(size - out.size(), filled_ - position_);
      out.append(buffer_.data() + position_, part);
      position_ += part;
    }
    return true;
  }
  /// Reads a little-endian number of `size` bytes; false if there are not that many.
  [[nodiscard]] bool next_number(std::uint64_t& value, int size) {
    value = 0;
    for (int byte = 0; byte < size; ++byte) {
      const int read = next();
      if (read < 0) return false;
      value |= static_cast<std::uint64_t>(read) << (8 * byte);
    }
    return true;
  }

  /// The number of bytes read so far.
  [[nodiscard]] std::uint64_t offset() const noexcept { return before_ + position_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t left() const noexcept { return size_ - std::min(offset(), size_); }
  /// Whether more was read than there is.
  [[nodiscard]] bool has_run_out() const noexcept { return has_run_out_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  [[nodiscard]] bool fill() {
    before_ += filled_;
    position_ = 0;
    filled_ = std::fread(buffer_.data(), 1, buffer_.size(), file_);
    if (filled_ == 0 && std::ferror(file_) != 0) raise_about_file("read", path_, reason_in_errno());
    return filled_ != 0;
  }

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
[[nodiscard]] inline bool next_line(byte_reader& in, std::string& line, std::uint64_t number) {
  constexpr std::size_t max_kept = std::size_t{1} << 20;
  constexpr std::uint64_t most = std::uint64_t{64} << 20;
  line.clear();
  const std::uint64_t begin = in.offset();
  int byte = in.next();
  for (; byte >= 0 && byte != '\n'; byte = in.next()) {
    if (line.size() < max_kept) {
      line += static_cast<char>(byte);
    } else if (in.offset() - begin > most) {
      raise_about_file("read", in.path(),
                       "line " + std::to_string(number) + ": longer than " + std::to_string(most) + " bytes; this is not a log");
    }
  }
  return byte >= 0 || !line.empty();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
