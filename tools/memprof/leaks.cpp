#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "output_file.hpp"
#include "recording.hpp"
#include "text_output.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/detail/terminal.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/toolkit/analysis/leaks.hpp>
#include <memprof/toolkit/analysis/leaks_json.hpp>
#include <memprof/toolkit/analysis/leaks_text.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>
#include <memprof/trace/trace_file.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace memprof_tool {
namespace {

struct leaks_arguments {
  std::string file;
  std::string json;
  std::int64_t more_steps = 0;  ///< 0: as many as there were
  std::size_t width = 0;        ///< 0: not given
  bool as_json = false;
  bool shows_all = false;
};

constexpr file_kind leaks_kind{"a report of leaks",
                               [](std::string_view begin) { return begin.find(memprof::leaks_json_format) != begin.npos; }};

int run_leaks(const leaks_arguments& arguments) {
  const bool is_quiet = is_printed({arguments.json}, arguments.as_json ? "--json" : "");
  if (!arguments.json.empty()) {
    keep_input(arguments.file, arguments.json);
    keep_other_file(arguments.json, leaks_kind);
  }
  const memprof::detail::file_handle file = open_recording(arguments.file);
  const recording read = read_recording(file.get(), arguments.file);
  if (!read.complaint.empty() && read.profile.spaces.empty()) memprof::detail::raise(read.complaint);
  require_something(read.profile, arguments.file);
  if (!read.is_trace) {
    memprof::detail::raise("'" + arguments.file +
                           "' is a profile, which does not say what was live in each step; give the trace "
                           "of the run (capture_options::trace_file, or MEMPROF_TRACE=1 for a session)");
  }
  const memprof::trace_file trace{file.get(), arguments.file};
  const memprof::leak_report found = memprof::find_leaks(trace, read.profile);
  const nlohmann::ordered_json document =
      memprof::with_caveats(to_json(found), {read.complaint, note_of_dropped(trace.status(), arguments.file)});
  if (is_quiet) {  // see below
  } else if (arguments.as_json) {
    print_json(memprof::detail::dump(memprof::short_answer(document)) + '\n');
  } else {
    memprof::text_options options = memprof::detail::fitted_to(stdout, {});
    if (arguments.width != 0) options.columns = arguments.width;
    const std::int64_t more = arguments.more_steps != 0 ? arguments.more_steps : found.steps;
    print(memprof::to_text(found, more, options, arguments.shows_all), stdout, text_colors::own);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    memprof::detail::raise("cannot write the report: " + memprof::detail::reason_in_errno());
  if (!arguments.json.empty()) write_output(arguments.json, memprof::detail::dump(document) + '\n');
  if (read.complaint.empty()) return success;
  print_error("leaks", read.complaint);
  return bad_input;
}

}  // namespace

void add_leaks(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<leaks_arguments>();
  CLI::App& command = *program.add_subcommand("leaks", "say who grows from step to step, and what has filled up and stopped");
  set_footer(
      command,
      "A step ends where the segments of the most frequent name end; without such a name, the run is divided into parts of "
      "with as many allocations each. Memory that is freed again does not count.",
      "", bad_file_text);
  command.add_option("FILE", arguments->file, "a trace")->required();
  command
      .add_option("--after", arguments->more_steps, "say what will be live so many steps later (default: as many as there were)")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000'000'000));
  command.add_flag("--all", arguments->shows_all, "list every operation that grows or grew");
  command.add_flag("--json", arguments->as_json, "print the report as JSON");
  command.add_option("--json-out", arguments->json, "also write it to this file, as JSON")->type_name("FILE");
  command.add_option("--width", arguments->width, "width of the text in columns (default: the terminal's, at most 100)")
      ->type_name("N")
      ->check(whole_number(60, 1000));
  command.callback([arguments, &status] { status = run_reported("leaks", [&] { return run_leaks(*arguments); }); });
}

}  // namespace memprof_tool
