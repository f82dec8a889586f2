#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "gzip.hpp"
#include "output_file.hpp"
#include "plain_command.hpp"
#include "preloadable.hpp"
#include "process_table.hpp"
#include "recorded_run.hpp"
#include "recording.hpp"
#include "temporary_folder.hpp"
#include "text_output.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/write_json.hpp>
#include <memprof/record/live_pages.hpp>
#include <memprof/report/text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/peak_callers.hpp>
#include <memprof/toolkit/analysis/peak_callers_json.hpp>
#include <memprof/toolkit/analysis/peak_callers_text.hpp>
#include <memprof/toolkit/analysis/summary_json.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/toolkit/page/html.hpp>
#include <memprof/toolkit/symbols/named_stacks.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/trace_file.hpp>

#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

struct run_arguments {
  std::vector<std::string> command;
  std::string trace;
  std::string profile;
  std::string page;
  std::string json;
  run_options recorded;
};

/// Whether the command records itself, as a Python script does (python/memprof/run.py).
[[nodiscard]] bool records_itself() { return std::getenv("RUN_BY_MEMPROF_ITSELF") != nullptr; }

constexpr file_kind summary_kind{"a memprof summary",
                                 [](std::string_view begin) { return begin.find(memprof::summary_json_format) != begin.npos; }};

constexpr int cannot_record = 126;
constexpr int not_found = 127;

int refuse(const std::string& program, const std::string& why, int status) {
  print_error("run", "'" + program + "' cannot be recorded: " + why);
  return status;
}

/// Throws `memprof::error` if an output cannot be written, while nothing is lost by that.
void require_output(const std::string& output, const file_kind& kind) {
  if (output.empty()) return;
  if (output == standard_output) memprof::detail::raise("'-': the standard output is the program's; name a file");
  const std::filesystem::path path = output;
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure))
    memprof::detail::raise_about_file("write", path, "it is a directory; name a file in it");
  if (std::filesystem::exists(path, failure) && !std::filesystem::is_regular_file(path, failure))
    memprof::detail::raise_about_file("write", path, "it is a device or a pipe; name a file");
  keep_other_file(path, kind);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if ((std::filesystem::exists(path, failure) ? ::access(path.c_str(), W_OK) : ::access(folder.c_str(), W_OK | X_OK)) != 0)
    memprof::detail::raise_about_file("write", path, memprof::detail::reason_in_errno());
}

/// Where the trace of a further process goes: "run.memtrace" becomes "run.4711.1.memtrace".
[[nodiscard]] std::filesystem::path name_of_other(const std::filesystem::path& wanted, const process_trace& trace) {
  std::filesystem::path name = wanted;
  name.replace_filename(wanted.stem().string() + "." + std::to_string(trace.process) + "." + std::to_string(trace.number) +
                        wanted.extension().string());
  return name;
}

void copy_trace(const std::filesystem::path& from, const std::filesystem::path& to) {
  keep_other_file(to, trace_file_kind);
  std::error_code failure;
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, failure);
  if (failure) memprof::detail::raise_about_file("write", to, failure.message());
}

void write_page(const std::filesystem::path& trace, const std::string& page, const std::string& program,
                const std::string& title) {
  const memprof::detail::file_handle file = open_recording(trace);
  memprof::html_options options;
  options.source = program;
  options.title = title;
  options.gzip = gzip;
  options.calls_of_stack = memprof::calls_by_name();
  const auto no_note = [](const memprof::trace_file_status&, bool, memprof::html_options&) {};
  (void)memprof::write_html_of_trace_file(file.get(), trace, page, options, no_note);
}

/// A process, or a program of it, that is not the one of the summary.
[[nodiscard]] other_process read_other_process(const process_trace& trace) {
  const memprof::profile profile = read_recording(trace.path).profile;
  const std::string state = trace.still_running ? "still running" : trace.is_replaced ? "replaced by exec" : "";
  return other_process::of(trace.process, state, profile);
}

/// What the user asked to run.
[[nodiscard]] const std::string& name_of(const std::vector<std::string>& command) {
  auto name = std::find(command.begin(), command.end(), script_runner);
  if (name == command.end()) return command.front();
  ++name;
  if (name != command.end() && *name == "-m") ++name;
  return name == command.end() ? command.front() : *name;
}

/// Adds what the trace should say but does not.
void add_missing(memprof::profile& profile, const std::vector<memprof::missing_source>& missing) {
  if (missing.empty()) return;
  memprof::fact_table more = memprof::extend::to_table(missing);
  const auto known = std::find_if(profile.facts.begin(), profile.facts.end(),
                                  [&](const memprof::fact_table& table) { return table.name == more.name; });
  if (known == profile.facts.end()) {
    profile.facts.push_back(std::move(more));
  } else {
    std::move(more.rows.begin(), more.rows.end(), std::back_inserter(known->rows));
  }
}

/// Says why a file could not be written, so that the others still are.
template <class Write>
void try_output(const std::string& output, Write&& write) {
  if (output.empty()) return;
  try {
    write();
  } catch (const memprof::error& fault) {
    print_error("run", fault.what());
  }
}

void write_outputs(const run_arguments& arguments, const std::vector<process_trace>& traces, const process_trace& last,
                   const memprof::profile& profile, const std::optional<memprof::peak_callers>& callers) {
  for (const process_trace& trace : traces) {
    try_output(arguments.trace, [&] {
      copy_trace(trace.path, &trace == &last ? std::filesystem::path{arguments.trace} : name_of_other(arguments.trace, trace));
    });
  }
  try_output(arguments.profile, [&] {
    keep_other_file(arguments.profile, profile_file_kind);  // such as the trace
    memprof::write_json(profile, arguments.profile);
  });
  try_output(arguments.page, [&] {
    keep_other_file(arguments.page, page_file_kind);
    write_page(last.path, arguments.page, name_of(arguments.command), profile.process.command_line);
  });
  try_output(arguments.json, [&] {
    keep_other_file(arguments.json, summary_kind);
    nlohmann::ordered_json answer = memprof::summary_json(profile);
    if (callers && callers->has_rows()) answer["callers"] = memprof::to_json(*callers);
    memprof::detail::replace_whole_file(arguments.json, memprof::detail::dump(answer) + '\n');
  });
}

/// Says and writes what was asked for. Throws `memprof::error` if nothing was recorded.
void report(const run_arguments& arguments, const std::vector<process_trace>& traces, const program_end& end) {
  const process_trace* last = nullptr;
  for (const process_trace& trace : traces) {
    if (trace.process == end.process) last = &trace;
  }
  if (last == nullptr) memprof::detail::raise("nothing was recorded: the program did not begin to record, or ended at once");
  memprof::profile profile = read_recording(last->path).profile;
  add_missing(profile, last->missing);
  const memprof::text_options options = memprof::detail::fitted_to(stderr, memprof::text_options{});
  std::string text;
  std::optional<memprof::peak_callers> callers;
  if (profile.spaces.empty() && !records_itself()) {
    text = "memprof run: no allocation of '" + name_of(arguments.command) + "' was recorded" + not_captured_text(profile) + "\n";
  } else {
    const memprof::detail::file_handle file = open_recording(last->path);
    callers = memprof::add_peak_callers(profile, memprof::trace_file{file.get(), last->path});
    text = memprof::to_text(profile, options) + (callers ? memprof::to_text(*callers, options) : "");
  }
  std::vector<other_process> others;
  for (const process_trace& trace : traces) {
    if (&trace != last) others.push_back(read_other_process(trace));
  }
  text += process_table(std::move(others), options);
  std::fflush(stdout);
  print(text, stderr, text_colors::own);
  write_outputs(arguments, traces, *last, profile, callers);
}

/// Why the library cannot be preloaded into the program; empty if it can.
[[nodiscard]] std::string obstacle_to_record(const std::filesystem::path& program, const std::filesystem::path& library) {
  if (std::string why = obstacle_to_preload(program); !why.empty()) return why;
  if (library.empty()) {
    const auto [beside, installed] = preload_library_places();
    return "the library that belongs to this memprof is neither '" + beside.string() + "' nor '" + installed.string() +
           "'; build the target memprof_preload, or install memprof anew";
  }
  if (library.string().find_first_of(": ") == std::string::npos) return {};
  return "LD_PRELOAD cannot name '" + library.string() + "', which has a colon or a space";
}

/// That a variable already names a library which `has` something; empty if it does not.
[[nodiscard]] std::string other_injection(const std::string& variable, const std::string& has) {
  const char* const other = std::getenv(variable.c_str());
  if (other == nullptr || *other == '\0') return {};
  return variable + " is set to '" + other + "', which has " + has;
}

/// Why CUDA's driver, or NVTX, cannot be made to load the library; empty if they can, or need not.
[[nodiscard]] std::string obstacle_to_injection(const run_options& options) {
  if (options.records_cuda && records_itself())
    return "--cuda is for programs; the Python package records a script's tensors, those on CUDA, too";
  if (options.records_nvtx && records_itself())
    return "--nvtx is for programs; the Python package records a script's modules and record_function scopes";
  if (options.records_cuda) {
    std::string why = other_injection("CUDA_INJECTION64_PATH", "CUPTI's callbacks; unset it, or leave out --cuda");
    if (!why.empty()) return why;
  }
  return options.records_nvtx ? other_injection("NVTX_INJECTION64_PATH", "NVTX's ranges; unset it, or leave out --nvtx") : "";
}

/// Throws `memprof::error` if no process can begin a trace in that folder.
void require_room(const std::filesystem::path& folder) {
  constexpr std::uintmax_t least =
      std::size_t{memprof::detail::live_layout::buffers} * memprof::detail::live_layout::buffer_bytes +
      memprof::detail::live_layout::spare_bytes;
  std::error_code failure;
  const std::uintmax_t left = std::filesystem::space(folder, failure).available;
  if (failure || left >= least) return;
  memprof::detail::raise("cannot record: '" + folder.parent_path().string() + "' has " +
                         memprof::detail::short_bytes(static_cast<double>(left)) + " left, and a trace takes " +
                         memprof::detail::short_bytes(static_cast<double>(least)) +
                         " at least; set TMPDIR to a folder with more");
}

int run(const run_arguments& arguments) {
  const std::string& name = arguments.command.front();
  const std::filesystem::path program = find_program(name);
  if (program.empty()) {
    const bool is_script = name.ends_with(".py") && std::filesystem::exists(name);
    if (is_script) return refuse(name, "it is a script: memprof run -- python3 " + name, not_found);
    const bool is_here = name.find('/') == name.npos && std::filesystem::is_regular_file(name);
    return refuse(name, is_here ? "it is not in PATH; the file in this folder is ./" + name : "there is no such program",
                  not_found);
  }
  std::filesystem::path library;
  if (!records_itself()) {
    if (arguments.recorded.records_uses || arguments.recorded.infers_operations)
      return refuse(name, "--uses and --infer-operations are for Python scripts, run by the Python package", cannot_record);
    library = preload_library();
    if (const std::string why = obstacle_to_record(program, library); !why.empty()) return refuse(name, why, cannot_record);
  }
  if (arguments.recorded.records_mappings && records_itself())
    return refuse(name, "--mmap is for programs; the Python package records a script's tensors", cannot_record);
  if (const std::string why = obstacle_to_injection(arguments.recorded); !why.empty()) return refuse(name, why, cannot_record);
  try {
    require_output(arguments.trace, trace_file_kind);
    require_output(arguments.profile, profile_file_kind);
    require_output(arguments.page, page_file_kind);
    require_output(arguments.json, summary_kind);
  } catch (const memprof::error& fault) {
    print_error("run", fault.what());
    return bad_input;
  }
  program_end end;
  try {
    const temporary_folder folder;
    require_room(folder.path());
    end = run_recorded(program, arguments.command, library, folder.path(), arguments.recorded);
    std::signal(SIGPIPE, SIG_IGN);  // a reader who has seen enough shall not leave the folder behind
    report(arguments, traces_in(folder.path(), end, !records_itself() && !arguments.recorded.records_mappings), end);
  } catch (const std::exception& fault) {
    print_error("run", fault.what());
    if (end.process == 0) return cannot_record;
  }
  return end_like(end);
}

}  // namespace

void add_run(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<run_arguments>();
  CLI::App& command = *program.add_subcommand("run", "record a program as it is: every malloc, without building it anew");
  command.footer(
      "The summary goes to the standard error. What ends the program, a status or a signal, ends this one, too.\n\n"
      "Exit status: the program's own; 126 if it cannot be recorded; 127 if it is not there; 2, before it has begun, if an "
      "argument is invalid or a file cannot be written.");
  command.add_option("--trace", arguments->trace, "keep the trace, with every event")->type_name("FILE");
  command.add_option("--profile", arguments->profile, "write the profile as JSON")->type_name("FILE");
  command.add_option("--page", arguments->page, "write an interactive HTML page")->type_name("FILE");
  command.add_option("--json", arguments->json, "write the summary as JSON: what memprof show --json prints")->type_name("FILE");
  command.add_flag("--infer-operations", arguments->recorded.infers_operations,
                   "of a Python script: threads without an operation work for the one that is open on the main thread, a guess");
  command.add_flag("--uses", arguments->recorded.records_uses,
                   "of a Python script: record when libtorch's operators use each block, for memprof what-if");
  command.add_flag("--stacks{sampled}", arguments->recorded.stacks,
                   "record what code asked for the blocks from 64 KiB on and for a sample of the others; --stacks=all: for each");
  command.add_flag("--children", arguments->recorded.records_children,
                   "record the processes that it starts as well; their traces have the process in their names");
  command.add_flag("--cuda", arguments->recorded.records_cuda,
                   "record what the program takes from CUDA as well, by CUPTI's callbacks");
  command.add_flag("--nvtx", arguments->recorded.records_nvtx, "count the program's NVTX ranges as operations");
  command.add_flag("--mmap", arguments->recorded.records_mappings,
                   "record the anonymous memory that the program maps by itself, in a memory space mmap");
  command.add_option("COMMAND", arguments->command, "the program and its arguments, after --")->required();
  command.callback([arguments, &status] {
    const std::string& stacks = arguments->recorded.stacks;
    if (!stacks.empty() && stacks != "sampled" && stacks != "all")
      throw CLI::ValidationError{"--stacks", "'" + stacks + "' is not a value; expected sampled or all"};
    status = run(*arguments);
  });
}

}  // namespace memprof_tool
