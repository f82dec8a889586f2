#include "temporary_folder.hpp"

#include <memprof/detail/file_io.hpp>
#include <memprof/detail/file_lock.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <cstdlib>
#include <string>
#include <system_error>

namespace memprof_tool {
namespace {

constexpr const char* name_begin = "memprof_run_";
constexpr const char* lock_name = "launcher";  ///< locked by the process that made the folder, while it lives

/// Whether another process holds the lock of that file.
[[nodiscard]] bool is_locked(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return false;
  const bool is_held = memprof::detail::is_file_locked(file);
  ::close(file);
  return is_held;
}

/// A locked file in the folder; -1 if the file system has no locks. It gets its name when it is locked, so that nobody finds it
/// without.
[[nodiscard]] int lock_in(const std::filesystem::path& folder) {
  const std::filesystem::path unnamed = folder / "unlocked";
  const int file = ::open(unnamed.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  if (memprof::detail::lock_file(file) && is_locked(unnamed) && ::rename(unnamed.c_str(), (folder / lock_name).c_str()) == 0)
    return file;
  ::close(file);
  return -1;
}

/// Whether the process that made the folder is gone, and no program writes a trace into it.
[[nodiscard]] bool is_left(const std::filesystem::path& folder) {
  std::error_code failure;
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(folder, failure)) ||
      !std::filesystem::exists(folder / lock_name, failure))
    return false;
  for (std::filesystem::directory_iterator each{folder, failure}; !failure && each != std::filesystem::directory_iterator{};
       each.increment(failure)) {
    if (is_locked(each->path())) return false;
  }
  return !failure;
}

void remove_left_folders(const std::filesystem::path& parent) {
  std::error_code failure;
  for (std::filesystem::directory_iterator each{parent, failure}; !failure && each != std::filesystem::directory_iterator{};
       each.increment(failure)) {
    std::error_code ignored;
    if (each->path().filename().native().starts_with(name_begin) && is_left(each->path()))
      std::filesystem::remove_all(each->path(), ignored);
  }
}

}  // namespace

temporary_folder::temporary_folder() {
  std::error_code failure;
  std::filesystem::path parent = std::filesystem::temp_directory_path(failure);
  if (!failure) parent = std::filesystem::absolute(parent, failure);  // the program may change its folder
  if (failure) parent = "/tmp";
  remove_left_folders(parent);
  std::string name = (parent / (std::string{name_begin} + "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) memprof::detail::raise_about_file("create", name, memprof::detail::reason_in_errno());
  path_ = name;
  lock_ = lock_in(path_);
}

temporary_folder::~temporary_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace memprof_tool
