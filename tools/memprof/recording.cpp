#include "recording.hpp"

#include <memprof/detail/file_io.hpp>
#include <memprof/format/tracker_line.hpp>
#include <memprof/format/tracker_log.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/trace/trace_file.hpp>

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

/// A fold that keeps more segments than the capture did.
class detailed_fold {
 public:
  explicit detailed_fold(std::uint32_t kept_segments) : kept_segments_(kept_segments) {}

  void info(const memprof::capture_info& info) {
    memprof::capture_info detailed = info;
    if (kept_segments_ != 0) detailed.kept_segments = kept_segments_;
    fold.info(detailed);
  }
  void name(memprof::label id, std::string_view text) noexcept { fold.name(id, text); }
  void space(const memprof::space_definition& space) noexcept { fold.space(space); }
  void facts(memprof::fact_table&& table, bool is_first) { fold.facts(std::move(table), is_first); }
  void events(const memprof::event* first, const memprof::event* last, std::uint32_t ring) noexcept {
    fold.events(first, last, ring);
  }

  memprof::trace_fold fold;

 private:
  std::uint32_t kept_segments_;  ///< 0: as the capture did
};

recording read_keeping(std::FILE* file, const std::string& path, std::uint32_t kept_segments) {
  recording result;
  result.is_trace = memprof::is_trace_file(file);
  if (!result.is_trace) {
    result.profile = memprof::read_json(file, path);
    return result;
  }
  memprof::trace_file_status status;
  detailed_fold detailed{kept_segments};
  status = memprof::read_trace(file, path, detailed);
  result.profile = memprof::build_profile_of(detailed.fold);
  if (!status.damage.empty()) {
    result.complaint =
        status.damage + (status.chunks == 0 ? "; nothing can be read" : "; the numbers are those of what comes before");
  } else if (!status.has_ended) {
    result.complaint = "'" + path + "' was written before its capture had ended; the numbers are those so far";
  }
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

}  // namespace memprof_tool
