#include "import.hpp"

#include "complain.hpp"
#include "exit_status.hpp"
#include "growing_trace.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "recording.hpp"
#include "tt_mlir.hpp"
#include "unpacked_file.hpp"
#if MEMPROF_TOOL_PROTOZERO
#include "import_xplane.hpp"

#include <memprof/toolkit/format/xla/xplane.hpp>
#endif

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/toolkit/format/heaptrack/heaptrack.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_reader.hpp>
#include <memprof/toolkit/format/recorded_event_writer.hpp>
#include <memprof/toolkit/format/rmm/log.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/ttnn_graph.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>

namespace memprof_tool {
namespace {

struct import_arguments {
  std::string format;
  std::string file;
  std::string output;
  std::string module;     ///< the program in an XLA profile; empty: all
  std::string classes;    ///< a file of class rules for XLA profiles
  bool per_core = false;  ///< for a ttnn graph trace
  std::string frames;     ///< "all" or "own"
  std::uint32_t operations = memprof::imported_operations;

  [[nodiscard]] memprof::stack_frames kept_frames() const {
    return frames == "all" ? memprof::stack_frames::all : memprof::stack_frames::own;
  }
  /// What a reader says about its recording, with the limit asked for.
  [[nodiscard]] memprof::capture_info with_limit(memprof::capture_info info) const {
    info.operations = operations;
    return info;
  }
};

/// Whether a file that begins with a bracket contains graph nodes: logs begin with brackets, too. Rewinds the file.
bool is_ttnn_graph(std::FILE* file) {
  std::array<char, 4096> begin{};
  const std::size_t got = std::fread(begin.data(), 1, begin.size(), file);
  std::rewind(file);
  const std::string_view text{begin.data(), got};
  return text.find("\"node_type\"") != text.npos || text.find("\"counter\"") != text.npos;
}

/// Raises an error if the file is memprof's own, which needs no import, or empty.
void check_is_foreign(std::FILE* file, const std::string& path) {
  if (memprof::is_trace_file(file))
    memprof::detail::raise("'" + path + "' is already a memprof trace; use memprof show, analyze, report or export");
  std::array<char, 4096> begin{};
  const std::string_view text{begin.data(), std::fread(begin.data(), 1, begin.size(), file)};
  if (text.empty()) memprof::detail::raise_about_file("read", path, "it is empty");
  std::rewind(file);
  if (text.find("\"memprof-profile\"") != text.npos && text.find_first_not_of("\xEF\xBB\xBF \t\r\n") == text.find('{'))
    memprof::detail::raise("'" + path + "' is already a memprof profile; use memprof show, analyze, report or export");
}

/// The format of a file, by its content.
std::string_view format_of(std::FILE* file, const std::string& path) {
  if (memprof::torch_snapshot_source::is_pickle(file)) return "torch-snapshot";
  if (memprof::is_rmm_log(file)) return "rmm";
  if (memprof::is_heaptrack(file)) return "heaptrack";
#if MEMPROF_TOOL_PROTOZERO
  if (memprof::xplane_kind_of(file) != memprof::xplane_kind::none) return "xplane";
#endif
  constexpr int byte_order_mark = 0xEF;  // the first byte of the UTF-8 mark
  int first = std::fgetc(file);
  if (first == byte_order_mark) {
    (void)std::fgetc(file);
    (void)std::fgetc(file);
    first = std::fgetc(file);
  }
  while (first == ' ' || first == '\n' || first == '\r' || first == '\t') first = std::fgetc(file);
  std::rewind(file);
  if (first == '{') return "torch-snapshot";
  if (first == '[' && is_ttnn_graph(file)) return "ttnn-graph";
  if (memprof::is_tt_log(file)) return "tt-mlir";
  memprof::detail::raise("cannot recognise '" + path +
                         "': expected a PyTorch memory snapshot (pickle or JSON), an RMM log, a heaptrack recording, an XLA "
                         "profile, a ttnn graph trace or a log of tt-mlir's runtime");
}

/// The same for a packed file, by its unpacked content.
std::string_view format_of_packed(std::FILE* unpacked, const std::string& path) {
  if (memprof::is_heaptrack(unpacked)) return "heaptrack";
  (void)std::fgetc(unpacked);  // finds damage at the beginning, which is then reported instead
  memprof::detail::raise("'" + path + "' is packed but contains no heaptrack recording; unpack files of other formats first");
}

/// Ends a trace. If the file is damaged, records a gap, so that no number counts as exact.
void finish(memprof::trace_writer& writer, const std::string& damage, std::string_view last_segment) {
  if (!damage.empty()) writer.put_event({0, 0, 1, 0, memprof::event_kind::gap, memprof::any_space, 0});  // at least one
  writer.finish(last_segment);
}

/// Reads the file into `trace` and returns its damage, if any. Throws `memprof::error` if the file has another format.
std::string read_torch(std::FILE* file, const import_arguments& arguments, memprof::trace& trace) {
  memprof::torch_snapshot_source source{file, arguments.file, arguments.kept_frames()};
  memprof::trace_writer writer{trace, arguments.with_limit(source.info())};
  const std::string_view last_segment = source.write_to(writer);
  finish(writer, source.damage(), last_segment);
  for (const std::string& remark : source.remarks()) print_error("import", "'" + arguments.file + "': " + remark);
  return source.damage();
}

std::string read_rmm(std::FILE* file, const std::string& path, memprof::trace& trace) {
  memprof::trace_writer writer{trace};
  const std::string damage = memprof::read_rmm_log(file, path, writer);
  finish(writer, damage, "RMM_LOG");
  return damage;
}

std::string read_heaptrack(std::FILE* file, const import_arguments& arguments, memprof::trace& trace) {
  memprof::heaptrack_source source{file, arguments.file, arguments.kept_frames()};
  memprof::trace_writer writer{trace, arguments.with_limit(source.info())};
  source.write_to(writer);
  finish(writer, source.damage(), "HEAPTRACK");
  if (source.is_attached())
    print_error("import",
                "'" + arguments.file +
                    "' was recorded after attaching heaptrack to a running program; what it had allocated before is not counted");
  return source.damage();
}

std::string read_tt(std::FILE* file, const import_arguments& arguments, memprof::trace& trace, bool& is_whole) {
  const tt_reading reading = read_tt_log(file, arguments.file, trace, arguments.operations);
  for (const std::string& remark : reading.remarks) print_error("import", "'" + arguments.file + "': " + remark);
  is_whole = reading.is_whole;
  return reading.damage;
}

/// As `read_torch`. The damage has one sentence per program that cannot be read.
std::string read_xla(std::FILE* file, const import_arguments& arguments, memprof::trace& trace) {
#if MEMPROF_TOOL_PROTOZERO
  std::string damage;
  for (const std::string& remark :
       read_xplane(file, arguments.file, arguments.module, arguments.classes, trace, arguments.operations))
    damage += (damage.empty() ? "" : "; ") + remark;
  return damage;
#else
  static_cast<void>(file);
  static_cast<void>(trace);
  memprof::detail::raise_about_file("read", arguments.file, "this memprof was built without protozero");
#endif
}

std::string read_ttnn(std::FILE* file, const import_arguments& arguments, memprof::trace& trace) {
  memprof::ttnn_graph_source source{file, arguments.file};
  memprof::trace_writer writer{trace, arguments.with_limit(memprof::ttnn_graph_source::info())};
  const std::uint64_t unknown =
      source.write_to(writer, arguments.per_core ? memprof::ttnn_core_model::per_core : memprof::ttnn_core_model::one_core);
  finish(writer, source.damage(), "TRACE");
  if (unknown != 0)
    print_error("import",
                std::to_string(unknown) + " freed buffers were allocated before the trace began; their L1 is not counted");
  return source.damage();
}

/// Throws `memprof::error` for a given option that the format does not use.
void check_options(const import_arguments& arguments, std::string_view format) {
  const auto refuse = [&](const char* option, const char* where) {
    memprof::detail::raise(std::string{option} + " applies to " + where + ", but '" + arguments.file + "' is read as " +
                           std::string{format});
  };
  if (arguments.per_core && format != "ttnn-graph") refuse("--per-core", "ttnn-graph");
  if (!arguments.frames.empty() && format != "heaptrack" && format != "torch-snapshot")
    refuse("--frames", "heaptrack and torch-snapshot");
  if (!arguments.module.empty() && format != "xplane") refuse("--module", "xplane");
  if (!arguments.classes.empty() && format != "xplane") refuse("--classes", "xplane");
}

int run_import(const import_arguments& arguments) {
  growing_trace growing;
  memprof::trace& trace = growing.target();
  std::string damage;
  bool is_whole = true;
  std::string packing_damage;
  bool is_packed = false;
  try {
    keep_input(arguments.file, arguments.output);
    const memprof::detail::file_handle file = open_recording(arguments.file);
    const memprof::detail::file_handle unpacked = unpacked_file(file.get(), arguments.file, packing_damage);
    is_packed = unpacked != nullptr;
    if (is_packed) check_encoding(unpacked.get(), arguments.file);
    if (packing_damage.empty()) check_is_foreign(is_packed ? unpacked.get() : file.get(), arguments.file);
    const std::string_view format = arguments.format != "auto" ? std::string_view{arguments.format}
                                    : unpacked                 ? format_of_packed(unpacked.get(), arguments.file)
                                                               : format_of(file.get(), arguments.file);
    check_options(arguments, format);
    damage = format == "heaptrack"    ? read_heaptrack(unpacked ? unpacked.get() : file.get(), arguments, trace)
             : format == "rmm"        ? read_rmm(file.get(), arguments.file, trace)
             : format == "xplane"     ? read_xla(file.get(), arguments, trace)
             : format == "tt-mlir"    ? read_tt(file.get(), arguments, trace, is_whole)
             : format == "ttnn-graph" ? read_ttnn(file.get(), arguments, trace)
                                      : read_torch(file.get(), arguments, trace);
    if (!packing_damage.empty()) damage = packing_damage;
  } catch (const memprof::error& fault) {
    std::string what = fault.what();
    if (!packing_damage.empty()) {
      what = "cannot read '" + arguments.file + "': " + packing_damage;
    } else if (is_packed && what.starts_with("cannot read")) {
      what += " (in the unpacked data; the packed file may be damaged)";
    }
    print_error("import", what);
    return bad_input;
  } catch (const std::bad_alloc&) {
    print_error("import", "'" + arguments.file + "': out of memory while reading it");
    return bad_input;
  }
  try {
    if (arguments.output.ends_with(".json")) {
      memprof::write_json(growing.profile(), arguments.output);
    } else {
      growing.write(arguments.output);
    }
  } catch (const memprof::error& fault) {
    print_error("import", fault.what());
    return failed;
  }
  if (damage.empty()) return is_whole ? success : bad_input;
  print_error("import", "'" + arguments.file + "': " + damage + "; everything before that is in '" + arguments.output + "'");
  return bad_input;
}

}  // namespace

void add_import(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<import_arguments>();
  CLI::App& command = *program.add_subcommand("import", "convert another tool's recording to a trace or a profile");
  set_footer(command, "", "the output cannot be written", bad_input_text);
  command
      .add_option(
          "FORMAT", arguments->format,
          "torch-snapshot (PyTorch's _dump_snapshot, pickle or JSON), rmm (CSV of its logging adaptor), heaptrack (packed "
          "or not), xplane (XLA profile, *.xplane.pb or *.hlo_proto.pb), tt-mlir (log of its runtime), ttnn-graph (JSON of "
          "GraphProcessor), or auto to detect the format from the content")
      ->required()
      ->check(one_of("format", {"auto", "torch-snapshot", "rmm", "heaptrack", "xplane", "tt-mlir", "ttnn-graph"}));
  command.add_option("FILE", arguments->file, "the other tool's recording")->required();
  command.add_flag("--per-core", arguments->per_core,
                   "ttnn-graph: count circular buffers on their own cores, as newer trackers do (default: all on one core)");
  command.add_option("-o,--output", arguments->output, "output file: a profile if it ends in .json, else a trace")
      ->required()
      ->type_name("OUT");
  command.add_option("--module", arguments->module, "xplane: import only this program")->type_name("NAME");
  command
      .add_option("--classes", arguments->classes,
                  "xplane: TOML file of rules for the categories of blocks (see docs/formats.md)")
      ->type_name("FILE");
  command
      .add_option(
          "--frames", arguments->frames,
          "heaptrack, torch-snapshot: the frames of stacks that become operations: own (without those of the C++ standard "
          "library and of allocators, the default) or all")
      ->type_name("KIND")
      ->check(one_of("kind", {"own", "all"}));
  command
      .add_option("--operations", arguments->operations,
                  "operations with a row of their own in the profile; the others within each operation share one (default: " +
                      std::to_string(memprof::imported_operations) + ")")
      ->type_name("N")
      ->check(whole_number(1, std::numeric_limits<std::uint32_t>::max()));
  command.callback([arguments, &status] { status = run_import(*arguments); });
}

}  // namespace memprof_tool
