#include "recording.hpp"

#include "progress.hpp"

#include <memprof/detail/file_io.hpp>
#include <memprof/format/tracker_line.hpp>
#include <memprof/format/tracker_log.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/trace_file.hpp>
#if MEMPROF_TOOL_ZSTD
#include <memprof/trace/trace_zstd.hpp>  // packed traces are read by all subcommands
#endif

#include <unistd.h>
#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace memprof_tool {

memprof::detail::file_handle open_recording(const std::string& path) {
  using namespace memprof::detail;
  using memprof::detail::file_handle;  // <fcntl.h> has another one
  file_handle file{path == "-" ? fdopen(dup(STDIN_FILENO), "rb") : std::fopen(path.c_str(), "rb")};
  if (!file) raise_about_file("read", path, reason_in_errno());
  if (std::fseek(file.get(), 0, SEEK_CUR) == 0) return file;
  file_handle copy{std::tmpfile()};
  if (!copy) raise_about_file("read", path, "it is a pipe, and no file can be made for it: " + reason_in_errno());
  std::array<char, 1 << 16> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    if (!write_text(copy.get(), {buffer.data(), got})) raise_about_file("read", path, "no room for a copy: " + reason_in_errno());
  }
  if (std::ferror(file.get()) != 0) raise_about_file("read", path, reason_in_errno());
  std::rewind(copy.get());
  return copy;
}

recording read_recording(const std::string& path) { return read_recording(open_recording(path).get(), path); }

namespace {

recording read_keeping(std::FILE* file, const std::string& path, std::uint32_t kept_segments) {
  const progress shown{"memprof: reading " + path, file};
  recording result;
  result.is_trace = memprof::is_trace_file(file);
  if (!result.is_trace) {
    result.profile = memprof::read_json(file, path);
    return result;
  }
  memprof::trace_file_status status;
  result.profile = memprof::profile_of(file, path, status, kept_segments);
  result.complaint = complaint_about(status, path);
  return result;
}

/// A profile is recognised by its content: a log may have any name, and perhaps some JSON in it.
bool is_profile(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         text.find(memprof::detail::summary_header) == std::string_view::npos;
}

}  // namespace

recording read_recording(std::FILE* file, const std::string& path) { return read_keeping(file, path, 0); }

recording read_recording(const std::string& path, std::uint32_t kept_segments) {
  return read_keeping(open_recording(path).get(), path, kept_segments);
}

recorded_runs read_runs(const std::string& path) {
  const std::string name = path == "-" ? "standard input" : path;
  const memprof::detail::file_handle file = open_recording(path);
  recorded_runs runs;
  if (memprof::is_trace_file(file.get())) {
    recording read = read_recording(file.get(), name);
    runs.complaint = std::move(read.complaint);
    runs.profiles.push_back(std::move(read.profile));
  } else {
    const progress shown{"memprof: reading " + name, file.get()};
    const std::string text = memprof::detail::read_whole_file(file.get(), name);
    if (!is_profile(text)) {
      runs.profiles = memprof::parse_tracker_log(text, name);
    } else {
      runs.profiles.push_back(memprof::parse_json(text, name));
    }
  }
  for (memprof::profile& profile : runs.profiles) {
    if (profile.provenance.file.empty()) profile.provenance.file = name;
  }
  return runs;
}

std::string complaint_about(const memprof::trace_file_status& status, const std::string& path) {
  if (!status.damage.empty()) {
    return status.damage + (status.chunks == 0 ? "; nothing can be read" : "; what was read is what comes before");
  }
  if (status.has_ended) return {};
  if (status.is_being_written) return "'" + path + "' is being written; what was read is what had happened by now";
  if (status.was_left) {
    return "'" + path + "' was left by a process that ended without ending its capture; what was read is all that it recorded";
  }
  return "'" + path + "' was written before its capture had ended; what was read is what had happened by then";
}

}  // namespace memprof_tool
