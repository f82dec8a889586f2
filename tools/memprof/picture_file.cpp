#include "picture_file.hpp"

#include "gnuplot.hpp"
#include "output_file.hpp"
#include "temporary_folder.hpp"

#include <memprof/detail/file_io.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_tool {

namespace {

constexpr file_kind picture_kind{"a picture", [](std::string_view begin) {
                                   return begin.starts_with("\x89PNG") || begin.starts_with("<?xml") || begin.starts_with("<svg");
                                 }};

}  // namespace

drawing draw_picture(const std::function<std::string(const std::string& file)>& script, const std::string& path) {
  keep_other_file(path, picture_kind);
  keep_terminal(path, "a picture");
  const temporary_folder folder;
  const std::string drawn = folder.path() / "picture";
  const gnuplot_result result = run_gnuplot(script(drawn));
  if (result.succeeded) write_output(path, memprof::detail::read_whole_file(drawn));
  return {result.found, result.complaint};
}

std::vector<std::pair<std::string, memprof::picture_format>> pictures_of(const std::string& output) {
  using memprof::picture_format;
  const std::string ending = std::filesystem::path{output}.extension().string();
  if (ending == ".png" || output == standard_output) return {{output, picture_format::png}};
  if (ending == ".svg") return {{output, picture_format::svg}};
  return {{output + ".png", picture_format::png}, {output + ".svg", picture_format::svg}};
}

std::string output_error_of(const std::string& output) {
  const std::string ending = std::filesystem::path{output}.extension().string();
  if (ending == ".png" || ending == ".svg" || (ending.empty() && !output.empty() && output.back() != '/')) return {};
  return "'" + output + "' must end in .png or .svg, or have no extension to get both";
}

}  // namespace memprof_tool
