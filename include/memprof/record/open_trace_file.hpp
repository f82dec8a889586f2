#pragma once

#include <memprof/detail/file_lock.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/file_layout.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/// @file
/// Names and creates a capture's trace file, and decides what happens to an existing file of that name.

namespace memprof::inline MEMPROF_ABI::detail {

/// `pattern` with `%p` replaced by the process id, `%r` by its rank (0 if no launcher set one), `%h` by its host, and `%%` by
/// `%`.
[[nodiscard]] inline std::string expand_trace_path(std::string_view pattern, const process_info& process) {
  std::string path;
  for (std::size_t position = 0; position < pattern.size(); ++position) {
    const char next = position + 1 < pattern.size() ? pattern[position + 1] : '\0';
    const bool is_known = pattern[position] == '%' && (next == 'p' || next == 'r' || next == 'h' || next == '%');
    if (!is_known) {
      path += pattern[position];
      continue;
    }
    ++position;
    if (next == 'p') path += std::to_string(process.id);
    if (next == 'r') path += std::to_string(process.rank < 0 ? 0 : process.rank);
    if (next == 'h') path += process.host;
    if (next == '%') path += '%';
  }
  return path;
}

/// A newly created trace file, or why there is none.
struct opened_trace_file {
  int file = -1;
  bool is_new = false;  ///< no file had its name, not even an empty one
  std::string problem;  ///< a part of a sentence; empty: the file exists
};

/// What already has the name of a new trace file.
enum class name_taken_by { nothing, empty_file, finished_trace, trace_being_written, standard_stream, something_else };

/// Whether the file is one of the process's standard streams: `/dev/stdout`, or a file that the shell redirects to or from.
[[nodiscard]] inline bool is_standard_stream(const struct stat& file) noexcept {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    struct stat stream {};
    if (::fstat(number, &stream) == 0 && stream.st_dev == file.st_dev && stream.st_ino == file.st_ino) return true;
  }
  return false;
}

[[nodiscard]] inline name_taken_by look_at(const std::string& path) {
  // Does not wait for the other end of a pipe.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    struct stat link {};
    return errno == ENOENT && ::lstat(path.c_str(), &link) != 0 ? name_taken_by::nothing : name_taken_by::something_else;
  }
  name_taken_by found = name_taken_by::something_else;
  struct stat status {};
  const bool is_known = ::fstat(file, &status) == 0;
  if (is_known && is_standard_stream(status)) {
    found = name_taken_by::standard_stream;
  } else if (is_known && S_ISREG(status.st_mode)) {
    std::array<char, trace_magic.size()> begin{};
    // Before reading its content: a process that has just created the file may not have written anything yet.
    const bool is_locked = is_file_locked(file);
    const ::ssize_t got = ::read(file, begin.data(), begin.size());
    const bool is_trace =
        got == static_cast<::ssize_t>(begin.size()) && std::string_view{begin.data(), begin.size()} == trace_magic;
    if (is_locked && (is_trace || got == 0)) {
      found = name_taken_by::trace_being_written;
    } else if (got == 0) {
      found = name_taken_by::empty_file;
    } else if (is_trace) {
      found = name_taken_by::finished_trace;
    }
  }
  ::close(file);
  return found;
}

inline constexpr const char* another_writes_it = "another capture is writing it; put %p in the name for the process id";

/// Creates the file with that name. An existing trace of that name is renamed to `path`.old and replaces an earlier trace there;
/// anything else of that name is left alone and there is no file.
[[nodiscard]] inline opened_trace_file open_trace_file(const std::string& path) {
  const auto system_says = [](int error) { return std::error_code(error, std::generic_category()).message(); };
  constexpr int attempts = 3;  // other processes may create and remove files of that name meanwhile
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const int made = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (made >= 0) {
      if (lock_file(made)) return {made, true, {}};
      ::close(made);
      return {-1, false, another_writes_it};
    }
    if (errno != EEXIST) return {-1, false, system_says(errno)};
    switch (look_at(path)) {
      case name_taken_by::nothing: continue;
      case name_taken_by::empty_file: {
        const int empty = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (empty < 0) return {-1, false, system_says(errno)};
        struct stat status {};
        if (lock_file(empty) && ::fstat(empty, &status) == 0 && status.st_size == 0) return {empty, false, {}};
        ::close(empty);
        continue;
      }
      case name_taken_by::trace_being_written: return {-1, false, another_writes_it};
      case name_taken_by::standard_stream:
        return {-1, false, "the program's standard input, output or error is this file; choose another one"};
      case name_taken_by::something_else:
        return {-1, false, "something other than a trace has this name and is left as it is; choose another name"};
      case name_taken_by::finished_trace: break;
    }
    const std::string old = path + ".old";
    const name_taken_by of_old = look_at(old);
    if (of_old != name_taken_by::nothing && of_old != name_taken_by::empty_file && of_old != name_taken_by::finished_trace) {
      return {-1, false, "it is an earlier trace and cannot become '" + old + "', which is not a trace; move one of them"};
    }
    if (::rename(path.c_str(), old.c_str()) != 0) return {-1, false, system_says(errno)};
  }
  return {-1, false, "other processes keep creating files with this name"};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
