#pragma once

#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/trace_file.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace memprof_tool {

/// Opens a file that can be read more than once: what comes through a pipe is put into one, and a named one is waited for. "-" is
/// the standard input. Throws `memprof::error` if it cannot be read.
[[nodiscard]] memprof::detail::file_handle open_recording(const std::string& path);

/// Throws `memprof::error` if a file, which stands at its begin and does so afterwards, is a text in another encoding than UTF-8.
void check_encoding(std::FILE* file, const std::string& path);

/// Throws `memprof::error` if `output` is the file that is read: writing it would destroy what it is made of.
void keep_input(const std::string& input, const std::string& output);

/// Why what was read of a trace is not all of it, as a sentence without its stop; empty: it is.
[[nodiscard]] std::string complaint_about(const memprof::trace_file_status& status, const std::string& path);

/// That a trace had a limit and lacks its first events, likewise; empty: it does not.
[[nodiscard]] std::string note_of_dropped(const memprof::trace_file_status& status, const std::string& path);

/// Says that in one line on stderr.
void say_what_was_dropped(const memprof::trace_file_status& status, const std::string& path);

/// What a file holds, whatever its name.
struct recording {
  memprof::profile profile;
  bool is_trace = false;
  std::string complaint;  ///< why the profile is only that of the file's beginning; empty: it is not
};

/// Reads a trace or a profile in JSON. Throws `memprof::error` if the file is neither, or of a newer version.
[[nodiscard]] recording read_recording(const std::string& path);
/// The same of a file that is open, from its begin.
[[nodiscard]] recording read_recording(std::FILE* file, const std::string& path);
/// The same; the profile of a trace has so many segments in full, whatever the capture's options were; 0: as
/// many as they said.
[[nodiscard]] recording read_recording(const std::string& path, std::uint32_t kept_segments,
                                       memprof::facets asked = memprof::facets::none);

/// Reads a file that is no trace. Throws `memprof::error` if it is no profile in JSON either.
[[nodiscard]] memprof::profile read_profile(std::FILE* file, const std::string& path);

/// Throws `memprof::error` if no memory was used in a capture. That is a mistake: of a library that was not linked, a backend
/// that was not installed, a wrong file.
void require_something(const memprof::profile& profile, const std::string& file);

/// What can be analyzed and drawn: a trace, a profile in JSON, or each summary in a tracker's log.
struct recorded_runs {
  std::vector<memprof::profile> profiles;  ///< at least one; the provenance of each names the file
  std::string complaint;                   ///< as `recording::complaint`
};

/// Reads them, whatever the file's name. Throws `memprof::error` if it holds none of the three.
[[nodiscard]] recorded_runs read_runs(const std::string& path);

}  // namespace memprof_tool
