#pragma once

#include "core.hpp"
#include "path_argument.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_python {

/// Where a run goes, and as what.
struct export_request {
  std::string format;
  std::filesystem::path path;
  std::string space{};  ///< for formats of one memory space; empty: the one with the greatest peak
  std::string run{};    ///< its name; empty: "run"
  std::string of{};     ///< for collapsed: "peak", "end" or "all"; empty: "peak"
  std::vector<std::pair<std::string, std::string>> labels{};  ///< for tables and pprof
};

inline constexpr const char* export_doc =
    "Writes the run as another tool's file. `format` is 'chrome', 'collapsed', 'dhat', 'heaptrack', 'massif', 'perfetto', "
    "'pprof', "
    "'session', 'speedscope' or 'torch-snapshot'; 'csv', 'jsonl' or 'parquet', for which `path` is a folder of tables; "
    "'profile', "
    "'trace' or 'packed-trace'. A trace with stacks (`memprof run --stacks`) has its calls in 'collapsed', 'dhat', 'heaptrack', "
    "'pprof' and 'speedscope'. `of` says which bytes 'collapsed' counts: 'peak', 'end' or 'all'; `labels` are for tables and "
    "'pprof'. Returns what the file lacks, one sentence each. 'dhat', 'heaptrack', 'torch-snapshot' and traces need a trace.";

/// Writes a run in the format of another tool; `events` is its trace, or null. Returns what the file lacks, one sentence each.
[[nodiscard]] std::vector<std::string> write_export(const memprof::profile& run, const memprof::trace_source_view* events,
                                                    const export_request& asked);

/// Binds `export` of a class whose `write(self, request)` writes it.
template <class T, class Write>
void bind_export(nb::class_<T>& bound, Write write) {
  using namespace nb::literals;
  bound.def(
      "export",
      [write](const T& self, std::string format, const path_argument& path, std::string space, std::string run, std::string of,
              const std::map<std::string, std::string>& labels) {
        return write(
            self, export_request{
                      std::move(format), path, std::move(space), std::move(run), std::move(of), {labels.begin(), labels.end()}});
      },
      "format"_a, "path"_a, nb::kw_only(), "space"_a = "", "run"_a = "", "of"_a = "peak",
      "labels"_a = std::map<std::string, std::string>{}, nb::call_guard<nb::gil_scoped_release>(), export_doc);
}

/// A table of the run as JSON lines: `runs`, `segments`, `operations`, `blocks`, or with a trace, `events`.
[[nodiscard]] std::string table_lines(const memprof::profile& run, const memprof::trace_source_view* events,
                                      std::string_view table, std::string_view name);

}  // namespace memprof_python
