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
/// The files that a session leaves: how they are named, and created without replacing others.

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

/// Escapes `path` for `capture_options::trace_file`.
[[nodiscard]] inline std::string literal_trace_path(const std::string& path) {
  std::string literal;
  for (const char letter : path) literal += letter == '%' ? std::string{"%%"} : std::string{letter};
  return literal;
}

[[nodiscard]] inline std::string reason_of(int error) { return std::error_code(error, std::generic_category()).message(); }

/// The stem; from the second attempt on, with a number appended.
[[nodiscard]] inline std::string numbered(const std::string& stem, int attempt) {
  return attempt == 0 ? stem : stem + "_" + std::to_string(attempt + 1);
}
inline constexpr int max_numbered = 10'000;

/// Creates an empty file under an unused name, `stem` plus `ending`, and sets the stem to the one used. Returns 0, or the errno.
[[nodiscard]] inline int reserve_name(std::string& stem, std::string_view ending) {
  for (int attempt = 0; attempt < max_numbered; ++attempt) {
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

/// Writes a new file and waits until it is on disk. Returns 0, or the errno.
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

/// Gives a written file an unused name, `stem` plus `ending`, numbered if necessary. Returns 0, or the errno.
[[nodiscard]] inline int give_name(const std::string& temporary, std::string& stem, std::string_view ending) {
  for (int attempt = 0; attempt < max_numbered; ++attempt) {
    const std::string name = numbered(stem, attempt);
    if (::link(temporary.c_str(), (name + std::string{ending}).c_str()) == 0) {
      (void)::unlink(temporary.c_str());
      stem = name;
      return 0;
    }
    if (errno == EEXIST) continue;
    break;
  }
  // Some file systems have no links.
  if (const int error = reserve_name(stem, ending); error != 0) return error;
  return ::rename(temporary.c_str(), (stem + std::string{ending}).c_str()) == 0 ? 0 : errno;
}

/// Writes a file under `stem` plus `ending`. `is_own`: the session wrote the existing file of that name, so it is replaced;
/// otherwise a taken stem gets a number. No partial file is ever visible. Returns empty, or why it failed.
[[nodiscard]] inline std::string write_session_file(std::string& stem, std::string_view ending, bool is_own,
                                                    std::string_view text) {
  const std::string temporary = stem + ".tmp" + std::to_string(process_id());
  int error = write_new_file(temporary, text);
  if (error == EEXIST) {  // left by a process with the same id that was killed while writing
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

/// Creates the directory if it does not exist. Returns empty, or why it is not writable.
[[nodiscard]] inline std::string prepare_directory(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path.empty() ? "." : path, failure);
  if (failure) return failure.message();
  return ::access(path.empty() ? "." : path.c_str(), W_OK | X_OK) == 0 ? std::string{} : reason_in_errno();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
