#pragma once

#include <memprof/detail/file_io.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace memprof_tool {

/// A folder for files of a moment, which is removed with all that is in it.
class scratch_folder {
 public:
  /// Throws `memprof::error` if the folder cannot be made.
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "memprof-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) memprof::detail::raise_about_file("create", name, memprof::detail::reason_in_errno());
    path_ = name;
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace memprof_tool
