#pragma once

#include <string>

namespace memprof_tool {

struct gnuplot_result {
  bool found = true;  ///< whether there is such a program
  bool succeeded = false;
  std::string complaint;  ///< its first line on stderr, if it failed
};

/// Runs gnuplot with a script. Throws `memprof::error` if no process can be started for another reason than that it is missing.
gnuplot_result run_gnuplot(const std::string& script);

}  // namespace memprof_tool
