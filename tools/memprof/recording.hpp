#pragma once

#include "opened_recording.hpp"  // IWYU pragma: export

#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/trace_file.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tool {

/// Why a trace was not read completely, as a sentence without a final full stop; empty if it was.
[[nodiscard]] std::string complaint_about(const memprof::trace_file_status& status, const std::string& path);

/// A note that a trace lacks its first events because of its size limit, in the same form; empty if it lacks none.
[[nodiscard]] std::string note_of_dropped(const memprof::trace_file_status& status, const std::string& path);

/// Prints that note, if any, as one line to stderr.
void print_dropped_note(const memprof::trace_file_status& status, const std::string& path);

/// The content of a file, whatever its name.
struct recording {
  memprof::profile profile;
  bool is_trace = false;
  std::string complaint;    ///< why the profile covers only the beginning of the file; empty: it covers all
  bool has_content = true;  ///< false: even that cannot be read
};

class growing_trace;

/// Reads a session of pie's memory profiler. Returns why `events` has only its beginning; empty if it has all of it.
[[nodiscard]] std::string read_session(std::FILE* file, const std::string& path, growing_trace& events);

/// Reads a trace, a JSON profile or a session of pie's memory profiler. Throws `memprof::error` if the file is neither, or has a
/// newer version. The profile of a trace keeps `full_segments` segments in full; 0: as many as the capture's options say.
[[nodiscard]] recording read_recording(const std::string& path, std::uint32_t full_segments = 0,
                                       memprof::facets asked = memprof::facets::none);
/// The same for an open file at its beginning.
[[nodiscard]] recording read_recording(std::FILE* file, const std::string& path, std::uint32_t full_segments = 0,
                                       memprof::facets asked = memprof::facets::none);

/// Reads a file that is not a trace. Throws `memprof::error` if it is not a JSON profile either.
[[nodiscard]] memprof::profile read_profile(std::FILE* file, const std::string& path);

/// "; CUDA not captured: no device": what a capture should have recorded and why it did not, and how many events were lost.
/// Empty: there is nothing.
[[nodiscard]] std::string not_captured_text(const memprof::profile& profile);

/// Throws `memprof::error` if a capture recorded no memory at all. That is always a mistake: a library not linked, a backend not
/// installed, the wrong file.
void require_something(const memprof::profile& profile, const std::string& file);

/// What can be analyzed and drawn: a trace, a JSON profile, or each summary in a tracker's log.
struct recorded_runs {
  std::vector<memprof::profile> profiles;  ///< at least one; the provenance of each names the file
  std::string complaint;                   ///< as `recording::complaint`
};

/// Reads the runs in a file, whatever its name. Throws `memprof::error` if it holds none of the three.
[[nodiscard]] recorded_runs read_runs(const std::string& path);

}  // namespace memprof_tool
