#include "answers.hpp"
#include "core.hpp"
#include "path_argument.hpp"
#include "recordings.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memprof/detail/error.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/compared_run.hpp>
#include <memprof/toolkit/analysis/waterfall.hpp>
#include <memprof/toolkit/analysis/waterfall/column_titles.hpp>
#include <memprof/toolkit/analysis/waterfall_json.hpp>
#include <memprof/toolkit/analysis/waterfall_text.hpp>
#include <memprof/toolkit/page/html.hpp>
#include <memprof/toolkit/page/waterfall_html.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace memprof_python {
namespace {

using namespace nb::literals;

constexpr std::size_t max_columns = 3;

/// A title for each run; an empty one is made from the mode of the run, or from its file. `has_estimate`: the first is one.
[[nodiscard]] memprof::waterfall waterfall_of(const recording_list& objects, const std::vector<std::string>& titles,
                                              bool has_estimate, const std::vector<std::pair<std::string, std::string>>& parts,
                                              const std::string& space) {
  const std::vector<recording> runs = recordings_of(objects);
  const nb::gil_scoped_release without_gil;
  if (runs.size() < 2 || runs.size() > max_columns)
    memprof::detail::raise("expected 2 or 3 columns, but got " + std::to_string(runs.size()) +
                           ": give an estimate, a run without dispatch and a real one, or two of them");
  std::vector<memprof::compared_run> columns;
  std::vector<std::string> files;
  for (std::size_t index = 0; index < runs.size(); ++index) {
    const read_stacks read = stacks_of(runs[index]);
    const bool is_estimate = has_estimate && index == 0;
    // The run's name for the device is not that of the estimate.
    const memprof::space_profile& of = chosen_space(read.profile, is_estimate ? std::string{} : space);
    columns.push_back(memprof::compared_run_of(titles[index], read.profile, of, read.stacks));
    const std::string& file = read.profile.provenance.file;
    if (!is_estimate) files.push_back(file.empty() ? "run " + std::to_string(index + 1) : file);
  }
  memprof::title_columns(columns, files);
  std::vector<memprof::part_rule> rules;
  for (const auto& [pattern, part] : parts) rules.push_back({pattern, part});
  return memprof::make_waterfall(std::move(columns), rules);
}

}  // namespace

void bind_waterfalls(nb::module_& module) {
  bind_answer<memprof::waterfall>(
      module, "An estimate, a run without dispatch and a real one side by side: who makes their peaks differ. In bytes.")
      .def("total", &memprof::waterfall::total, "The peaks of the columns.")
      .def(
          "write_html", [](const memprof::waterfall& self, const path_argument& path) { memprof::write_html(self, path); },
          "path"_a, "Writes the waterfall as one page that opens from disk.");
  module.def("_waterfall", waterfall_of, "runs"_a, "titles"_a, "has_estimate"_a, "parts"_a, "space"_a);
}

}  // namespace memprof_python
