#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "gzip.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "output_file.hpp"
#include "recorded_stacks.hpp"
#include "text_output.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/detail/terminal.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/baseline.hpp>
#include <memprof/toolkit/analysis/comparison.hpp>
#include <memprof/toolkit/analysis/comparison_json.hpp>
#include <memprof/toolkit/analysis/comparison_text.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/toolkit/page/comparison_html.hpp>
#include <memprof/toolkit/page/html.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

struct compare_arguments {
  std::vector<std::string> files;
  std::vector<std::string> before;
  std::vector<std::string> after;
  std::string space;
  std::string segment;
  std::string json;
  std::string html;
  std::size_t width = 0;  ///< 0: not given
  bool is_at_end = false;
  bool as_json = false;
  bool as_markdown = false;
  bool shows_all = false;
  bool any_program = false;
};

constexpr file_kind comparison_kind{
    "a comparison", [](std::string_view begin) { return begin.find(memprof::comparison_json_format) != begin.npos; }};

/// "BEFORE AFTER", or the files of both options.
void find_sides(compare_arguments& arguments) {
  const bool has_options = !arguments.before.empty() || !arguments.after.empty();
  if (has_options ? !arguments.files.empty() || arguments.before.empty() || arguments.after.empty()
                  : arguments.files.size() != 2) {
    memprof::detail::raise("expected two recordings, BEFORE AFTER, or several of each: --before FILE... --after FILE...");
  }
  if (has_options) return;
  arguments.before = {arguments.files[0]};
  arguments.after = {arguments.files[1]};
}

std::string space_names(const memprof::profile& profile) {
  std::string names;
  for (const memprof::space_profile& each : profile.spaces)
    names += (names.empty() ? "'" : ", '") + memprof::detail::on_one_line(each.name) + "'";
  return names;
}

/// A recording that is read.
struct compared_file {
  const std::string& path;
  recorded_stacks read;
};

std::string quoted_path(const compared_file& of) { return "'" + of.path + "'"; }

constexpr std::string_view waterfall_advice = "; memprof waterfall puts recordings side by side whatever they have in common";

/// Raises an error, which says what is possible, if the recordings have no memory space that the comparison could be of.
[[noreturn]] void raise_without_space(const compared_file& lacks, const compared_file& first, const std::string& space,
                                      bool is_asked) {
  const std::string missing = quoted_path(lacks) + " has no memory space '" + memprof::detail::on_one_line(space) + "'";
  if (is_asked) memprof::detail::raise(missing + "; it has " + space_names(lacks.read.content.profile));
  for (const memprof::space_profile& each : lacks.read.content.profile.spaces) {
    if (first.read.content.profile.find_space(each.name) == nullptr) continue;
    memprof::detail::raise(missing + ", the one with the greatest peak in " + quoted_path(first) +
                           "; both have another: --space " + memprof::detail::on_one_line(each.name));
  }
  memprof::detail::raise("the recordings have no memory space in common: " + quoted_path(first) + " has " +
                         space_names(first.read.content.profile) + ", and " + quoted_path(lacks) + " has " +
                         space_names(lacks.read.content.profile) + std::string{waterfall_advice});
}

/// Raises an error if a recording cannot be compared with the first.
void require_comparable(const compared_file& first, const compared_file& other, const compare_arguments& arguments) {
  const memprof::profile& own = first.read.content.profile;
  const memprof::profile& others = other.read.content.profile;
  const memprof::run_baseline first_numbers = memprof::baseline_of(own);
  const memprof::run_baseline other_numbers = memprof::baseline_of(others);
  if (!arguments.any_program && seem_different_programs(first_numbers, other_numbers)) {
    memprof::detail::raise("the recordings seem to be of different programs: " + quoted_path(first) + " and " +
                           quoted_path(other) + " " + why_different(first_numbers, other_numbers) +
                           "; --any-program compares them all the same");
  }
  if (own.device != others.device && !own.device.empty() && !others.device.empty() && arguments.space.empty()) {
    memprof::detail::raise("the recordings are of different devices: " + quoted_path(first) + " of '" +
                           memprof::detail::on_one_line(own.device) + "', and " + quoted_path(other) + " of '" +
                           memprof::detail::on_one_line(others.device) + "'; --space NAME compares one memory space of both");
  }
}

compared_file read_file(const std::string& path, std::vector<std::string>& complaints) {
  compared_file made{path, read_stacks(path)};
  if (const std::string& complaint = made.read.content.complaint; !complaint.empty()) {
    print_error("compare", complaint);
    complaints.push_back(complaint);
  }
  return made;
}

memprof::compared_run run_of(const compare_arguments& arguments, const compared_file& file, const char* title,
                             const std::string& space) {
  const memprof::profile& profile = file.read.content.profile;
  const memprof::space_profile& of = profile.space(space);
  if (!arguments.segment.empty()) return memprof::compared_run_of(title, profile, of, file.read.stacks, arguments.segment);
  const auto moment = arguments.is_at_end ? memprof::compared_moment::end : memprof::compared_moment::peak;
  try {
    return memprof::compared_run_of(title, profile, of, file.read.stacks, moment);
  } catch (const memprof::error&) {
    if (!file.read.content.is_trace) throw;
    // A trace of limited size lacks its first events; its profile counts them, but not the sizes of blocks.
    return memprof::compared_run_of(title, profile, of, memprof::stack_table_of(profile), moment);
  }
}

memprof::comparison comparison_of(const compare_arguments& arguments, std::vector<std::string>& complaints) {
  const compared_file first = read_file(arguments.before.front(), complaints);
  const bool is_asked = !arguments.space.empty();
  if (is_asked && first.read.content.profile.find_space(arguments.space) == nullptr)
    raise_without_space(first, first, arguments.space, is_asked);
  const std::string space = space_of(first.read.content.profile, arguments.space).name;
  std::vector<memprof::compared_run> before{run_of(arguments, first, "before", space)};
  std::vector<memprof::compared_run> after;
  const auto add = [&](std::vector<memprof::compared_run>& to, const std::string& path, const char* title) {
    const compared_file other = read_file(path, complaints);
    if (other.read.content.profile.find_space(space) == nullptr) raise_without_space(other, first, space, is_asked);
    require_comparable(first, other, arguments);
    to.push_back(run_of(arguments, other, title, space));
  };
  for (std::size_t index = 1; index < arguments.before.size(); ++index) add(before, arguments.before[index], "before");
  for (const std::string& path : arguments.after) add(after, path, "after");
  return memprof::compare_runs(std::move(before), std::move(after));
}

/// Raises an error if an output would overwrite an input, or another file than one that this subcommand writes.
void check_outputs(const compare_arguments& arguments) {
  for (const std::string* const output : {&arguments.json, &arguments.html}) {
    if (output->empty()) continue;
    for (const std::vector<std::string>* const side : {&arguments.before, &arguments.after}) {
      for (const std::string& input : *side) keep_input(input, *output);
    }
  }
  keep_apart(arguments.json, arguments.html);
  if (!arguments.json.empty()) keep_other_file(arguments.json, comparison_kind);
  if (!arguments.html.empty()) keep_other_file(arguments.html, page_file_kind);
}

int run_compare(compare_arguments& arguments) {
  const bool is_quiet = is_printed({arguments.json, arguments.html}, arguments.as_json       ? "--json"
                                                                     : arguments.as_markdown ? "--markdown"
                                                                                             : "");
  std::vector<std::string> complaints;
  find_sides(arguments);
  check_outputs(arguments);
  const memprof::comparison of = comparison_of(arguments, complaints);
  const nlohmann::ordered_json document = memprof::with_caveats(to_json(of), complaints);
  if (is_quiet) {  // see below
  } else if (arguments.as_json) {
    print_json(memprof::detail::dump(memprof::short_answer(document)) + '\n');
  } else if (arguments.as_markdown) {
    print(memprof::to_markdown(of));
  } else {
    memprof::text_options options = memprof::detail::fitted_to(stdout, {});
    if (arguments.width != 0) options.columns = arguments.width;
    print(memprof::to_text(of, options, arguments.shows_all), stdout, text_colors::own);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    memprof::detail::raise("cannot write the comparison: " + memprof::detail::reason_in_errno());
  if (!arguments.json.empty()) write_output(arguments.json, memprof::detail::dump(document) + '\n');
  if (!arguments.html.empty()) {
    write_named_output(arguments.html, [&](const std::filesystem::path& name) {
      memprof::write_html(of, name, {.title = {}, .source = {}, .notes = {}, .gzip = gzip});
    });
  }
  return complaints.empty() ? success : bad_input;
}

}  // namespace

void add_compare(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<compare_arguments>();
  CLI::App& command =
      *program.add_subcommand("compare", "say by how much the peak of two runs differs, and which operations it comes from");
  set_footer(command,
             "Recordings are traces or JSON profiles, in any mixture. With several on a side, the runs with the median peak are "
             "compared, and whether the difference is more than noise is said. 'memprof waterfall' also compares estimates.",
             "", bad_file_text);
  command.add_option("FILE", arguments->files, "the recording from before, and the one from after");
  command.add_option("--before", arguments->before, "several recordings from before")->type_name("FILE");
  command.add_option("--after", arguments->after, "several recordings from after")->type_name("FILE");
  CLI::Option* const end = command.add_flag("--end", arguments->is_at_end, "compare what is live at the end, not at the peak");
  command.add_option("--segment", arguments->segment, "compare the greatest peaks in the segments of this name")
      ->type_name("NAME")
      ->excludes(end);
  command.add_option("--space", arguments->space, "memory space (default: the one with the greatest peak before)")
      ->type_name("NAME");
  command.add_flag("--any-program", arguments->any_program, "compare recordings even if they seem to be of different programs");
  command.add_flag("--all", arguments->shows_all, "also show what does not differ");
  CLI::Option* const markdown =
      command.add_flag("--markdown", arguments->as_markdown, "print the comparison as Markdown, for a pull request");
  command.add_flag("--json", arguments->as_json, "print the comparison as JSON")->excludes(markdown);
  command.add_option("--json-out", arguments->json, "also write it to this file, as JSON")->type_name("FILE");
  command.add_option("--html", arguments->html, "also write a page with both runs on one axis to this file")->type_name("FILE");
  command.add_option("--width", arguments->width, "width of the text in columns (default: the terminal's, at most 100)")
      ->type_name("N")
      ->check(whole_number(60, 1000));
  command.callback([arguments, &status] { status = run_reported("compare", [&] { return run_compare(*arguments); }); });
}

}  // namespace memprof_tool
