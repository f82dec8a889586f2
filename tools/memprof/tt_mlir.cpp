#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "gzip.hpp"
#include "help_text.hpp"
#include "recording.hpp"
#include "script_run.hpp"
#include "text_output.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>
#include <memprof/toolkit/analysis/tt_answer_json.hpp>
#include <memprof/toolkit/analysis/tt_text.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_json.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_run_folder.hpp>
#include <memprof/toolkit/page/html.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

namespace fs = std::filesystem;

struct tt_arguments {
  std::vector<std::string> script;  ///< and its arguments
  std::string log;
  std::string folder;
  std::string output_folder = "logs";
  bool as_json = false;
};

/// Runs `work` and returns its exit status; reports an exception as bad input.
template <class Work>
int guarded(Work&& work) {
  try {
    return work();
  } catch (const memprof::error& fault) {
    print_error("tt-mlir", fault.what());
  } catch (const std::bad_alloc&) {
    print_error("tt-mlir", "out of memory");
  }
  return bad_input;
}

/// Writes all files beside the log except the page.
int analyze(const fs::path& log_path, bool as_json) {
  const std::string path = log_path.string();
  const memprof::detail::file_handle log = open_recording(path);
  const std::string name = memprof::tt_run_of_log(log_path);
  const fs::path base = log_path.parent_path() / name;
  memprof::tt_analysis done{.log = path};
  const auto beside = [&](const std::string& suffix) {
    done.files.push_back(base.string() + suffix);
    return fs::path{done.files.back()};
  };
  const auto say = [&](const std::string& text) {
    if (!as_json) print(text);
  };
  const auto remark = [&](const std::string& text) {
    print_error("tt-mlir", "'" + path + "'" + text);
    done.remarks.push_back(text.substr(text.find_first_not_of(": ")));
  };

  memprof::trace trace;
  memprof::tt_log_source source{log.get(), path};
  memprof::extend::trace_writer writer{trace, memprof::tt_log_source::info()};
  writer.finish(source.write_to(writer));
  const fs::path trace_path = beside(".memtrace");
  memprof::write_trace(trace, trace_path);

  memprof::tt_log_content content = memprof::content_of_tt_log(log.get(), path);
  for (const memprof::tt_rank_summary& rank : content.ranks) {
    const std::string of_rank = content.ranks.size() == 1 ? "" : "_rank" + rank.rank.number;
    const fs::path memory = beside(of_rank + "_memory.json");
    const fs::path operations = beside(of_rank + "_operations.json");
    const std::uint64_t count = memprof::write_tt_files(log.get(), path, content, rank, memory, operations);
    say(memory.string() + ", " + operations.string() + ": " + std::to_string(count) + " operations, validated\n");
    say(memprof::to_text(rank));
  }
  if (content.ranks.empty()) remark(" has no operation with a state: only the trace is written");
  const fs::path inputs = beside("_inputs_registry.json");
  memprof::write_tt_inputs_file(content, inputs);
  say(inputs.string() + ": " + std::to_string(content.inputs.size()) + " arguments\n");
  say(trace_path.string() + ": for memprof show, analyze, report\n");
  say(memprof::to_text(source.memories()));
  for (const std::string& each : memprof::remarks_on(source)) remark(": " + each);
  if (!source.status().damage.empty()) remark(": " + source.status().damage + "; the files contain everything before that");
  if (as_json) {
    done.inputs = static_cast<std::int64_t>(content.inputs.size());
    done.ranks = std::move(content.ranks);
    done.memories = source.memories();
    print_json(memprof::detail::dump(memprof::short_answer(memprof::to_json(done))) + '\n');
  }
  return memprof::is_whole(source.status()) ? success : bad_input;
}

int visualize(const fs::path& given) {
  std::error_code failure;
  fs::path folder = fs::canonical(given, failure);
  if (failure) memprof::detail::raise_about_file("read", given, failure.message());
  const fs::path log_path = memprof::tt_log_in(folder);
  const std::string name = memprof::tt_run_of_log(log_path);
  const memprof::detail::file_handle log = open_recording(log_path.string());
  memprof::trace trace;
  const memprof::tt_reading reading = memprof::read_tt_log(log.get(), log_path.string(), trace);
  memprof::html_options options;
  options.title = name;
  options.source = log_path.filename().string();
  options.gzip = gzip;
  options.notes = reading.remarks;
  if (!reading.damage.empty()) options.notes.push_back(reading.damage);
  const fs::path page = given / (name + "_report.html");
  memprof::write_html(trace, page, options);
  print(page.string() + "\n");
  if (!reading.damage.empty())
    print_error("tt-mlir", "'" + log_path.string() + "': " + reading.damage + "; the page shows everything before that");
  return reading.is_whole ? success : bad_input;
}

/// Runs the script. Its exit status is returned unless it is 0.
int run(const tt_arguments& arguments, bool only_logs) {
  const fs::path script = arguments.script.front();
  std::error_code failure;
  if (!fs::is_regular_file(script, failure)) memprof::detail::raise_about_file("run", script, "there is no such file");
  std::vector<std::string> command = arguments.script;
  if (script.extension() == ".py") {
    command.insert(command.begin(), {"python3", "-u"});
  } else if (!script.has_parent_path()) {
    command.front() = "./" + command.front();
  }
  const std::string name = script.stem().string();
  const fs::path folder = memprof::make_tt_run_folder(arguments.output_folder, name);
  const fs::path log = folder / (name + "_profile.log");
  ::setenv("TTMLIR_RUNTIME_LOGGER_LEVEL", "DEBUG", 1);
  ::setenv("TT_RUNTIME_MEMORY_LOG_LEVEL", "operation", 0);
  const int status = run_and_log(command, log);
  print(log.string() + "\n");
  if (status != 0) print_error("tt-mlir", "'" + script.string() + "' ended with exit status " + std::to_string(status));
  if (only_logs) return status;
  bool is_read = false;
  const int own = guarded([&] {
    const int read = analyze(log, false);
    is_read = true;
    return read;
  });
  if (is_read) {
    // Damage has been reported already.
    const int shown = guarded([&] { return visualize(folder); });
    if (own == success) return status != 0 ? status : shown;
  }
  return status != 0 ? status : own;
}

}  // namespace

void add_tt_mlir(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<tt_arguments>();
  CLI::App& command = *program.add_subcommand("tt-mlir", "show the memory of each operation of tt-mlir's runtime, from its log");
  command.require_subcommand(1);
  const auto add_script = [&](CLI::App& to) {
    to.footer(
        "Exit status: that of the script if it is not 0; else 0 on success, and 2 if an argument is invalid, the log cannot be "
        "read completely or an output cannot be written.");
    to.positionals_at_end();
    to.add_option("SCRIPT", arguments->script, "script to run, with its arguments; .py files run with python3")
        ->required()
        ->type_name("FILE [ARGUMENT]...");
    to.add_option("--output-dir", arguments->output_folder, "folder in which to create SCRIPT_DATE_TIME (default: logs)")
        ->type_name("DIR");
  };
  CLI::App& run_command = *command.add_subcommand("run", "run a script, analyze its log and write the page");
  add_script(run_command);
  run_command.callback([arguments, &status] { status = guarded([&] { return run(*arguments, false); }); });
  CLI::App& log_command = *command.add_subcommand("log", "run a script and keep its log");
  add_script(log_command);
  log_command.callback([arguments, &status] { status = guarded([&] { return run(*arguments, true); }); });
  CLI::App& analyze_command = *command.add_subcommand("analyze", "analyze a log and write the results beside it");
  set_footer(analyze_command, "", "", bad_file_text);
  analyze_command.add_option("LOG", arguments->log, "NAME_profile.log")->required();
  analyze_command.add_flag("--json", arguments->as_json, "print JSON: the verdict, the numbers and their caveats");
  analyze_command.callback(
      [arguments, &status] { status = guarded([&] { return analyze(arguments->log, arguments->as_json); }); });
  CLI::App& visualize_command = *command.add_subcommand("visualize", "write the page of a run, NAME_report.html");
  set_footer(visualize_command, "", "", bad_file_text);
  visualize_command.add_option("DIR", arguments->folder, "the folder of a run")->required();
  visualize_command.callback([arguments, &status] { status = guarded([&] { return visualize(arguments->folder); }); });
  command.footer("'memprof tt-mlir SUBCOMMAND --help' lists the options and exit statuses of each.");
}

}  // namespace memprof_tool
