#pragma once

#include <string>

namespace memprof_tool {

struct gnuplot_result {
  bool found = true;  ///< false: gnuplot is not installed
  bool succeeded = false;
  std::string complaint;  ///< if it failed, the first line it wrote to stderr
};

/// Runs gnuplot with a script. Throws `memprof::error` if it is installed but cannot be started.
gnuplot_result run_gnuplot(const std::string& script);

}  // namespace memprof_tool
