#include "core.hpp"
#include "exports.hpp"
#include "path_argument.hpp"
#include "recordings.hpp"
#include "reflected_class.hpp"
#include "table.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memprof/detail/byte_size.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/report/text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/segment_lines.hpp>
#include <memprof/toolkit/analysis/breakdown_json.hpp>
#include <memprof/toolkit/analysis/breakdown_text.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/format/pie/session_reader.hpp>
#include <memprof/toolkit/format/tables/markdown.hpp>
#include <memprof/toolkit/page/html.hpp>
#include <memprof/trace/device_presets.hpp>
#include <memprof/trace/trace_file.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_python {
namespace {

using namespace nb::literals;
using without_gil = nb::call_guard<nb::gil_scoped_release>;

[[nodiscard]] memprof::profile read(const path_argument& given) {
  const std::filesystem::path& path = given;
  const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
  if (!file) memprof::detail::raise_about_file("read", path, memprof::detail::reason_in_errno());
  memprof::trace_file_status status;
  if (memprof::is_trace_file(file.get())) return memprof::profile_of(file.get(), path, status);
  return memprof::is_session(file.get()) ? profile_of(*read_session(file.get(), path)) : memprof::read_json(file.get(), path);
}

[[nodiscard]] std::string text_of(const memprof::profile& self, std::size_t columns, std::size_t max_lines, std::size_t owners,
                                  std::size_t largest_blocks, bool all_spaces, bool all_segments, std::string_view space) {
  return memprof::to_text(self, {.primary_space = space,
                                 .columns = columns,
                                 .max_lines = max_lines,
                                 .owners = owners,
                                 .largest_blocks = largest_blocks,
                                 .all_spaces = all_spaces,
                                 .all_segments = all_segments});
}

/// The space with that name, or if it is empty, the one that reports lead with.
[[nodiscard]] const memprof::space_profile& space_of(const memprof::profile& self, const std::string& name) {
  if (!name.empty()) return self.space(name);
  if (self.spaces.empty()) memprof::detail::raise("the profile has no memory space: nothing was recorded");
  const memprof::space_profile* const leading = memprof::detail::primary_space(self, {});
  return leading == nullptr ? *self.spaces.begin() : *leading;
}

/// What the memory of one space consists of; the profile need not outlive it.
[[nodiscard]] std::vector<memprof::analyzed_space> analyzed(const memprof::profile& self, const std::string& space,
                                                            const memprof::breakdown_options& options) {
  const memprof::space_profile& chosen = space_of(self, space);
  return {{std::make_shared<const memprof::profile>(self), static_cast<std::size_t>(&chosen - &*self.spaces.begin()),
           memprof::break_down(self, chosen, options)}};
}

[[nodiscard]] memprof::breakdown_options breakdown_options_of(std::optional<std::int64_t> device_memory, bool use_actual_sizes) {
  return {.device_memory = device_memory, .use_actual_sizes = use_actual_sizes};
}

/// A document as dictionaries and lists.
[[nodiscard]] nb::object from_json(const std::string& text) { return nb::module_::import_("json").attr("loads")(text); }

[[nodiscard]] std::shared_ptr<const table> table_of(const memprof::profile& self, const std::string& name,
                                                    const std::string& run) {
  if (name == "timeline") return timeline_table(self, run);
  for (const memprof::fact_table& facts : self.facts) {
    if (facts.name == name) return table_of_facts(facts, run);
  }
  return table_of_json_lines(name, table_lines(self, nullptr, name, run));
}

}  // namespace

void bind_profiles(nb::module_& module) {
  nb::class_<memprof::profile> profile = bind_struct<memprof::profile>(module);
  profile.doc() = "The complete result of a capture. Sizes are in bytes, times in nanoseconds since the capture began.";
  profile
      .def(
          "space", [](const memprof::profile& self, std::string_view name) -> const auto& { return self.space(name); }, "name"_a,
          nb::rv_policy::reference_internal,
          "The memory space with that name; raises `Error`, which lists them, if there is none.")
      .def(
          "find_operation", [](const memprof::profile& self, std::string_view path) { return self.find_operation(path); },
          "path"_a, nb::rv_policy::reference_internal, nb::sig("def find_operation(self, path: str) -> OperationProfile | None"),
          "The operation with that path, such as 'forward/attention'.")
      .def("text", text_of, "columns"_a = 100, "max_lines"_a = 40, "owners"_a = 5, "largest_blocks"_a = 0, "all_spaces"_a = false,
           "all_segments"_a = false, "space"_a = "",
           "The summary for people: at most `max_lines` lines of at most `columns` columns, unless a later option adds some.")
      .def(
          "tracker_text",
          [](const memprof::profile& self, std::string_view space) {
            return memprof::to_text(self, {.format = memprof::text_format::tracker, .primary_space = space});
          },
          "space"_a = "", "The lines of tt-train's memory tracker, with every segment, for scripts that read its logs.")
      .def("__str__", [](const memprof::profile& self) { return memprof::to_text(self); })
      .def(
          "markdown", [](const memprof::profile& self) { return memprof::to_markdown(self); }, "The summary as Markdown tables.")
      .def("json", memprof::to_json_text, without_gil{}, "The profile as JSON text (docs/profile.md).")
      .def(
          "save", [](const memprof::profile& self, const path_argument& path) { memprof::write_json(self, path); }, "path"_a,
          without_gil{}, "Writes the profile to a file as JSON.")
      .def(
          "write_html",
          [](const memprof::profile& self, const path_argument& path, std::string title) {
            memprof::write_html(self, path, {.title = std::move(title)});
          },
          "path"_a, "title"_a = "", without_gil{},
          "Writes the page of the profile. That of a trace (`Trace.write_html`) also shows the owners of memory over time.")
      .def(
          "table",
          [](const memprof::profile& self, const std::string& name, const std::string& run) { return table_of(self, name, run); },
          "name"_a, nb::kw_only(), "run"_a = "", without_gil{},
          "A table of the run: 'runs' (a row for each memory space), 'segments', 'operations', 'blocks' (the largest at the "
          "peaks), "
          "'timeline', or a key of `facts`. The first column, `run`, tells the rows of several runs apart.")
      .def(
          "breakdown",
          [](const memprof::profile& self, const std::string& space, std::optional<std::int64_t> device_memory, bool use_actual) {
            return from_json(memprof::to_json(analyzed(self, space, breakdown_options_of(device_memory, use_actual))).dump());
          },
          nb::kw_only(), "space"_a = "", "device_memory"_a = nb::none(), "use_actual_sizes"_a = false,
          nb::sig("def breakdown(self, *, space: str = '', device_memory: int | None = None, use_actual_sizes: bool = False) -> "
                  "dict[str, typing.Any]"),
          "What a training step's memory consists of, and whether it fits (docs/analyze.md).")
      .def(
          "breakdown_text",
          [](const memprof::profile& self, const std::string& space, std::optional<std::int64_t> device_memory, bool use_actual) {
            const memprof::breakdown_options options = breakdown_options_of(device_memory, use_actual);
            return memprof::to_text(analyzed(self, space, options), options);
          },
          nb::kw_only(), "space"_a = "", "device_memory"_a = nb::none(), "use_actual_sizes"_a = false,
          "The tables of `memprof analyze`, which begin with those of tt-train's analyze_memory.py.")
      .def(
          "remarks",
          [](const memprof::profile& self, const std::string& space) { return memprof::remarks_on(self, space_of(self, space)); },
          "space"_a = "", "Caveats about the numbers of a space, one sentence each.")
      .def_static(
          "from_json", [](std::string_view text) { return memprof::parse_json(text); }, "text"_a, without_gil{},
          "Parses what `json` returns; an error names the byte and the key.")
      .def("__getstate__", memprof::to_json_text)
      .def("__setstate__",
           [](memprof::profile& self, std::string_view text) { new (&self) memprof::profile{memprof::parse_json(text)}; });

  bind_export(profile,
              [](const memprof::profile& self, const export_request& asked) { return write_export(self, nullptr, asked); });
  module.def("_parse_byte_size", memprof::parse_byte_size, "text"_a);
  module.def(
      "_short_bytes", [](std::int64_t bytes) { return memprof::detail::short_bytes(bytes); }, "bytes"_a);
  module.def("read", read, "path"_a, without_gil{},
             "The profile in a file: JSON, a trace, or a session of pie's memory profiler, whatever the file's name.");
  nb::list presets;
  for (const std::string_view preset : memprof::device_preset_names) presets.append(nb::str(preset.data(), preset.size()));
  module.attr("device_presets") = nb::tuple(presets);
}

}  // namespace memprof_python
