#pragma once

#include <filesystem>

namespace memprof_tool {

/// A folder for the traces of a run, or for what another program writes, which is removed with all that is in it.
class temporary_folder {
 public:
  /// First removes those of commands that were killed, unless their programs still write into them. Throws `memprof::error` if
  /// the folder cannot be made.
  temporary_folder();
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder();
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;  ///< of a file that shows others that this process lives
};

}  // namespace memprof_tool
