#include "core.hpp"
#include "path_argument.hpp"
#include "traces.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/trace/trace.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../tools/memprof/foreign_recording.hpp"
#include "../../tools/memprof/opened_recording.hpp"

namespace memprof_python {
namespace {

using namespace nb::literals;

/// A trace, and what there is to say about the recording that it was read from.
using imported_recording = std::pair<std::shared_ptr<recorded_trace>, std::vector<std::string>>;

void check_choice(const char* what, const std::string& given, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), given) != known.end()) return;
  std::string names;
  for (const std::string& each : known) names += (names.empty() ? "" : ", ") + each;
  memprof::detail::raise("unknown " + std::string{what} + " '" + given + "'; expected one of " + names);
}

[[nodiscard]] imported_recording import_recording(const path_argument& given, const memprof_tool::reading_options& options,
                                                  bool keep_damaged) {
  std::vector<std::string> formats = memprof_tool::foreign_formats;
  formats.insert(formats.begin(), "auto");
  check_choice("format", options.format, formats);
  if (!options.frames.empty()) check_choice("frames", options.frames, {"own", "all"});
  const std::string path = given.path == "-" ? "./-" : given.path.string();  // "-" is the standard input to the program
  const memprof::detail::file_handle file = memprof_tool::open_recording(path);
  memprof_tool::require_foreign(memprof_tool::own_kind_of(file.get(), path), path);
  const auto events = std::make_shared<memprof::trace>();
  memprof_tool::reading_result read = memprof_tool::read_foreign(file.get(), path, options, *events);
  if (events->left_out() != 0) memprof::detail::raise_about_file("read", path, "out of memory");
  if (!read.damage.empty()) {
    const std::string what = "'" + path + "': " + read.damage + "; everything before that ";
    if (!keep_damaged) memprof::detail::raise(what + "is in import_recording(..., keep_damaged=True)");
    read.remarks.push_back(what + "was read");
  }
  return {std::make_shared<recorded_trace>(events), std::move(read.remarks)};
}

}  // namespace

void bind_imports(nb::module_& module) {
  module.def(
      "_import_recording",
      [](const path_argument& path, std::string format, std::string frames, std::string program, std::string classes,
         bool per_core, std::uint32_t operations, bool keep_damaged) {
        return import_recording(path,
                                {.format = std::move(format),
                                 .module = std::move(program),
                                 .classes = std::move(classes),
                                 .per_core = per_core,
                                 .frames = std::move(frames),
                                 .operations = operations},
                                keep_damaged);
      },
      "path"_a, "format"_a, "frames"_a, "module"_a, "classes"_a, "per_core"_a, "operations"_a, "keep_damaged"_a,
      nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace memprof_python
