#pragma once

#include <memprof/detail/file_io.hpp>

#include <cstdio>
#include <string>

namespace memprof_tool {

/// Opens a recording so that it can be read more than once: the content of a pipe, named or not, is copied to a temporary file.
/// "-" is the standard input. Throws `memprof::error` if it cannot be read, or is an export that no reader takes.
[[nodiscard]] memprof::detail::file_handle open_recording(const std::string& path);

/// Throws `memprof::error` if a file is text in an encoding other than UTF-8. The file is at its beginning before and after.
void check_encoding(std::FILE* file, const std::string& path);

}  // namespace memprof_tool
