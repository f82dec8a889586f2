#include "recording.hpp"

#include "foreign_recording.hpp"
#include "growing_trace.hpp"
#include "plain_command.hpp"
#include "progress.hpp"
#include "text_output.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/format/pie/session_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_log.hpp>
#include <memprof/trace/trace_file.hpp>
#if MEMPROF_TOOL_ZSTD
#include <memprof/trace/trace_zstd.hpp>  // lets every subcommand read packed traces
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace memprof_tool {

namespace {

/// Raises an error if a file that is not a trace is not JSON either. The JSON reader reports damaged and foreign documents.
void check_looks_like_json(std::FILE* file, const std::string& path) {
  int first = std::fgetc(file);
  while (first == ' ' || first == '\n' || first == '\r' || first == '\t') first = std::fgetc(file);
  std::rewind(file);
  constexpr int byte_order_mark = 0xEF;
  if (first == '{' || first == '[' || first == byte_order_mark) return;
  if (first == EOF) memprof::detail::raise_about_file("read a profile from", path, "it is empty: nothing was written to it");
  memprof::detail::raise_about_file(
      "read", path,
      "it is neither a trace nor a profile in JSON (memprof convert reads other tools' recordings, memprof analyze reads "
      "logs of tt-train's tracker)");
}

/// Whether the content is a profile rather than a log, which may have any name and contain JSON. The file is at its beginning
/// before and after.
bool is_profile(std::FILE* file) {
  constexpr std::string_view mark = memprof::detail::summary_header;
  int first = std::fgetc(file);
  while (first == ' ' || first == '\n' || first == '\r' || first == '\t') first = std::fgetc(file);
  bool is_log = first != '{';
  std::string part;
  while (!is_log) {
    part.erase(0, part.size() - std::min(part.size(), mark.size()));
    const std::size_t kept = part.size();
    part.resize(kept + (std::size_t{1} << 16));
    const std::size_t got = std::fread(part.data() + kept, 1, part.size() - kept, file);
    part.resize(kept + got);
    is_log = part.find(mark) != std::string::npos;
    if (got == 0) break;
  }
  std::rewind(file);
  return !is_log;
}

}  // namespace

memprof::profile read_profile(std::FILE* file, const std::string& path) {
  check_looks_like_json(file, path);
  return memprof::read_json(file, path);
}

std::string read_session(std::FILE* file, const std::string& path, growing_trace& events) {
  reading_options options;
  options.format = "session";
  const std::string damage = read_foreign(file, path, options, events.target()).damage;
  return damage.empty() ? damage : "'" + path + "': " + damage + "; everything before that was read";
}

recording read_recording(std::FILE* file, const std::string& path, std::uint32_t full_segments, memprof::facets asked) {
  const progress shown{"memprof: reading " + path, file};
  recording result;
  if (memprof::is_session(file)) {
    growing_trace events;
    result.complaint = read_session(file, path, events);
    result.profile = events.profile(asked);
    return result;
  }
  result.is_trace = memprof::is_trace_file(file);
  if (!result.is_trace) {
    result.profile = read_profile(file, path);
    return result;
  }
  memprof::trace_file_status status;
  result.profile = memprof::profile_of(file, path, status, full_segments, asked);
  result.profile.process.command_line = plain_command(std::move(result.profile.process.command_line));
  result.complaint = complaint_about(status, path);
  result.has_content = status.damage.empty() || status.chunks != 0;
  print_dropped_note(status, path);
  return result;
}

recording read_recording(const std::string& path, std::uint32_t full_segments, memprof::facets asked) {
  return read_recording(open_recording(path).get(), path, full_segments, asked);
}

recorded_runs read_runs(const std::string& path) {
  const std::string name = path == "-" ? "standard input" : path;
  const memprof::detail::file_handle file = open_recording(path);
  recorded_runs runs;
  if (memprof::is_trace_file(file.get()) || memprof::is_session(file.get())) {
    recording read = read_recording(file.get(), name);
    runs.complaint = std::move(read.complaint);
    runs.profiles.push_back(std::move(read.profile));
  } else {
    const progress shown{"memprof: reading " + name, file.get()};
    if (!is_profile(file.get())) {
      runs.profiles = memprof::read_tracker_log(file.get(), name);
    } else {
      runs.profiles.push_back(memprof::read_json(file.get(), name));
    }
  }
  for (memprof::profile& profile : runs.profiles) {
    if (profile.provenance.file.empty()) profile.provenance.file = name;
  }
  return runs;
}

std::string not_captured_text(const memprof::profile& profile) {
  std::string reasons;
  const memprof::event_anomalies& anomalies = profile.anomalies;
  const std::int64_t lost =
      anomalies.dropped_events + anomalies.reentrant_events + anomalies.missing_events + anomalies.rejected_events;
  if (lost != 0) {
    reasons = "; " + memprof::detail::grouped(lost, "event was lost", "events were lost") +
              ", as where a process may take no more memory (ulimit -v) or write no longer files (ulimit -f), or a disk is full";
  }
  for (const memprof::missing_source& missing : memprof::rows_of<memprof::missing_source>(profile.facts)) {
    reasons +=
        "; " + memprof::detail::on_one_line(missing.source) + " not captured: " + memprof::detail::on_one_line(missing.reason);
  }
  return reasons;
}

void require_something(const memprof::profile& profile, const std::string& file) {
  if (profile.spaces.empty())
    memprof::detail::raise("'" + file + "' is empty: no allocation was recorded" + not_captured_text(profile));
}

std::string complaint_about(const memprof::trace_file_status& status, const std::string& path) {
  if (!status.damage.empty()) {
    return status.damage + (status.chunks == 0 ? "; nothing can be read" : "; everything before that was read");
  }
  if (status.has_ended) return {};
  if (status.is_being_written) return "'" + path + "' is still being written; only what has been recorded so far was read";
  if (status.was_left) {
    return "'" + path + "' was left by a process that died before its capture ended; everything it recorded was read";
  }
  return "'" + path + "' was written before its capture ended; only what had been recorded by then was read";
}

std::string note_of_dropped(const memprof::trace_file_status& status, const std::string& path) {
  if (status.dropped == 0) return {};
  return "'" + path + "' lacks its first " + std::to_string(status.dropped) +
         " events, because it was recorded with a trace_limit; profiles still count them, but views of single events begin after "
         "them";
}

void print_dropped_note(const memprof::trace_file_status& status, const std::string& path) {
  const std::string note = note_of_dropped(status, path);
  if (note.empty()) return;
  std::fflush(stdout);
  print("memprof: " + memprof::detail::on_one_line(note) + "\n", stderr);
}

}  // namespace memprof_tool
