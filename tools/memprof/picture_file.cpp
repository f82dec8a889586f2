#include "picture_file.hpp"

#include "gnuplot.hpp"

#include <memprof/detail/file_io.hpp>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace memprof_tool {

drawing draw_picture(const std::function<std::string(const std::string& file)>& script, const std::string& path) {
  std::string folder = (std::filesystem::temp_directory_path() / "memprof-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) memprof::detail::raise_about_file("make", folder, memprof::detail::reason_in_errno());
  const auto remove_folder = [](const std::string* name) { std::filesystem::remove_all(*name); };
  const std::unique_ptr<const std::string, decltype(remove_folder)> removed_at_end{&folder, remove_folder};

  const std::string drawn = folder + "/picture";
  const gnuplot_result result = run_gnuplot(script(drawn));
  if (result.succeeded) memprof::detail::replace_whole_file(path, memprof::detail::read_whole_file(drawn));
  return {result.found, result.complaint};
}

std::vector<std::pair<std::string, memprof::picture_format>> pictures_of(const std::string& output) {
  using memprof::picture_format;
  const std::string ending = std::filesystem::path{output}.extension().string();
  if (ending == ".png") return {{output, picture_format::png}};
  if (ending == ".svg") return {{output, picture_format::svg}};
  return {{output + ".png", picture_format::png}, {output + ".svg", picture_format::svg}};
}

std::string fault_of_output(const std::string& output) {
  const std::string ending = std::filesystem::path{output}.extension().string();
  if (ending == ".png" || ending == ".svg" || (ending.empty() && !output.empty() && output.back() != '/')) return {};
  return "'" + output + "' has to end in .png or .svg, or be a name without an ending to get both";
}

}  // namespace memprof_tool
