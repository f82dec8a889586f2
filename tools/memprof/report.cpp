#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "growing_trace.hpp"
#include "gzip.hpp"
#include "help_text.hpp"
#include "output_file.hpp"
#include "recording.hpp"
#include "say_written.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/pie/session_reader.hpp>
#include <memprof/toolkit/page/html.hpp>
#include <memprof/toolkit/symbols/named_stacks.hpp>
#include <memprof/trace/trace_file.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <string>

namespace memprof_tool {
namespace {

struct report_arguments {
  std::string file;
  std::string output;
  std::string title;
  bool force = false;
};

/// Removes the folder of the file from a text: the page may be shared with others.
[[nodiscard]] std::string without_folder(std::string text, const std::string& file) {
  const std::size_t at = text.find(file);
  if (at != std::string::npos) text.replace(at, file.size(), std::filesystem::path{file}.filename().string());
  return text;
}

/// Writes the page. Returns why it covers only the beginning of the file; empty if it covers all of it.
[[nodiscard]] std::string write_page(const report_arguments& arguments, const std::filesystem::path& output) {
  const memprof::detail::file_handle file = open_recording(arguments.file);
  memprof::html_options options;
  options.title = arguments.title;
  options.source =
      arguments.file == standard_output ? "standard input" : std::filesystem::path{arguments.file}.filename().string();
  options.gzip = gzip;
  options.calls_of_stack = memprof::calls_by_name();
  if (memprof::is_session(file.get())) {
    growing_trace events;
    const std::string complaint = read_session(file.get(), arguments.file, events);
    const auto note = [&](const memprof::trace_file_status&, bool, memprof::html_options& page) {
      if (!complaint.empty()) page.notes.push_back(without_folder(complaint, arguments.file));
    };
    (void)memprof::write_html_of_trace_file(events.whole(), arguments.file, output, options, note);
    return complaint;
  }
  if (!memprof::is_trace_file(file.get())) {
    const memprof::profile profile = read_profile(file.get(), arguments.file);
    require_something(profile, arguments.file);
    memprof::write_html(profile, output, options);
    return {};
  }
  std::string complaint;
  const auto note = [&](const memprof::trace_file_status& status, bool is_empty, memprof::html_options& page) {
    complaint = complaint_about(status, arguments.file);
    if (!complaint.empty() && is_empty) memprof::detail::raise(complaint);
    if (is_empty) {
      std::rewind(file.get());
      require_something(read_recording(file.get(), arguments.file).profile, arguments.file);
    }
    if (!complaint.empty()) page.notes.push_back(without_folder(complaint, arguments.file));
    print_dropped_note(status, arguments.file);
    if (const std::string dropped = note_of_dropped(status, arguments.file); !dropped.empty())
      page.notes.push_back(without_folder(dropped, arguments.file));
  };
  (void)memprof::write_html_of_trace_file(file.get(), arguments.file, output, options, note);
  return complaint;
}

int run_report(const report_arguments& arguments) {
  std::filesystem::path output = arguments.output.empty() ? arguments.file : arguments.output;
  if (arguments.output.empty() && output != standard_output) output.replace_extension(".html");
  try {
    keep_input(arguments.file, output);
    if (!arguments.force) keep_other_file(output, page_file_kind, "use --force to overwrite it");
    std::string complaint;
    write_named_output(output, [&](const std::filesystem::path& name) { complaint = write_page(arguments, name); });
    if (output != standard_output) say_written(output);
    if (complaint.empty()) return success;
    print_error("report", complaint);
  } catch (const memprof::error& fault) {
    print_error("report", fault.what());
  } catch (const std::bad_alloc&) {
    print_error("report", "'" + arguments.file + "': out of memory while reading it");
  }
  return bad_input;
}

}  // namespace

void add_report(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<report_arguments>();
  CLI::App& command = *program.add_subcommand("report", "write a trace or a profile as an interactive HTML page, in one file");
  set_footer(command, "", "", bad_file_text);
  command
      .add_option("FILE", arguments->file,
                  "a trace, a JSON profile or a session of pie's memory profiler; - is the standard input")
      ->required();
  command
      .add_option("-o,--output", arguments->output,
                  "output file, or - for the standard output (default: FILE with the extension .html)")
      ->type_name("FILE");
  command.add_option("--title", arguments->title, "title of the page (default: the captured program)")->type_name("TEXT");
  command.add_flag("--force", arguments->force, "overwrite a file that is not a memprof page");
  command.callback([arguments, &status] { status = run_report(*arguments); });
}

}  // namespace memprof_tool
