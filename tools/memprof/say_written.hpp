#pragma once

#include "text_output.hpp"

#include <memprof/report/text/text_format.hpp>

#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace memprof_tool {

/// Says on a terminal that a file was written whose name the user may not know. Elsewhere nothing: scripts know what they asked
/// for.
inline void say_written(const std::filesystem::path& file) {
  std::error_code failure;
  if (::isatty(STDOUT_FILENO) != 1 || !std::filesystem::is_regular_file(file, failure)) return;
  print("wrote " + memprof::detail::on_one_line(file.string()) + "\n");
}

}  // namespace memprof_tool
