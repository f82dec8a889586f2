#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/compared_run.hpp>
#include <memprof/toolkit/analysis/waterfall/column_titles.hpp>
#include <memprof/trace/run_mode.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// The last `parts` names of a path.
std::string end_of_path(const std::string& path, std::size_t parts) {
  std::size_t begin = path.size();
  for (std::size_t part = 0; part < parts && begin != std::string::npos && begin != 0; ++part) begin = path.rfind('/', begin - 1);
  return begin == std::string::npos ? path : path.substr(begin == 0 ? 0 : begin + 1);
}

bool are_titles_unique(const std::vector<compared_run>& columns) {
  std::set<std::string> titles;
  return std::all_of(columns.begin(), columns.end(),
                     [&](const compared_run& column) { return titles.insert(column.title).second; });
}

}  // namespace

std::vector<std::string> names_apart(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  std::size_t longest = 0;
  for (const std::string& path : paths) longest = std::max(longest, path.size());
  for (std::size_t parts = 1; parts <= longest + 1; ++parts) {
    names.clear();
    for (const std::string& path : paths) names.push_back(end_of_path(path, parts));
    if (std::set<std::string>{names.begin(), names.end()}.size() == names.size()) return names;
  }
  for (std::size_t index = 0; index < names.size(); ++index) names[index] += " (" + std::to_string(index + 1) + ")";
  return names;
}

void title_columns(std::vector<compared_run>& columns, const std::vector<std::string>& files) {
  for (compared_run& column : columns) {
    if (column.title.empty()) column.title = column.mode == run_mode::no_dispatch ? "no dispatch" : "measured";
  }
  if (columns.size() == 3 && columns[0].title == "no dispatch" && columns[1].title == "no dispatch")
    columns[0].title = "estimate";
  if (are_titles_unique(columns)) return;
  const std::vector<std::string> names = names_apart(files);
  const std::size_t first = columns.size() - names.size();
  for (std::size_t index = 0; index < names.size(); ++index) columns[first + index].title = names[index];
}

}  // namespace memprof::inline MEMPROF_ABI
