#pragma once

#include <memprof/report/gnuplot_text.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace memprof_tool {

struct drawing {
  bool has_gnuplot = true;
  std::string complaint;  ///< gnuplot's, if it failed
};

/// Has gnuplot draw into a file of its own, so that an old picture at `path` stays until there is a new one. `script` makes the
/// script for the file that gnuplot writes. Throws `memprof::error` if a file cannot be written, or if there is one at `path`
/// that is no picture.
[[nodiscard]] drawing draw_picture(const std::function<std::string(const std::string& file)>& script, const std::string& path);

/// The pictures that a name asks for with its ending; both kinds if it has none.
[[nodiscard]] std::vector<std::pair<std::string, memprof::picture_format>> pictures_of(const std::string& output);

/// What is wrong with a name for a picture; empty if nothing is.
[[nodiscard]] std::string fault_of_output(const std::string& output);

}  // namespace memprof_tool
