#pragma once

#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/trace_file.hpp>

#include <cstdio>
#include <string>

namespace memprof_tool {

/// Opens a file that can be read more than once: what comes through a pipe is put into one. Throws `memprof::error` if it cannot
/// be read.
[[nodiscard]] memprof::detail::file_handle open_recording(const std::string& path);

/// Why what was read of a trace is not all of it, as a sentence without its stop; empty: it is.
[[nodiscard]] std::string complaint_of(const memprof::trace_file_status& status, const std::string& path);

/// What a file holds, whatever its name.
struct recording {
  memprof::profile profile;
  bool is_trace = false;
  std::string complaint;  ///< why the profile is only that of the file's beginning; empty: it is not
};

/// Reads a trace or a profile in JSON. Throws `memprof::error` if the file is neither, or of a newer version.
[[nodiscard]] recording read_recording(const std::string& path);
/// The same of a file that is open, from its begin.
[[nodiscard]] recording read_recording(std::FILE* file, const std::string& path);

}  // namespace memprof_tool
