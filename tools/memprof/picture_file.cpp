#include "picture_file.hpp"

#include "gnuplot.hpp"

#include <memprof/detail/file_io.hpp>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

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

}  // namespace memprof_tool
