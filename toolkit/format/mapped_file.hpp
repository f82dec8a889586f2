#pragma once

#include <memprof/detail/file_io.hpp>

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// The bytes of a regular file in the page cache: the process needs no memory of its own, whatever the file's size. As with any
/// mapping, the process ends with SIGBUS if the file is truncated meanwhile.
class mapped_file {
 public:
  /// Maps a whole file, which may be closed afterwards; `path` is its name for messages. Throws `memprof::error` on failure.
  mapped_file(std::FILE* file, std::filesystem::path path) : path_(std::move(path)) {
    struct ::stat status = {};
    if (::fstat(::fileno(file), &status) != 0) raise_about_file("read", path_, reason_in_errno());
    if (!S_ISREG(status.st_mode)) raise_about_file("read", path_, "it is not a file");
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ == 0) return;
    void* const pages = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, ::fileno(file), 0);
    if (pages == MAP_FAILED) raise_about_file("read", path_, reason_in_errno());
    begin_ = static_cast<const char*>(pages);
  }
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file() {
    if (begin_ != nullptr) ::munmap(const_cast<char*>(begin_), size_);
  }

  [[nodiscard]] std::string_view bytes() const noexcept { return {begin_, size_}; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  const char* begin_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
