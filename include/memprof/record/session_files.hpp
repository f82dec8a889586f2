#pragma once

#include <memprof/detail/file_io.hpp>
#include <memprof/detail/process.hpp>
#include <memprof/trace/capture_info.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

/// @file
/// The files that a session leaves: their names, and how they come to be without replacing another.

namespace memprof::inline MEMPROF_ABI::detail {

/// `memory_profile_YYYYMMDD_HHMMSS[_rankR]` in a directory, in local time.
[[nodiscard]] inline std::string session_stem(const std::string& directory, std::int64_t at_unix_ns,
                                              const process_info& process) {
  const std::time_t seconds = at_unix_ns / 1'000'000'000;
  std::tm local{};
  char text[64] = "memory_profile";
  if (::localtime_r(&seconds, &local) != nullptr) std::strftime(text, sizeof text, "memory_profile_%Y%m%d_%H%M%S", &local);
  std::string stem = directory.empty() || directory.back() == '/' ? directory + text : directory + "/" + text;
  if (process.rank >= 0) stem += "_rank" + std::to_string(process.rank);
  return stem;
}

/// `path` as `capture_options::trace_file` has to say it.
[[nodiscard]] inline std::string literal_trace_path(const std::string& path) {
  std::string literal;
  for (const char letter : path) literal += letter == '%' ? std::string{"%%"} : std::string{letter};
  return literal;
}

[[nodiscard]] inline std::string reason_of(int error) { return std::error_code(error, std::generic_category()).message(); }

/// The stem, or with a number behind it where others have the name.
[[nodiscard]] inline std::string numbered(const std::string& stem, int attempt) {
  return attempt == 0 ? stem : stem + "_" + std::to_string(attempt + 1);
}
inline constexpr int most_numbered = 10'000;

/// Makes an empty file under a name that nobody has, `stem` with `ending`, and changes the stem to the one that was free. 0, or
/// the errno.
[[nodiscard]] inline int reserve_name(std::string& stem, std::string_view ending) {
  for (int attempt = 0; attempt < most_numbered; ++attempt) {
    const std::string name = numbered(stem, attempt);
    const int file = ::open((name + std::string{ending}).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0) return errno;
    ::close(file);
    stem = name;
    return 0;
  }
  return EEXIST;
}

/// Writes a file and waits for its disk. 0, or the errno.
[[nodiscard]] inline int write_new_file(const std::string& path, std::string_view text) noexcept {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return errno;
  int error = 0;
  while (!text.empty() && error == 0) {
    const ::ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR) error = errno;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (error == 0 && ::fsync(file) != 0 && errno != EINVAL && errno != ENOTSUP) error = errno;
  if (::close(file) != 0 && error == 0) error = errno;
  return error;
}

/// Gives a written file its name, `stem` with `ending` and perhaps a number, which no other file has. 0, or the errno.
[[nodiscard]] inline int give_name(const std::string& temporary, std::string& stem, std::string_view ending) {
  for (int attempt = 0; attempt < most_numbered; ++attempt) {
    const std::string name = numbered(stem, attempt);
    if (::link(temporary.c_str(), (name + std::string{ending}).c_str()) == 0) {
      (void)::unlink(temporary.c_str());
      stem = name;
      return 0;
    }
    if (errno == EEXIST) continue;
    break;
  }
  // There are file systems without links.
  if (const int error = reserve_name(stem, ending); error != 0) return error;
  return ::rename(temporary.c_str(), (stem + std::string{ending}).c_str()) == 0 ? 0 : errno;
}

/// Writes a file under `stem` with `ending`: `is_own` says that the session wrote the one that has the name, and a number is put
/// behind other stems that are taken. Nobody sees a file that is not whole. Empty, or why it could not be.
[[nodiscard]] inline std::string write_session_file(std::string& stem, std::string_view ending, bool is_own,
                                                    std::string_view text) {
  const std::string temporary = stem + ".tmp" + std::to_string(process_id());
  int error = write_new_file(temporary, text);
  if (error == EEXIST) {  // left by a process that was killed while it wrote, and had our number
    (void)::unlink(temporary.c_str());
    error = write_new_file(temporary, text);
  }
  if (error == 0 && is_own) {
    error = ::rename(temporary.c_str(), (stem + std::string{ending}).c_str()) == 0 ? 0 : errno;
  } else if (error == 0) {
    error = give_name(temporary, stem, ending);
  }
  if (error == 0) return {};
  (void)::unlink(temporary.c_str());
  return reason_of(error);
}

/// Makes the directory if it is not there. Empty, or why nothing can be written into it.
[[nodiscard]] inline std::string prepare_directory(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path.empty() ? "." : path, failure);
  if (failure) return failure.message();
  return ::access(path.empty() ? "." : path.c_str(), W_OK | X_OK) == 0 ? std::string{} : reason_in_errno();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
