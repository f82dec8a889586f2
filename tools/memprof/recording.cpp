#include "recording.hpp"

#include "foreign_recording.hpp"
#include "growing_trace.hpp"
#include "progress.hpp"
#include "text_output.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/format/pie/session_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_log.hpp>
#include <memprof/trace/trace_file.hpp>
#if MEMPROF_TOOL_ZSTD
#include <memprof/trace/trace_zstd.hpp>  // lets every subcommand read packed traces
#endif

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace memprof_tool {

namespace {

/// Raises an error for directories and devices. Terminals and pipes pass.
void check_is_file(std::FILE* file, const std::string& path) {
  using memprof::detail::raise_about_file;
  struct ::stat status = {};
  if (::fstat(::fileno(file), &status) != 0) raise_about_file("read", path, memprof::detail::reason_in_errno());
  if (S_ISDIR(status.st_mode)) raise_about_file("read", path, "Is a directory; name a file in it");
  if ((S_ISCHR(status.st_mode) && ::isatty(::fileno(file)) == 0) || S_ISBLK(status.st_mode))
    raise_about_file("read", path, "it is a device; expected a recording");
}

/// Copies the content of a pipe to a file that can be read more than once. Refuses at once a stream that is neither text nor
/// begins like a known binary format: it might never end.
memprof::detail::file_handle copy_of(std::FILE* pipe, const std::string& path) {
  using namespace memprof::detail;
  using memprof::detail::file_handle;  // <fcntl.h> has another one
  file_handle copy{std::tmpfile()};
  if (!copy) raise_about_file("read", path, "it is a pipe, and no temporary file can be created for it: " + reason_in_errno());
  std::array<char, 1 << 16> buffer{};
  bool is_first = true;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    const std::string_view bytes{buffer.data(), got};
    constexpr std::string_view first_bytes_of_formats = "\x89\x80\n";  // traces, pickles, profiles of XLA
    if (is_first && bytes.find('\0') != bytes.npos && first_bytes_of_formats.find(bytes[0]) == bytes.npos)
      raise_about_file("read", path,
                       "byte " + std::to_string(bytes.find('\0')) + " is 0: it is neither text nor a known recording");
    is_first = false;
    if (!write_text(copy.get(), bytes)) raise_about_file("read", path, "cannot write a temporary copy: " + reason_in_errno());
  }
  if (std::ferror(pipe) != 0) raise_about_file("read", path, reason_in_errno());
  std::rewind(copy.get());
  return copy;
}

}  // namespace

memprof::detail::file_handle open_recording(const std::string& path) {
  using namespace memprof::detail;
  using memprof::detail::file_handle;  // <fcntl.h> has another one
  file_handle file{path == "-" ? fdopen(dup(STDIN_FILENO), "rb") : std::fopen(path.c_str(), "rb")};
  if (!file) raise_about_file("read", path, reason_in_errno());
  check_is_file(file.get(), path);
  if (std::fseek(file.get(), 0, SEEK_CUR) != 0) file = copy_of(file.get(), path);
  check_encoding(file.get(), path);
  return file;
}

void check_encoding(std::FILE* file, const std::string& path) {
  using namespace memprof::detail;
  using namespace std::string_view_literals;
  std::array<char, 4> first{};
  const std::size_t got = std::fread(first.data(), 1, first.size(), file);
  if (std::ferror(file) != 0) raise_about_file("read", path, reason_in_errno());
  std::rewind(file);
  const std::string_view begin{first.data(), got};
  // The mark of little-endian UTF-32 begins with that of UTF-16.
  const char* const encoding = begin == "\xFF\xFE\0\0"sv || begin == "\0\0\xFE\xFF"sv               ? "UTF-32"
                               : begin.starts_with("\xFF\xFE"sv) || begin.starts_with("\xFE\xFF"sv) ? "UTF-16"
                                                                                                    : nullptr;
  if (encoding == nullptr) return;
  const std::string name = encoding;
  raise_about_file("read", path, "byte 0: it is " + name + "; expected UTF-8: convert it with iconv -f " + name + " -t UTF-8");
}

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
  const std::string damage = read_foreign(file, path, options, events.target(), "").damage;
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
