#pragma once

#include <memprof/detail/file_io.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// Reads a text line by line, once, from its current position: a file or any stream. Takes one buffer, plus the excess of the
/// longest line.
class line_reader {
 public:
  /// The caller keeps the file; `path` is its name for messages. A line longer than `longest` bytes is an error.
  line_reader(std::FILE* file, std::filesystem::path path, std::size_t longest)
      : file_(file), path_(std::move(path)), longest_(longest) {}

  /// Reads the next line; false if there is none.
  [[nodiscard]] bool next();

  /// The line without its ending, valid until the next call of `next`.
  [[nodiscard]] std::string_view line() const noexcept { return line_; }
  /// Whether the text ended in the middle of the line.
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
  /// The number of the line, from 1.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

  /// Raises "cannot read 'path': line 7: `reason`".
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  [[nodiscard]] bool fill();

  std::FILE* file_;
  std::filesystem::path path_;
  std::size_t longest_;
  std::uint64_t number_ = 0;
  bool is_cut_ = false;
  std::string_view line_;
  std::string carried_;
  std::size_t position_ = 0;
  std::size_t filled_ = 0;
  std::array<char, std::size_t{64} * 1024> buffer_{};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
