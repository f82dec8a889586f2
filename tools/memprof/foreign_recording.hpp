#pragma once

#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/toolkit/format/recorded_event_writer.hpp>
#include <memprof/trace/trace.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Other tools' recordings, read into a trace.

namespace memprof_tool {

/// The names of their formats.
inline const std::vector<std::string> foreign_formats{"torch-snapshot", "rmm",        "heaptrack", "xplane",
                                                      "tt-mlir",        "ttnn-graph", "session"};

/// How another tool's recording is read.
struct reading_options {
  std::string format = "auto";   ///< one of `foreign_formats`, or auto: by its content
  std::string module;            ///< the program in an XLA profile; empty: all
  std::string classes;           ///< a file of class rules for XLA profiles
  bool per_core = false;         ///< for a ttnn graph trace
  std::string frames;            ///< "all" or "own"; empty: own
  std::uint32_t operations = 0;  ///< that have a row of their own in the profile; 0: `memprof::imported_operations`
};

/// What there is to report about a recording after reading it.
struct reading_result {
  std::string damage;                     ///< why the end is missing, as a sentence without a final full stop; empty: it is not
  bool is_whole = true;                   ///< false: the end is missing, or some of it could not be read
  std::vector<std::string> remarks = {};  ///< about the recording, a line each
};

/// Whether the content of a file that is not memprof's own trace is a profile in JSON. The file is at its beginning before and
/// after.
[[nodiscard]] bool is_memprof_profile(std::FILE* file);

/// What a file is that need not be imported.
enum class own_kind { none, trace, profile };

/// Of an open file at its beginning, where it is left. Throws `memprof::error` if it is empty.
[[nodiscard]] own_kind own_kind_of(std::FILE* file, const std::string& path);

/// Throws `memprof::error` if the file is memprof's own.
void require_foreign(own_kind kind, const std::string& path);

/// Reads a recording into `trace`. Throws `memprof::error` if it cannot be read at all.
[[nodiscard]] reading_result read_foreign(std::FILE* file, const std::string& path, const reading_options& options,
                                          memprof::trace& trace);

}  // namespace memprof_tool
