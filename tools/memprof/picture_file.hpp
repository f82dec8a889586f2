#pragma once

#include <memprof/toolkit/page/gnuplot_text.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace memprof_tool {

struct drawing {
  bool has_gnuplot = true;
  std::string complaint;  ///< gnuplot's message, if it failed
};

/// Has gnuplot draw into a temporary file, so that an old picture at `path` survives until the new one is complete. `script`
/// makes the script that writes to a given file. Throws `memprof::error` if a file cannot be written, or if the file at `path`
/// is not a picture.
[[nodiscard]] drawing draw_picture(const std::function<std::string(const std::string& file)>& script, const std::string& path);

/// The pictures that a file name asks for by its extension; both kinds if it has none, and
/// PNG for the standard output.
[[nodiscard]] std::vector<std::pair<std::string, memprof::picture_format>> pictures_of(const std::string& output);

/// What is wrong with the file name of a picture; empty if nothing is.
[[nodiscard]] std::string output_error_of(const std::string& output);

}  // namespace memprof_tool
