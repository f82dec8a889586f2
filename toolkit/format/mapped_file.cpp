#include <memprof/config.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/format/mapped_file.hpp>

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

mapped_file::mapped_file(std::FILE* file, std::filesystem::path path) : path_(std::move(path)) {
  struct ::stat status = {};
  if (::fstat(::fileno(file), &status) != 0) raise_about_file("read", path_, reason_in_errno());
  if (!S_ISREG(status.st_mode)) raise_about_file("read", path_, "it is not a file");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* const pages = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, ::fileno(file), 0);
  if (pages == MAP_FAILED) raise_about_file("read", path_, reason_in_errno());
  begin_ = static_cast<const char*>(pages);
}

mapped_file::~mapped_file() {
  if (begin_ != nullptr) ::munmap(const_cast<char*>(begin_), size_);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
