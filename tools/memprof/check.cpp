#include "check_settings.hpp"
#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "output_file.hpp"
#include "recording.hpp"
#include "say_written.hpp"
#include "text_output.hpp"

#include <memprof/detail/byte_size.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/detail/terminal.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/baseline.hpp>
#include <memprof/toolkit/analysis/baseline_json.hpp>
#include <memprof/toolkit/analysis/check.hpp>
#include <memprof/toolkit/analysis/check_forge.hpp>
#include <memprof/toolkit/analysis/check_json.hpp>
#include <memprof/toolkit/analysis/check_text.hpp>
#include <memprof/toolkit/analysis/leaks.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>
#include <memprof/trace/trace_file.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tool {
namespace {

struct check_arguments {
  std::string file;
  std::string peak;
  std::string growth;
  std::vector<std::string> limits;
  std::string space;
  std::string baseline;
  std::string tolerance;
  std::vector<std::string> each;
  bool any_program = false;
  std::string config;
  std::string written_baseline;
  std::string junit;
  std::string json;
  std::string annotations;
  std::string annotations_file;
  std::size_t width = 0;  ///< 0: not given
  bool as_json = false;
  bool as_markdown = false;
  bool shows_all = false;
};

constexpr file_kind baseline_kind{"a baseline",
                                  [](std::string_view begin) { return begin.find(memprof::baseline_json_format) != begin.npos; }};
constexpr file_kind check_kind{"the outcome of a check",
                               [](std::string_view begin) { return begin.find(memprof::check_json_format) != begin.npos; }};
constexpr file_kind junit_kind{"a JUnit report", [](std::string_view begin) { return begin.find("<testsuite") != begin.npos; }};

constexpr file_kind annotations_kind{"annotations of a check", [](std::string_view begin) {
                                       return begin.starts_with("::error ") || begin.starts_with("[]") ||
                                              begin.find("\"check_name\"") != begin.npos;
                                     }};

check_settings settings_of(const check_arguments& arguments) {
  check_settings options;
  if (!arguments.peak.empty()) options.peak = {{.at_most = memprof::parse_byte_size(arguments.peak)}, true};
  if (!arguments.growth.empty()) options.growth = {{.at_most = memprof::parse_byte_size(arguments.growth)}, true};
  for (const std::string& limit : arguments.limits) options.limits.push_back(parse_limit(limit));
  options.space = arguments.space;
  options.baseline = arguments.baseline;
  options.tolerance = arguments.tolerance;
  options.each = arguments.each;
  options.any_program = arguments.any_program;
  return arguments.config.empty() ? options : merged(read_check_settings(arguments.config), options);
}

memprof::check_request request_of(const check_settings& settings) {
  memprof::check_request request;
  request.space = settings.space;
  if (settings.peak.is_given) request.limits.push_back(settings.peak.value);
  request.limits.insert(request.limits.end(), settings.limits.begin(), settings.limits.end());
  if (settings.growth.is_given) request.growth = settings.growth.value;
  if (!settings.tolerance.empty()) request.tolerance = memprof::parse_tolerance(settings.tolerance);
  if (!settings.each.empty()) request.each.clear();
  for (const std::string& name : settings.each) {
    request.each.push_back(name == "space"     ? memprof::check_subject::space
                           : name == "segment" ? memprof::check_subject::segment
                                               : memprof::check_subject::operation);
  }
  request.any_program = settings.any_program;
  if (settings.baseline.empty() && (!settings.tolerance.empty() || !settings.each.empty()))
    memprof::detail::raise("--tolerance and --each need a baseline to compare with: --compare FILE");
  if (request.limits.empty() && !request.growth && settings.baseline.empty()) {
    memprof::detail::raise(
        "there is nothing to check: give --peak-at-most, --grow-at-most, --limit, --compare or a --config with any of them");
  }
  return request;
}

/// A file of `--write-baseline`, or any recording.
memprof::run_baseline read_baseline(const std::string& path, std::vector<std::string>& complaints) {
  const memprof::detail::file_handle file = open_recording(path);
  std::array<char, 1024> begin{};
  const std::size_t got = std::fread(begin.data(), 1, begin.size(), file.get());
  std::rewind(file.get());
  if (baseline_kind.is_kind({begin.data(), got}))
    return memprof::parse_baseline(memprof::detail::read_whole_file(file.get(), path, memprof::detail::max_bytes_by_hand), path);
  const recording read = read_recording(file.get(), path);
  if (!read.complaint.empty() && read.profile.spaces.empty()) memprof::detail::raise(read.complaint);
  require_something(read.profile, path);
  if (!read.complaint.empty()) {
    print_error("check", read.complaint);
    complaints.push_back(read.complaint);
  }
  return memprof::baseline_of(read.profile);
}

/// The recording that is checked.
struct checked_file {
  memprof::detail::file_handle file;
  recording read;
};

checked_file read_checked(const std::string& path, std::vector<std::string>& complaints) {
  checked_file made{open_recording(path), {}};
  made.read = read_recording(made.file.get(), path);
  memprof::profile& profile = made.read.profile;
  if (!made.read.complaint.empty() && profile.spaces.empty()) memprof::detail::raise(made.read.complaint);
  require_something(profile, path);
  if (profile.provenance.file.empty()) profile.provenance.file = path;
  if (!made.read.complaint.empty()) {
    print_error("check", made.read.complaint);
    complaints.push_back(made.read.complaint);
  }
  return made;
}

int write_baseline(const check_arguments& arguments) {
  const bool has_limits = !arguments.peak.empty() || !arguments.growth.empty() || !arguments.limits.empty();
  const bool has_others = !arguments.baseline.empty() || !arguments.config.empty() || !arguments.junit.empty() ||
                          !arguments.json.empty() || !arguments.annotations.empty() || !arguments.annotations_file.empty() ||
                          arguments.as_json || arguments.as_markdown;
  if (has_limits || has_others) memprof::detail::raise("--write-baseline checks nothing: give it alone");
  keep_input(arguments.file, arguments.written_baseline);
  keep_other_file(arguments.written_baseline, baseline_kind);
  std::vector<std::string> complaints;
  const checked_file checked = read_checked(arguments.file, complaints);
  if (!complaints.empty()) return bad_input;
  const memprof::run_baseline made = reduced(memprof::baseline_of(checked.read.profile));
  write_output(arguments.written_baseline, memprof::detail::dump(to_json(made)) + '\n');
  if (!made.exact) print_error("check", "'" + arguments.file + "' is not exact, and neither is the baseline");
  if (arguments.written_baseline != standard_output) say_written(arguments.written_baseline);
  return success;
}

void show_annotations(const check_arguments& arguments, const memprof::check_report& report) {
  const std::string text =
      arguments.annotations == "gitlab" ? memprof::to_gitlab_code_quality(report) : memprof::to_github_annotations(report);
  if (!arguments.annotations_file.empty()) {
    write_output(arguments.annotations_file, text);
  } else {
    print(text, stderr);  // GitHub reads commands from both streams; the other may go into a file
  }
}

void print_report(const check_arguments& arguments, const memprof::check_report& report) {
  if (is_printed({arguments.json, arguments.junit, arguments.annotations_file})) {  // see below
  } else if (arguments.as_json) {
    print_json(memprof::detail::dump(memprof::short_answer(to_json(report))) + '\n');
  } else if (arguments.as_markdown) {
    print(memprof::to_markdown(report));
  } else {
    memprof::text_options options = memprof::detail::fitted_to(stdout, {});
    if (arguments.width != 0) options.columns = arguments.width;
    std::string text = memprof::to_text(report, options, arguments.shows_all);
    // In a log, the first line stays whole.
    const bool has_width = arguments.width != 0 || memprof::detail::terminal_columns(stdout) != 0;
    const std::size_t end = has_width ? text.find('\n') : 0;
    text.replace(0, end, memprof::detail::folded(text.substr(0, end), options.columns));
    print(text, stdout, text_colors::own);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    memprof::detail::raise("cannot write the outcome: " + memprof::detail::reason_in_errno());
  if (!arguments.annotations.empty()) show_annotations(arguments, report);
}

int run_check(const check_arguments& arguments) {
  if (!arguments.written_baseline.empty()) return write_baseline(arguments);
  const check_settings settings = settings_of(arguments);
  memprof::check_request request = request_of(settings);
  for (const std::string& output : {arguments.json, arguments.junit, arguments.annotations_file}) {
    if (output.empty()) continue;
    keep_input(arguments.file, output);
    if (!settings.baseline.empty()) keep_input(settings.baseline, output);
  }
  (void)is_printed({arguments.json, arguments.junit, arguments.annotations_file}, arguments.as_json       ? "--json"
                                                                                  : arguments.as_markdown ? "--markdown"
                                                                                                          : "");
  keep_apart(arguments.json, arguments.junit);
  keep_apart(arguments.json, arguments.annotations_file);
  keep_apart(arguments.junit, arguments.annotations_file);
  if (!arguments.json.empty()) keep_other_file(arguments.json, check_kind);
  if (!arguments.junit.empty()) keep_other_file(arguments.junit, junit_kind);
  if (!arguments.annotations_file.empty()) keep_other_file(arguments.annotations_file, annotations_kind);

  std::vector<std::string> complaints;
  memprof::run_baseline baseline;
  if (!settings.baseline.empty()) {
    baseline = read_baseline(settings.baseline, complaints);
    request.baseline = &baseline;
    request.baseline_file = settings.baseline;
  }
  const checked_file checked = read_checked(arguments.file, complaints);
  std::optional<memprof::leak_report> leaks;
  if (request.growth && checked.read.is_trace)
    leaks = memprof::find_leaks(memprof::trace_file{checked.file.get(), arguments.file}, checked.read.profile);
  memprof::check_report report = check_run(checked.read.profile, request, leaks ? &*leaks : nullptr);
  report.caveats.insert(report.caveats.end(), complaints.begin(), complaints.end());
  print_report(arguments, report);
  if (!arguments.json.empty()) write_output(arguments.json, memprof::detail::dump(to_json(report)) + '\n');
  if (!arguments.junit.empty()) write_output(arguments.junit, to_junit(report));
  if (!complaints.empty()) return bad_input;
  return report.has_passed() ? success : failed;
}

/// Text that `parse` accepts.
template <class Parse>
CLI::Validator accepted_by(Parse parse) {
  return {[parse](const std::string& text) {
            try {
              (void)parse(text);
            } catch (const memprof::error& fault) {
              return std::string{fault.what()};
            }
            return std::string{};
          },
          ""};
}

void add_conditions(CLI::App& command, check_arguments& arguments) {
  command.add_option("--peak-at-most", arguments.peak, "limit of the peak of every memory space, such as 24GiB")
      ->type_name("SIZE")
      ->check(accepted_by(memprof::parse_byte_size));
  command.add_option("--grow-at-most", arguments.growth, "limit of what is live more after every step, such as 0")
      ->type_name("SIZE")
      ->check(accepted_by(memprof::parse_byte_size));
  command
      .add_option("--limit", arguments.limits,
                  "limit of the peak of one space, of the segments of a name, or of an operation, such as "
                  "segment:FORWARD_PASS=8GiB or operation:model/h.*=1GiB; more than once")
      ->type_name("KIND:NAME=SIZE")
      ->allow_extra_args(false)
      ->check(accepted_by(parse_limit));
  command
      .add_option("--compare", arguments.baseline,
                  "the baseline whose peaks must not be exceeded: a file of --write-baseline, a profile or a trace")
      ->type_name("FILE");
  command.add_option("--tolerance", arguments.tolerance, "by how much they may be, such as 1% or 16MiB (default: 0)")
      ->type_name("SHARE|SIZE")
      ->check(accepted_by(memprof::parse_tolerance));
  command.add_option("--each", arguments.each, "compare each space, segment or operation (default: space)")
      ->type_name("KIND,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(one_of("kind", {"space", "segment", "operation"}));
  command.add_flag("--any-program", arguments.any_program, "compare with a baseline even if it seems to be of another program");
  command.add_option("--space", arguments.space, "check only this memory space")->type_name("NAME");
  command.add_option("--config", arguments.config, "read all of these from a TOML file; options take precedence")
      ->type_name("FILE");
}

}  // namespace

void add_check(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<check_arguments>();
  CLI::App& command = *program.add_subcommand("check", "fail if a run exceeds limits or a baseline, and say who brought it over");
  set_footer(command,
             "The first line is the verdict with its cause. A baseline that is committed "
             "shows slow growth, which a comparison with the last run does not.",
             "a condition failed", bad_file_text);
  command.add_option("RUN", arguments->file, "a trace or a JSON profile")->required();
  add_conditions(command, *arguments);
  command
      .add_option("--write-baseline", arguments->written_baseline,
                  "check nothing, but write the run's numbers to this file, to commit it")
      ->type_name("FILE");
  command.add_option("--junit", arguments->junit, "also write a JUnit report to this file")->type_name("FILE");
  CLI::Option* const annotations =
      command.add_option("--annotations", arguments->annotations, "also print what a forge shows beside a diff, to stderr")
          ->type_name("FORGE")
          ->check(one_of("forge", {"github", "gitlab"}));
  command
      .add_option("--annotations-out", arguments->annotations_file,
                  "write them to this file instead, such as gl-code-quality-report.json")
      ->type_name("FILE")
      ->needs(annotations);
  CLI::Option* const markdown =
      command.add_flag("--markdown", arguments->as_markdown, "print the outcome as Markdown, for a summary");
  command.add_flag("--all", arguments->shows_all, "list every condition");
  command.add_flag("--json", arguments->as_json, "print the outcome as JSON")->excludes(markdown);
  command.add_option("--json-out", arguments->json, "also write it to this file, as JSON")->type_name("FILE");
  command.add_option("--width", arguments->width, "width of the text in columns (default: the terminal's, at most 100)")
      ->type_name("N")
      ->check(whole_number(60, 1000));
  command.callback([arguments, &status] { status = run_reported("check", [&] { return run_check(*arguments); }); });
}

}  // namespace memprof_tool
