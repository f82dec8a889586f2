#pragma once

#include <memprof/profile/profile.hpp>

#include <string>

namespace memprof_tool {

/// What a file holds, whatever its name.
struct recording {
  memprof::profile profile;
  bool is_trace = false;
  std::string complaint;  ///< why the profile is only that of the file's beginning; empty: it is not
};

/// Reads a trace or a profile in JSON. Throws `memprof::error` if the file is neither, or of a newer version.
[[nodiscard]] recording read_recording(const std::string& path);

}  // namespace memprof_tool
