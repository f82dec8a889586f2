#include "recordings.hpp"

#include "core.hpp"
#include "path_argument.hpp"
#include "traces.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/block_callers.hpp>
#include <memprof/toolkit/format/pie/session_reader.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../../tools/memprof/job_files.hpp"

namespace memprof_python {

using namespace nb::literals;

recording recording_of(nb::handle object) {
  recording found;
  if (nb::isinstance<memprof::profile>(object)) {
    found.profile = nb::cast<const memprof::profile*>(object);
  } else if (nb::isinstance<recorded_trace>(object)) {
    found.trace = nb::cast<const recorded_trace*>(object);
  } else {
    throw nb::type_error("expected a memprof.Profile or a memprof.Trace");
  }
  return found;
}

std::vector<recording> recordings_of(const recording_list& objects) {
  std::vector<recording> found;
  for (const nb::handle object : objects) found.push_back(recording_of(object));
  return found;
}

memprof::profile profile_of(const recording& of, std::uint32_t full_segments) {
  if (of.profile != nullptr) return *of.profile;
  memprof::profile read = profile_of(*of.trace, false, full_segments);
  if (read.provenance.file.empty()) read.provenance.file = of.trace->file_name();
  return read;
}

std::shared_ptr<recorded_trace> read_session(std::FILE* file, const std::filesystem::path& path) {
  memprof::session_source source{file, path};
  if (!source.damage().empty()) memprof::detail::raise_about_file("read", path, source.damage());
  const auto events = std::make_shared<memprof::trace>();
  memprof::extend::trace_writer writer{*events, source.info()};
  source.write_to(writer);
  writer.finish("SESSION");
  return std::make_shared<recorded_trace>(events);
}

void require_something(const memprof::profile& of) {
  if (of.spaces.empty()) memprof::detail::raise("the recording has no memory space: nothing was recorded");
}

read_stacks stacks_of(const recording& of, std::uint32_t full_segments) {
  read_stacks read{profile_of(of, full_segments), {}};
  require_something(read.profile);
  read.stacks = of.profile != nullptr
                    ? memprof::stack_table_of(read.profile)
                    : with_view(*of.trace, [&](const memprof::trace_source_view& events) {
                        return memprof::stack_table_of(events, true, true, {}, memprof::block_callers_of(read.profile));
                      });
  return read;
}

const memprof::space_profile& chosen_space(const memprof::profile& of, const std::string& name) {
  if (!name.empty()) return of.space(name);
  require_something(of);
  return *std::max_element(of.spaces.begin(), of.spaces.end(),
                           [](const auto& left, const auto& right) { return left.cumulative_peak < right.cumulative_peak; });
}

std::string recording_name(const memprof::profile& of, const char* otherwise) {
  return of.provenance.file.empty() ? otherwise : "'" + memprof::detail::on_one_line(of.provenance.file) + "'";
}

namespace {

[[nodiscard]] nb::object open_recording(const path_argument& given) {
  const std::filesystem::path& path = given;
  const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
  if (!file) memprof::detail::raise_about_file("read", path, memprof::detail::reason_in_errno());
  if (memprof::is_trace_file(file.get())) return nb::cast(std::make_shared<recorded_trace>(path));
  if (memprof::is_session(file.get())) return nb::cast(read_session(file.get(), path));
  memprof::profile read = memprof::read_json(file.get(), path);
  if (read.provenance.file.empty()) read.provenance.file = path.string();
  return nb::cast(std::move(read));
}

/// The path, the trace beside it, the rank and whether the process ended before the file got its name.
using rank_file = std::tuple<std::string, std::string, std::int64_t, bool>;

[[nodiscard]] std::vector<rank_file> rank_files(const std::vector<std::string>& paths) {
  std::vector<rank_file> found;
  for (const memprof_tool::job_file& each : memprof_tool::files_of_job(paths))
    found.emplace_back(each.path, each.trace, each.rank, each.is_leftover);
  return found;
}

}  // namespace

void bind_recordings(nb::module_& module) {
  module.def("_open_recording", open_recording, "path"_a,
             nb::sig("def _open_recording(path: str | os.PathLike[str]) -> Profile | Trace"));
  module.def("_rank_files", rank_files, "paths"_a);
}

}  // namespace memprof_python
