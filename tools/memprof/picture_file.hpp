#pragma once

#include <functional>
#include <string>

namespace memprof_tool {

struct drawing {
  bool has_gnuplot = true;
  std::string complaint;  ///< gnuplot's, if it failed
};

/// Has gnuplot draw into a file of its own, so that an old picture at `path` stays until there is a new one. `script` makes the
/// script for the file that gnuplot writes. Throws `memprof::error` if a file cannot be written.
[[nodiscard]] drawing draw_picture(const std::function<std::string(const std::string& file)>& script, const std::string& path);

}  // namespace memprof_tool
