#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
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
  [[nodiscard]] bool next() {
    carried_.clear();
    for (;;) {
      if (position_ == filled_ && !fill()) {
        line_ = carried_;
        is_cut_ = !carried_.empty();
        number_ += is_cut_ ? 1 : 0;
        return is_cut_;
      }
      const char* const begin = buffer_.data() + position_;
      const auto* const end = static_cast<const char*>(std::memchr(begin, '\n', filled_ - position_));
      const std::string_view part{begin, end == nullptr ? filled_ - position_ : static_cast<std::size_t>(end - begin)};
      position_ += part.size() + (end == nullptr ? 0 : 1);
      if (carried_.size() + part.size() > longest_) {
        ++number_;
        fail("longer than " + std::to_string(longest_) + " bytes");
      }
      if (end == nullptr || !carried_.empty()) carried_ += part;
      if (end == nullptr) continue;
      line_ = carried_.empty() ? part : std::string_view{carried_};
      ++number_;
      return true;
    }
  }

  /// The line without its ending, valid until the next call of `next`.
  [[nodiscard]] std::string_view line() const noexcept { return line_; }
  /// Whether the text ended in the middle of the line.
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
  /// The number of the line, from 1.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

  /// Raises "cannot read 'path': line 7: `reason`".
  [[noreturn]] void fail(const std::string& reason) const {
    raise_about_file("read", path_, "line " + std::to_string(number_) + ": " + reason);
  }

 private:
  [[nodiscard]] bool fill() {
    position_ = 0;
    filled_ = std::fread(buffer_.data(), 1, buffer_.size(), file_);
    if (filled_ == 0 && std::ferror(file_) != 0) raise_about_file("read", path_, reason_in_errno());
    return filled_ != 0;
  }

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
