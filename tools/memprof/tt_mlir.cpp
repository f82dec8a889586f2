#include "tt_mlir.hpp"

#include "complain.hpp"
#include "exit_status.hpp"
#include "gzip.hpp"
#include "help_text.hpp"
#include "recording.hpp"
#include "script_run.hpp"
#include "text_output.hpp"
#include "tt_log_reading.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>
#include <memprof/toolkit/analysis/tt_answer_json.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_json_check.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_json.hpp>
#include <memprof/toolkit/page/html.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
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

std::string without_suffix(std::string text, const std::string& suffix) {
  if (text.size() > suffix.size() && text.ends_with(suffix)) text.resize(text.size() - suffix.size());
  return text;
}

/// The name of a folder without its date and time: "decoder" for "decoder_20260122_143957".
std::string name_of_run(const fs::path& folder) {
  std::string name = folder.filename().string();
  for (int part = 0; part < 2; ++part) {
    const std::size_t at = name.rfind('_');
    if (at != std::string::npos && at != 0) name.resize(at);
  }
  return name;
}

/// A new folder "NAME_YYYYmmdd_HHMMSS" in `base`.
fs::path new_run_folder(const fs::path& base, const std::string& name) {
  std::error_code failure;
  fs::create_directories(base, failure);
  constexpr int attempts = 100;
  for (int attempt = 0; attempt < attempts && !failure; ++attempt) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    std::array<char, 32> stamp{};
    const std::size_t size = std::strftime(stamp.data(), stamp.size(), "_%Y%m%d_%H%M%S", &local);
    const fs::path folder = base / (name + std::string{stamp.data(), size});
    if (fs::create_directory(folder, failure)) return folder;
    constexpr unsigned tenth_us = 100'000;
    if (!failure) ::usleep(tenth_us);  // another run began in this second
  }
  memprof::detail::raise("cannot create a folder in '" + base.string() + "': " + failure.message());
}

template <class Write>
void write_output(const fs::path& path, Write&& write) {
  memprof::detail::replace_file(path, [&](std::FILE* file) {
    memprof::file_sink sink{file};
    write(sink);
    return sink.is_good();
  });
}

/// Writes the two files of a rank side by side, in one pass over the log, validates them and returns their number of operations.
std::uint64_t write_pair(std::FILE* log, const std::string& path, const memprof::tt_log_content& content,
                         const memprof::tt_rank_summary& rank, const fs::path& memory, const fs::path& operations) {
  write_output(memory, [&](memprof::file_sink& to_memory) {
    write_output(operations, [&](memprof::file_sink& to_operations) {
      memprof::write_tt_json(log, path, rank, content.inputs, to_memory, to_operations);
    });
  });
  const memprof::detail::file_handle first = open_recording(memory.string());
  const memprof::detail::file_handle second = open_recording(operations.string());
  std::uint64_t count = 0;
  const std::string fault = memprof::validate_tt_json(first.get(), second.get(), count);
  if (!fault.empty() || count != rank.operations) {
    memprof::detail::raise("'" + memory.string() + "' and '" + operations.string() +
                           "' do not match: " + (fault.empty() ? "operations are missing" : fault));
  }
  return count;
}

std::string rank_text(const memprof::tt_rank_summary& rank) {
  std::string text = rank.rank.number.empty() ? "" : "rank " + rank.rank.number + ":\n";
  text += "operations " + std::to_string(rank.operations) + "; left out: " + std::to_string(rank.deallocations) +
          " deallocate, " + std::to_string(rank.get_devices) + " get_device, " + std::to_string(rank.without_state) +
          " without a state\n";
  for (const auto& [name, operations] : rank.const_evals) {
    text += "const-eval " + memprof::detail::on_one_line(name) + ": " + std::to_string(operations) + " operations, " +
            (rank.cache_misses.at(name) ? "cache miss" : "cached") + "\n";
  }
  return text;
}

std::string memories_text(const std::vector<memprof::tt_memory_fact>& memories) {
  std::string text;
  for (const memprof::tt_memory_fact& each : memories) {
    using memprof::detail::decimal;
    const auto megabytes = [](std::int64_t bytes) { return decimal(static_cast<double>(bytes) / 0x1p20, 3) + " MB"; };
    text += memprof::detail::on_one_line(each.space) + ": peak " + megabytes(each.peak_bytes) + " a bank, " +
            megabytes(each.peak_bytes * each.banks) + " in " + std::to_string(each.banks) + " banks, before " +
            memprof::detail::on_one_line(each.peak_before) + " (line " + std::to_string(each.peak_line) + "), fragmentation " +
            decimal(each.peak_fragmentation, 3) + " there; at most " + decimal(each.greatest_fragmentation, 3) + "\n";
  }
  return text;
}

/// Writes all files beside the log except the page.
int analyze(const fs::path& log_path, bool as_json) {
  const std::string path = log_path.string();
  const memprof::detail::file_handle log = open_recording(path);
  const std::string name = without_suffix(log_path.stem().string(), "_profile");
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
  memprof::trace_writer writer{trace, memprof::tt_log_source::info()};
  writer.finish(source.write_to(writer));
  const fs::path trace_path = beside(".memtrace");
  memprof::write_trace(trace, trace_path);

  memprof::tt_log_content content = memprof::content_of_tt_log(log.get(), path);
  for (const memprof::tt_rank_summary& rank : content.ranks) {
    const std::string of_rank = content.ranks.size() == 1 ? "" : "_rank" + rank.rank.number;
    const fs::path memory = beside(of_rank + "_memory.json");
    const fs::path operations = beside(of_rank + "_operations.json");
    const std::uint64_t count = write_pair(log.get(), path, content, rank, memory, operations);
    say(memory.string() + ", " + operations.string() + ": " + std::to_string(count) + " operations, validated\n");
    say(rank_text(rank));
  }
  if (content.ranks.empty()) remark(" has no operation with a state: only the trace is written");
  const fs::path inputs = beside("_inputs_registry.json");
  write_output(inputs, [&](memprof::file_sink& sink) { memprof::write_tt_inputs(content, sink); });
  say(inputs.string() + ": " + std::to_string(content.inputs.size()) + " arguments\n");
  say(trace_path.string() + ": for memprof show, analyze, report\n");
  say(memories_text(source.memories()));
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

/// The path of the log in the folder of a run.
fs::path log_in(const fs::path& folder) {
  std::error_code failure;
  if (!fs::is_directory(folder, failure)) memprof::detail::raise_about_file("read", folder, "it is not the folder of a run");
  const fs::path usual = folder / (name_of_run(folder) + "_profile.log");
  if (fs::exists(usual, failure)) return usual;
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator{folder, failure}) {
    if (entry.path().filename().string().ends_with("_profile.log")) found.push_back(entry.path());
  }
  if (found.size() == 1) return found.front();
  memprof::detail::raise_about_file("read", folder, "there is no '" + usual.filename().string() + "' in it");
}

int visualize(const fs::path& given) {
  std::error_code failure;
  fs::path folder = fs::canonical(given, failure);
  if (failure) memprof::detail::raise_about_file("read", given, failure.message());
  const fs::path log_path = log_in(folder);
  const std::string name = without_suffix(log_path.stem().string(), "_profile");
  const memprof::detail::file_handle log = open_recording(log_path.string());
  memprof::trace trace;
  const tt_reading reading = read_tt_log(log.get(), log_path.string(), trace);
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
  const fs::path folder = new_run_folder(arguments.output_folder, name);
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
