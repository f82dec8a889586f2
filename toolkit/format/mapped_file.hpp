#pragma once

#include <memprof/detail/file_io.hpp>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// The bytes of a regular file in the page cache: the process needs no memory of its own, whatever the file's size. As with any
/// mapping, the process ends with SIGBUS if the file is truncated meanwhile.
class mapped_file {
 public:
  /// Maps a whole file, which may be closed afterwards; `path` is its name for messages. Throws `memprof::error` on failure.
  mapped_file(std::FILE* file, std::filesystem::path path);
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file();

  [[nodiscard]] std::string_view bytes() const noexcept { return {begin_, size_}; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  const char* begin_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
