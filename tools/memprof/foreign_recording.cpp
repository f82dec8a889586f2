#include "foreign_recording.hpp"

#include "opened_recording.hpp"
#include "unpacked_file.hpp"
#if MEMPROF_TOOL_PROTOZERO
#include "import_xplane.hpp"

#include <memprof/toolkit/format/xla/xplane.hpp>
#endif

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/format/heaptrack/heaptrack.hpp>
#include <memprof/toolkit/format/pie/session_reader.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_reader.hpp>
#include <memprof/toolkit/format/rmm/log.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/ttnn_graph.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/trace_file.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

/// The first character that is not white space or a byte order mark, or EOF. Rewinds the file.
int first_character(std::FILE* file) {
  constexpr int byte_order_mark = 0xEF;  // the first byte of the UTF-8 mark
  int first = std::fgetc(file);
  if (first == byte_order_mark) {
    (void)std::fgetc(file);
    (void)std::fgetc(file);
    first = std::fgetc(file);
  }
  while (first == ' ' || first == '\n' || first == '\r' || first == '\t') first = std::fgetc(file);
  std::rewind(file);
  return first;
}

/// Whether a file that begins with a bracket contains graph nodes: logs begin with brackets, too. Rewinds the file.
bool is_ttnn_graph(std::FILE* file) {
  std::array<char, 4096> begin{};
  const std::size_t got = std::fread(begin.data(), 1, begin.size(), file);
  std::rewind(file);
  const std::string_view text{begin.data(), got};
  return text.find("\"node_type\"") != text.npos || text.find("\"counter\"") != text.npos;
}

/// The format of a file, by its content.
std::string_view format_of(std::FILE* file, const std::string& path) {
  if (memprof::torch_snapshot_source::is_pickle(file)) return "torch-snapshot";
  if (memprof::is_rmm_log(file)) return "rmm";
  if (memprof::is_heaptrack(file)) return "heaptrack";
#if MEMPROF_TOOL_PROTOZERO
  if (memprof::xplane_kind_of(file) != memprof::xplane_kind::none) return "xplane";
#endif
  if (memprof::is_session(file)) return "session";
  const int first = first_character(file);
  if (first == '{') return "torch-snapshot";
  if (first == '[' && is_ttnn_graph(file)) return "ttnn-graph";
  if (memprof::is_tt_log(file)) return "tt-mlir";
  memprof::detail::raise(
      "cannot recognise '" + path +
      "': expected a memprof trace or profile, a PyTorch memory snapshot (pickle or JSON), an RMM log, a "
      "heaptrack recording, an XLA profile, a session of pie's memory profiler, a ttnn graph trace or a log of "
      "tt-mlir's runtime (memprof analyze reads logs of tt-train's tracker)");
}

/// The same for a packed file, by its unpacked content.
std::string_view format_of_packed(std::FILE* unpacked, const std::string& path) {
  if (memprof::is_heaptrack(unpacked)) return "heaptrack";
  (void)std::fgetc(unpacked);  // finds damage at the beginning, which is then reported instead
  memprof::detail::raise("'" + path + "' is packed but contains no heaptrack recording; unpack files of other formats first");
}

/// Reads one recording; each function is for a format and returns what is left to say.
class foreign_reader {
 public:
  foreign_reader(std::FILE* file, const std::string& path, const reading_options& options, memprof::trace& trace)
      : file_(file), path_(path), options_(options), trace_(trace) {}

  /// Throws `memprof::error` if the file has another format, or an option is given that the format does not use.
  [[nodiscard]] reading_result read(std::string_view format) {
    using self = foreign_reader;
    static const std::map<std::string_view, reading_result (self::*)()> readers{
        {"torch-snapshot", &self::read_torch}, {"rmm", &self::read_rmm},    {"heaptrack", &self::read_heaptrack},
        {"xplane", &self::read_xla},           {"tt-mlir", &self::read_tt}, {"ttnn-graph", &self::read_ttnn},
        {"session", &self::read_session}};
    check_options(format);
    reading_result result = (this->*readers.at(format))();
    result.remarks = std::move(remarks_);
    return result;
  }

 private:
  void check_options(std::string_view format) const {
    const auto refuse = [&](const char* option, const char* where) {
      memprof::detail::raise(std::string{option} + " applies to " + where + ", but '" + path_ + "' is read as " +
                             std::string{format});
    };
    if (options_.per_core && format != "ttnn-graph") refuse("--per-core", "ttnn-graph");
    if (!options_.frames.empty() && format != "heaptrack" && format != "torch-snapshot")
      refuse("--frames", "heaptrack and torch-snapshot");
    if (!options_.module.empty() && format != "xplane") refuse("--module", "xplane");
    if (!options_.classes.empty() && format != "xplane") refuse("--classes", "xplane");
  }

  [[nodiscard]] memprof::stack_frames kept_frames() const {
    return options_.frames == "all" ? memprof::stack_frames::all : memprof::stack_frames::own;
  }
  [[nodiscard]] std::uint32_t operations() const {
    return options_.operations != 0 ? options_.operations : memprof::imported_operations;
  }
  /// What a source says about its recording, with the limit asked for.
  [[nodiscard]] memprof::extend::capture_info with_limit(memprof::extend::capture_info info) const {
    info.operations = operations();
    return info;
  }
  void remark(const std::string& what) { remarks_.push_back("'" + path_ + "': " + what); }
  /// Ends the trace. If the file is damaged, records a gap, so that no number counts as exact.
  static void finish(memprof::extend::trace_writer& writer, const std::string& damage, std::string_view last_segment) {
    if (!damage.empty())
      writer.put_event({0, 0, 1, 0, memprof::extend::event_kind::gap, memprof::extend::any_space, 0});  // at least one
    writer.finish(last_segment);
  }

  reading_result read_torch() {
    memprof::torch_snapshot_source source{file_, path_, kept_frames()};
    memprof::extend::trace_writer writer{trace_, with_limit(source.info())};
    const std::string_view last_segment = source.write_to(writer);
    finish(writer, source.damage(), last_segment);
    for (const std::string& each : source.remarks()) remark(each);
    return {source.damage()};
  }
  reading_result read_session() {
    memprof::session_source source{file_, path_};
    memprof::extend::trace_writer writer{trace_, with_limit(source.info())};
    source.write_to(writer);
    finish(writer, source.damage(), "SESSION");
    return {source.damage()};
  }
  reading_result read_rmm() {
    memprof::extend::trace_writer writer{trace_};
    const std::string damage = memprof::read_rmm_log(file_, path_, writer);
    finish(writer, damage, "RMM_LOG");
    return {damage};
  }
  reading_result read_heaptrack() {
    memprof::heaptrack_source source{file_, path_, options_.frames.empty() ? std::nullopt : std::optional{kept_frames()}};
    memprof::extend::trace_writer writer{trace_, with_limit(source.info())};
    source.write_to(writer);
    finish(writer, source.damage(), "HEAPTRACK");
    if (source.is_attached())
      remarks_.push_back("'" + path_ +
                         "' was recorded after attaching heaptrack to a running program; what it had allocated before is not "
                         "counted");
    return {source.damage()};
  }
  reading_result read_tt() {
    const memprof::tt_reading reading = memprof::read_tt_log(file_, path_, trace_, operations());
    for (const std::string& each : reading.remarks) remark(each);
    return {reading.damage, reading.is_whole};
  }
  /// The damage has one sentence per program that cannot be read.
  reading_result read_xla() {
#if MEMPROF_TOOL_PROTOZERO
    std::string damage;
    for (const std::string& each : read_xplane(file_, path_, options_.module, options_.classes, trace_, operations()))
      damage += (damage.empty() ? "" : "; ") + each;
    return {damage};
#else
    memprof::detail::raise_about_file("read", path_, "this memprof was built without protozero");
#endif
  }
  reading_result read_ttnn() {
    memprof::ttnn_graph_source source{file_, path_};
    memprof::extend::trace_writer writer{trace_, with_limit(memprof::ttnn_graph_source::info())};
    const std::uint64_t unknown =
        source.write_to(writer, options_.per_core ? memprof::ttnn_core_model::per_core : memprof::ttnn_core_model::one_core);
    finish(writer, source.damage(), "TRACE");
    if (unknown != 0)
      remarks_.push_back(std::to_string(unknown) +
                         " freed buffers were allocated before the trace began; their L1 is not counted");
    return {source.damage()};
  }

  std::FILE* file_;
  const std::string& path_;
  const reading_options& options_;
  memprof::trace& trace_;
  std::vector<std::string> remarks_;
};

}  // namespace

bool is_memprof_profile(std::FILE* file) {
  constexpr std::string_view mark = "\"memprof-profile\"";
  if (first_character(file) != '{') return false;
  // Near the beginning, unless another program has sorted the keys. A snapshot is not searched to its end.
  bool is_found = false;
  std::string part;
  for (std::size_t got = 1; got != 0 && !is_found && part.find("\"device_traces\"") == part.npos;) {
    part.erase(0, part.size() - std::min(part.size(), mark.size()));
    const std::size_t kept = part.size();
    part.resize(kept + (std::size_t{1} << 16));
    got = std::fread(part.data() + kept, 1, part.size() - kept, file);
    part.resize(kept + got);
    is_found = part.find(mark) != part.npos;
  }
  std::rewind(file);
  return is_found;
}

own_kind own_kind_of(std::FILE* file, const std::string& path) {
  if (std::fgetc(file) == EOF) memprof::detail::raise_about_file("read", path, "it is empty");
  std::rewind(file);
  if (memprof::is_trace_file(file)) return own_kind::trace;
  return is_memprof_profile(file) ? own_kind::profile : own_kind::none;
}

void require_foreign(own_kind kind, const std::string& path) {
  if (kind == own_kind::none) return;
  memprof::detail::raise("'" + path + "' is already a memprof " + (kind == own_kind::trace ? "trace" : "profile") +
                         "; use memprof show, analyze, report or convert");
}

reading_result read_foreign(std::FILE* file, const std::string& path, const reading_options& options, memprof::trace& trace) {
  std::string packing_damage;
  bool is_packed = false;
  try {
    const memprof::detail::file_handle unpacked = unpacked_file(file, path, packing_damage);
    is_packed = unpacked != nullptr;
    std::FILE* const content = is_packed ? unpacked.get() : file;
    if (is_packed) check_encoding(content, path);
    const std::string_view format = options.format != "auto" ? std::string_view{options.format}
                                    : is_packed              ? format_of_packed(content, path)
                                                             : format_of(content, path);
    reading_result result = foreign_reader{format == "heaptrack" ? content : file, path, options, trace}.read(format);
    if (!packing_damage.empty()) result.damage = packing_damage;
    return result;
  } catch (const memprof::error& fault) {
    if (!packing_damage.empty()) memprof::detail::raise_about_file("read", path, packing_damage);
    const std::string what = fault.what();
    const bool is_about_content = is_packed && what.starts_with("cannot read");
    memprof::detail::raise(what + (is_about_content ? " (in the unpacked data; the packed file may be damaged)" : ""));
  }
}

}  // namespace memprof_tool
