#include "export.hpp"

#include "complain.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "recording.hpp"
#include "say_written.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/perfetto/chrome_trace.hpp>
#include <memprof/toolkit/format/perfetto/perfetto.hpp>
#include <memprof/toolkit/format/perfetto/timeline_events.hpp>
#include <memprof/toolkit/format/pie/session_profile.hpp>
#include <memprof/toolkit/format/pie/session_trace.hpp>
#include <memprof/toolkit/format/pprof/pprof.hpp>
#include <memprof/toolkit/format/pytorch/snapshot.hpp>
#include <memprof/toolkit/format/stacks/collapsed.hpp>
#include <memprof/toolkit/format/stacks/speedscope.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/toolkit/format/tables/tables.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/toolkit/format/valgrind/dhat.hpp>
#include <memprof/toolkit/format/valgrind/massif.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace memprof_tool {
namespace {

struct export_arguments {
  std::string file;
  std::string format;
  std::string output;
  std::string of = "peak";
  std::string space;
  std::string run;
  std::vector<std::string> labels;  ///< "commit=3f2c1e"
  std::size_t events = memprof::torch_snapshot_options{}.events;
};

/// The input is fine, but the output cannot be written.
struct output_error : memprof::error {
  using memprof::error::error;
};

/// One run and where it goes.
class exporter {
 public:
  exporter(const export_arguments& arguments, recording read, const memprof::trace_file& trace)
      : arguments_(arguments), read_(std::move(read)), trace_(trace) {
    if (arguments_.run.empty()) run_ = std::filesystem::path{arguments.file}.stem().string();
  }

  void write() {
    using self = exporter;
    static const std::map<std::string_view, void (self::*)()> writers{
        {"collapsed", &self::write_collapsed}, {"speedscope", &self::write_speedscope}, {"pprof", &self::write_pprof},
        {"dhat", &self::write_dhat},           {"massif", &self::write_massif},         {"chrome", &self::write_chrome},
        {"perfetto", &self::write_perfetto},   {"torch-snapshot", &self::write_torch},  {"csv", &self::write_csv},
        {"jsonl", &self::write_json_lines},    {"session", &self::write_session}};
    (this->*writers.at(arguments_.format))();
  }

 private:
  /// Writes a file by calling `write(sink)`.
  template <class Write>
  static void to_file(const std::filesystem::path& path, Write&& write) {
    try {
      memprof::detail::replace_file(path, [&](std::FILE* file) {
        memprof::file_sink sink{file};
        write(sink);
        return sink.is_good();
      });
    } catch (const memprof::error& fault) {
      throw output_error{fault.what()};
    }
  }
  template <class Write>
  static void to_table(const std::filesystem::path& path, memprof::table_format format, Write&& write) {
    to_file(path, [&](memprof::file_sink& sink) {
      memprof::table_writer rows{sink, format};
      write(rows);
    });
    say_written(path);
  }
  void need_trace(const char* why) const {
    if (!read_.is_trace)
      memprof::detail::raise("'" + arguments_.file + "' is a profile, but " + arguments_.format + " needs a trace, which has " +
                             why);
  }

  [[nodiscard]] memprof::stack_table stacks(bool by_category) const {
    if (read_.is_trace) return memprof::stack_table_of(trace_, by_category);
    memprof::stack_table table = memprof::stack_table_of(read_.profile);
    for (const memprof::space_profile& space : read_.profile.spaces) {
      if (space.live_at_peak.remaining_operations == 0) continue;
      print_error("export", "the profile has folded " + std::to_string(space.live_at_peak.remaining_operations) +
                                " operations at the peak of " + space.name + "; they appear as '" +
                                std::string{memprof::folded_operations} + "'");
    }
    return table;
  }

  /// For formats that hold one memory space: the requested space, or the one with the greatest peak.
  [[nodiscard]] const memprof::space_profile& one_space() const {
    const memprof::profile& run = read_.profile;
    if (!arguments_.space.empty()) return run.space(arguments_.space);
    if (run.spaces.empty()) memprof::detail::raise("'" + arguments_.file + "' has no memory space: nothing was allocated");
    const memprof::space_profile* chosen = run.spaces.data();
    for (const memprof::space_profile& space : run.spaces) {
      if (space.cumulative_peak > chosen->cumulative_peak) chosen = &space;
    }
    std::string others;
    for (const memprof::space_profile& space : run.spaces) {
      if (&space != chosen) others += (others.empty() ? "" : ", ") + space.name;
    }
    if (!others.empty())
      print_error("export",
                  arguments_.format + " holds one memory space: exporting " + chosen->name + "; use --space for " + others);
    return *chosen;
  }

  void write_collapsed() {
    const auto value = arguments_.of == "peak"  ? memprof::stack_value::peak
                       : arguments_.of == "end" ? memprof::stack_value::end
                                                : memprof::stack_value::all;
    const memprof::stack_table table = stacks(false);
    to_file(arguments_.output, [&](memprof::file_sink& sink) { memprof::write_collapsed(table, value, sink); });
  }
  void write_speedscope() {
    const memprof::stack_table table = stacks(false);
    to_file(arguments_.output, [&](memprof::file_sink& sink) { memprof::write_speedscope(table, run_, sink); });
  }
  void write_pprof() {
    const memprof::stack_table table = stacks(true);
    to_file(arguments_.output, [&](memprof::file_sink& sink) { memprof::write_pprof(table, sink); });
    if (!read_.is_trace)
      print_error("export", "a profile lacks categories per operation and the number of blocks each has left; a trace has both");
  }
  void write_dhat() {
    need_trace("the lifetimes of blocks");
    const memprof::space_profile& space = one_space();
    const memprof::stack_table table = stacks(false);
    std::uint32_t index = 0;
    while (index < table.spaces.size() && table.spaces[index].name != space.name) ++index;
    if (index == table.spaces.size())
      memprof::detail::raise("'" + space.name + "' has no allocations: there is nothing to export");
    to_file(arguments_.output, [&](memprof::file_sink& sink) { memprof::write_dhat(table, index, sink); });
  }
  void write_massif() {
    const memprof::space_profile& space = one_space();
    to_file(arguments_.output, [&](memprof::file_sink& sink) { memprof::write_massif(read_.profile, space, sink); });
  }
  template <class Writer>
  void write_over_time() {
    memprof::timeline_losses losses;
    to_file(arguments_.output, [&](memprof::file_sink& sink) {
      Writer writer{sink};
      if (read_.is_trace) {
        losses = memprof::write_timeline(trace_, read_.profile.process, writer);
      } else {
        memprof::write_timeline(read_.profile, writer);
      }
    });
    if (losses.events_per_stretch > 1)
      print_error("export", "counters show only the extremes of every " + std::to_string(losses.events_per_stretch) +
                                " events: viewers accept no more");
    if (losses.memory_events != 0 && arguments_.format == "chrome")
      print_error("export",
                  std::to_string(losses.memory_events) + " memory events are left out: viewers accept at most a million");
  }
  void write_chrome() { write_over_time<memprof::chrome_trace_writer>(); }
  void write_perfetto() { write_over_time<memprof::perfetto_writer>(); }
  void write_torch() {
    need_trace("individual blocks");
    std::vector<memprof::torch_snapshot_loss> losses;
    to_file(arguments_.output,
            [&](memprof::file_sink& sink) { losses = memprof::write_torch_snapshot(trace_, sink, {arguments_.events}); });
    for (const memprof::torch_snapshot_loss& loss : losses) {
      if (loss.left_out_events != 0)
        print_error("export", loss.space + ": " + std::to_string(loss.left_out_events) + " events outside a window of " +
                                  std::to_string(arguments_.events) + " around the peak are left out; use --events for more");
      if (loss.left_out_blocks != 0)
        print_error("export", loss.space + ": " + std::to_string(loss.left_out_blocks) + " blocks of " +
                                  std::to_string(loss.left_out_bytes) +
                                  " bytes are left out: they overlap others, or have no address below 2^53");
    }
  }
  void write_session() {
    std::vector<std::string> missing;
    to_file(arguments_.output, [&](memprof::file_sink& sink) {
      missing =
          read_.is_trace ? memprof::write_session(trace_, read_.profile, sink) : memprof::write_session(read_.profile, sink);
    });
    for (const std::string& what : missing) print_error("export", "not in the session profile: " + what);
  }
  [[nodiscard]] std::vector<memprof::run_label> labels() const {
    std::vector<memprof::run_label> found;
    for (const std::string& text : arguments_.labels) {
      const std::size_t end = text.find('=');
      found.push_back({text.substr(0, end), text.substr(end + 1)});
    }
    return found;
  }
  void write_csv() { write_tables(memprof::table_format::csv, ".csv"); }
  void write_json_lines() { write_tables(memprof::table_format::json_lines, ".jsonl"); }
  void write_tables(memprof::table_format format, const std::string& suffix) {
    const std::filesystem::path folder = arguments_.output;
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) throw output_error{"cannot create the folder '" + folder.string() + "': " + failure.message()};
    using table = memprof::table_writer;
    const memprof::profile& run = read_.profile;
    const auto path = [&](const char* name) { return folder / (name + suffix); };
    to_table(path("runs"), format, [&](table& rows) { memprof::write_runs_table(run, run_, rows); });
    to_table(path("labels"), format, [&](table& rows) { memprof::write_labels_table(run, run_, labels(), rows); });
    to_table(path("segments"), format, [&](table& rows) { memprof::write_segments_table(run, run_, rows); });
    to_table(path("operations"), format, [&](table& rows) { memprof::write_operations_table(run, run_, rows); });
    if (read_.is_trace) {
      to_table(path("blocks"), format, [&](table& blocks) {
        to_table(path("events"), format, [&](table& events) { memprof::write_block_tables(trace_, run_, blocks, events); });
      });
    } else {
      to_table(path("blocks"), format, [&](table& rows) { memprof::write_block_table(run, run_, rows); });
      print_error("export",
                  "'" + arguments_.file +
                      "' is a profile: it has only the largest blocks at the peaks, and no events; a trace has all of them");
    }
  }

  const export_arguments& arguments_;
  recording read_;
  const memprof::trace_file& trace_;
  std::string run_ = arguments_.run;
};

int run_export(const export_arguments& arguments) {
  try {
    keep_input(arguments.file, arguments.output);
    const memprof::detail::file_handle file = open_recording(arguments.file);
    const memprof::trace_file trace{file.get(), arguments.file};
    recording read = read_recording(file.get(), arguments.file);
    const std::string remark = read.complaint;
    exporter{arguments, std::move(read), trace}.write();
    if (remark.empty()) return success;
    print_error("export", remark);
  } catch (const output_error& fault) {
    print_error("export", fault.what());
    return failed;
  } catch (const memprof::error& fault) {
    print_error("export", fault.what());
  } catch (const std::bad_alloc&) {
    print_error("export", "'" + arguments.file + "': out of memory");
  }
  return bad_input;
}

/// An option that only some formats use.
struct format_option {
  const CLI::Option* option;
  std::string formats;  ///< "csv, jsonl"
};

/// Throws `CLI::ValidationError` for a given option that the format does not use.
void refuse_unused(const std::vector<format_option>& options, const std::string& format) {
  for (const format_option& each : options) {
    const bool is_used = (", " + each.formats + ", ").find(", " + format + ", ") != std::string::npos;
    if (each.option->count() > 0 && !is_used)
      throw CLI::ValidationError{each.option->get_name(), "it applies to " + each.formats + ", but the format is " + format};
  }
}

}  // namespace

void add_export(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<export_arguments>();
  CLI::App& command = *program.add_subcommand("export", "convert a trace or a profile to the format of another tool");
  set_footer(command, "", "the output cannot be written", bad_input_text);
  command.add_option("FILE", arguments->file, "a trace or a JSON profile")->required();
  command
      .add_option(
          "--format", arguments->format,
          "collapsed (flame graphs), speedscope, pprof, dhat (dh_view), massif (ms_print), chrome (and Kineto), perfetto, "
          "torch-snapshot (memory_viz), session (snapshots of pie's memory profiler), csv or jsonl (tables)")
      ->required()
      ->type_name("FORMAT")
      ->check(one_of("format", {"collapsed", "speedscope", "pprof", "dhat", "massif", "chrome", "perfetto", "torch-snapshot",
                                "session", "csv", "jsonl"}));
  command.add_option("-o,--output", arguments->output, "output file; for csv and jsonl, a folder")->required()->type_name("OUT");
  std::vector<format_option> options;
  const auto add = [&](const std::string& name, auto& value, const std::string& formats, const std::string& what) {
    CLI::Option* const made = command.add_option(name, value, formats + ": " + what);
    options.push_back({made, formats});
    return made;
  };
  add("--of", arguments->of, "collapsed",
      "count the bytes live at the peak or at the end, or all that were allocated (default: peak)")
      ->type_name("WHAT")
      ->check(one_of("value", {"peak", "end", "all"}));
  add("--space", arguments->space, "dhat, massif", "memory space (default: the one with the greatest peak)")->type_name("NAME");
  add("--run", arguments->run, "csv, jsonl, speedscope", "name of the run (default: the name of FILE)")->type_name("NAME");
  add("--label", arguments->labels, "csv, jsonl", "label for the run, such as commit=3f2c1e; may be repeated")
      ->type_name("NAME=VALUE")
      ->take_all()
      ->expected(1)
      ->check([](const std::string& text) {
        const bool is_pair = text.find('=') != std::string::npos && text.front() != '=';
        return is_pair ? std::string{} : "'" + text + "' must be NAME=VALUE";
      });
  add("--events", arguments->events, "torch-snapshot", "maximum number of events per memory space (default: 200000)")
      ->type_name("N")
      ->check(whole_number(1));
  command.callback([arguments, options, &status] {
    refuse_unused(options, arguments->format);
    status = run_export(*arguments);
  });
}

}  // namespace memprof_tool
