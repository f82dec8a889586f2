#pragma once

#include <memprof/report/text/text_format.hpp>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

namespace memprof_tool {

/// Says on a terminal that a file was written whose name the user may not know. Elsewhere nothing: scripts know what they asked
/// for.
inline void say_written(const std::filesystem::path& file) {
  std::error_code failure;
  if (::isatty(STDOUT_FILENO) != 1 || !std::filesystem::is_regular_file(file, failure)) return;
  std::printf("wrote %s\n", memprof::detail::on_one_line(file.string()).c_str());
}

}  // namespace memprof_tool
