#include "conversion_input.hpp"

#include "complain.hpp"
#include "output_file.hpp"
#include "recording.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/trace/trace_file.hpp>
#if MEMPROF_TOOL_ZSTD
#include <memprof/trace/trace_zstd.hpp>
#endif

#include <utility>

namespace memprof_tool {

conversion_input::conversion_input(const std::string& path, const reading_options& options, bool is_foreign,
                                   const std::string& subcommand)
    : path_(path), file_(open_recording(path)) {
  const own_kind kind = own_kind_of(file_.get(), path);
  if (is_foreign || options.format != "auto") require_foreign(kind, path);
  if (kind == own_kind::trace) {
    trace_.emplace(file_.get(), path);
  } else if (kind == own_kind::none) {
    foreign_ = std::make_unique<growing_trace>();
    read_ = read_foreign(file_.get(), path, options, foreign_->target());
    for (const std::string& each : read_.remarks) print_error(subcommand, each);
  }
}

memprof::trace_source_view conversion_input::events() const {
  return trace_ ? memprof::trace_source_view{*trace_} : memprof::trace_source_view{*foreign_};
}

const memprof::profile& conversion_input::profile(memprof::facets asked) {
  if (!profile_ && foreign_) profile_ = foreign_->profile(asked);
  if (!profile_) {
    std::rewind(file_.get());
    recording read = read_recording(file_.get(), path_, 0, asked);
    if (!read.has_content) memprof::detail::raise(read.complaint);
    complaint_ = std::move(read.complaint);
    profile_ = std::move(read.profile);
  }
  return *profile_;
}

void conversion_input::write_trace(const std::string& output, bool packs) {
  if (foreign_ && !packs) return write_output(output, [&](std::FILE* file) { return foreign_->write(file); });
#if MEMPROF_TOOL_ZSTD
  std::FILE* const whole = foreign_ ? foreign_->whole() : file_.get();
  std::rewind(whole);
  write_output(
      output, [&](std::FILE* file) { return memprof::repack_trace(whole, path_, file, packs); }, true);
#else
  memprof::detail::raise(
      "this memprof was built without zstd, which packs traces; install libzstd (libzstd-dev on Debian) and rebuild");
#endif
}

std::string conversion_input::complaint(const std::string& output) const {
  if (!complaint_.empty() || read_.damage.empty()) return complaint_;
  const std::string where = output == standard_output ? "the standard output" : "'" + output + "'";
  return "'" + path_ + "': " + read_.damage + "; everything before that is in " + where;
}

}  // namespace memprof_tool
