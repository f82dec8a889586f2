#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_python {

/// Where a run goes, and as what.
struct export_request {
  std::string format;
  std::filesystem::path path;
  std::string space;  ///< for formats of one memory space; empty: the one with the greatest peak
  std::string run;    ///< its name; empty: "run"
};

inline constexpr const char* export_doc =
    "Writes the run as another tool's file. `format` is 'chrome', 'collapsed', 'dhat', 'massif', 'perfetto', 'pprof', 'session', "
    "'speedscope' or 'torch-snapshot'. Returns what the file lacks, one sentence each. 'dhat' and 'torch-snapshot' need a trace.";

/// Writes a run in the format of another tool; `events` is its trace, or null. Returns what the file lacks, one sentence each.
[[nodiscard]] std::vector<std::string> write_export(const memprof::profile& run, const memprof::trace_source_view* events,
                                                    const export_request& asked);

/// A table of the run as JSON lines: `runs`, `segments`, `operations`, `blocks`, or with a trace, `events`.
[[nodiscard]] std::string table_lines(const memprof::profile& run, const memprof::trace_source_view* events,
                                      std::string_view table, std::string_view name);

}  // namespace memprof_python
