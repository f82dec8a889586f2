#include "picture_file.hpp"

#include "gnuplot.hpp"

#include <memprof/detail/file_io.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace memprof_tool {

namespace {

/// A picture may overwrite a picture, an empty file, and what is not a regular file, such as /dev/stdout.
void require_no_other_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return;
  const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
  std::array<char, 5> begin{};
  const std::size_t got = file ? std::fread(begin.data(), 1, begin.size(), file.get()) : 0;
  const std::string_view text{begin.data(), got};
  if (text.empty() || text.starts_with("\x89PNG") || text.starts_with("<?xml") || text.starts_with("<svg")) return;
  memprof::detail::raise_about_file("write", path, "it exists and is not a picture; remove it or choose another name");
}

}  // namespace

drawing draw_picture(const std::function<std::string(const std::string& file)>& script, const std::string& path) {
  require_no_other_file(path);
  std::string folder = (std::filesystem::temp_directory_path() / "memprof-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) memprof::detail::raise_about_file("create", folder, memprof::detail::reason_in_errno());
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

std::string output_error_of(const std::string& output) {
  const std::string ending = std::filesystem::path{output}.extension().string();
  if (ending == ".png" || ending == ".svg" || (ending.empty() && !output.empty() && output.back() != '/')) return {};
  return "'" + output + "' must end in .png or .svg, or have no extension to get both";
}

}  // namespace memprof_tool
