#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "job_files.hpp"
#include "option_values.hpp"
#include "output_file.hpp"
#include "recorded_stacks.hpp"
#include "recording.hpp"
#include "text_output.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/detail/terminal.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/toolkit/analysis/rank_merge.hpp>
#include <memprof/toolkit/analysis/rank_merge_json.hpp>
#include <memprof/toolkit/analysis/rank_merge_text.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tool {
namespace {

struct merge_arguments {
  std::vector<std::string> paths;
  std::string space;
  std::string json;
  std::size_t width = 0;  ///< 0: not given
  bool as_json = false;
  bool as_markdown = false;
  bool shows_all = false;
};

constexpr file_kind merge_kind{"a merge of ranks",
                               [](std::string_view begin) { return begin.find(memprof::merge_json_format) != begin.npos; }};

/// Prints the first complaints, and how many there were: a job has many files.
class complaints {
 public:
  void add(const std::string& what) {
    if (++count_ > most) return;
    print_error("merge", what);
    first_.push_back(what);
  }
  /// Those that were printed.
  [[nodiscard]] const std::vector<std::string>& first() const noexcept { return first_; }
  /// Returns the exit status.
  [[nodiscard]] int finish() const {
    if (count_ > most) print_error("merge", std::to_string(count_ - most) + " more files cannot be read completely");
    return count_ == 0 ? success : bad_input;
  }

 private:
  static constexpr std::int64_t most = 8;
  std::int64_t count_ = 0;
  std::vector<std::string> first_;
};

/// Reads a rank's profile, or, if that is missing, damaged or not complete, its trace. `file.path` becomes the one that was read.
recording read_rank(job_file& file) {
  const auto read = [](const std::string& path) {
    recording content = read_recording(path);
    if (!content.complaint.empty() && content.profile.spaces.empty()) memprof::detail::raise(content.complaint);
    require_something(content.profile, path);
    return content;
  };
  if (file.trace.empty()) return read(file.path);
  try {
    recording content = read(file.path);
    if (content.profile.complete) return content;
  } catch (const memprof::error&) {
    // The trace says more, or why it does not.
  }
  file.path = file.trace;
  return read(file.path);
}

memprof::merged_ranks merge(const merge_arguments& arguments, complaints& said) {
  std::vector<job_file> files = files_of_job(arguments.paths);
  memprof::rank_merge ranks;
  for (std::size_t index = 0; index < files.size(); ++index) {
    job_file& file = files[index];
    if (file.is_leftover) {
      ranks.add_unreadable(file.rank, file.path, "it was ended while it wrote '" + file.path + "'");
      continue;
    }
    recording read;
    try {
      read = read_rank(file);
    } catch (const memprof::error& fault) {
      if (files.size() == 1) throw;
      said.add(fault.what());
      ranks.add_unreadable(file.rank, file.path, "'" + file.path + "' cannot be read");
      continue;
    }
    if (!read.complaint.empty()) said.add(read.complaint);
    ranks.add(read.profile, file.path, index);
  }
  if (ranks.profiles() == 0) memprof::detail::raise("no recording of a rank can be read");
  memprof::merged_ranks merged = ranks.result(arguments.space);
  if (merged.findings.empty()) return merged;
  constexpr std::uint32_t full_segments = 4096;  // of a trace, to find the step in which two ranks depart
  const recorded_stacks usual = read_stacks(files[merged.median_source].path, full_segments);
  for (memprof::rank_finding& finding : merged.findings) {
    const recorded_stacks own = read_stacks(files[finding.run.source].path, full_segments);
    explain(finding, merged, {usual.content.profile, usual.stacks}, {own.content.profile, own.stacks});
    if (finding.difference) continue;
    // A trace of limited size lacks its first events; its profile counts them.
    explain(finding, merged, {usual.content.profile, memprof::stack_table_of(usual.content.profile)},
            {own.content.profile, memprof::stack_table_of(own.content.profile)});
  }
  return merged;
}

int run_merge(const merge_arguments& arguments) {
  const bool is_quiet = is_printed({arguments.json}, arguments.as_json ? "--json" : arguments.as_markdown ? "--markdown" : "");
  if (!arguments.json.empty()) {
    for (const std::string& path : arguments.paths) keep_input(path, arguments.json);
    keep_other_file(arguments.json, merge_kind);
  }
  complaints said;
  const memprof::merged_ranks merged = merge(arguments, said);
  const int status = said.finish();
  const nlohmann::ordered_json document = memprof::with_caveats(memprof::to_json(merged), said.first());
  if (is_quiet) {  // see below
  } else if (arguments.as_json) {
    print_json(memprof::detail::dump(memprof::short_answer(document)) + '\n');
  } else if (arguments.as_markdown) {
    print(memprof::to_markdown(merged));
  } else {
    memprof::text_options options = memprof::detail::fitted_to(stdout, {});
    if (arguments.width != 0) options.columns = arguments.width;
    print(memprof::to_text(merged, options, arguments.shows_all), stdout, text_colors::own);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    memprof::detail::raise("cannot write the merge: " + memprof::detail::reason_in_errno());
  if (!arguments.json.empty()) write_output(arguments.json, memprof::detail::dump(document) + '\n');
  return status;
}

}  // namespace

void add_merge(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<merge_arguments>();
  CLI::App& command = *program.add_subcommand(
      "merge", "say which ranks of a job need more memory than the others, and which operations it is in");
  set_footer(command,
             "Of a folder, the profiles and traces in it are read, not those in folders in it; where a rank left both, its "
             "profile. A rank stands out whose peak differs from the median by more than 5.19 times the median of all "
             "distances from it (3.5 standard deviations), and by more than 1 %.",
             "", bad_file_text);
  command.add_option("PATH", arguments->paths, "the folder into which the ranks of a job wrote, or their recordings")->required();
  command
      .add_option(
          "--space", arguments->space,
          "memory space, or one of its kind: cuda:0 stands for every cuda device (default: the one with the greatest peak)")
      ->type_name("NAME");
  command.add_flag("--all", arguments->shows_all, "list up to 64 ranks, not 20");
  CLI::Option* const markdown =
      command.add_flag("--markdown", arguments->as_markdown, "print the verdict and the ranks as Markdown, for a job's summary");
  command.add_flag("--json", arguments->as_json, "print the merge as JSON")->excludes(markdown);
  command.add_option("--json-out", arguments->json, "also write it to this file, as JSON")->type_name("FILE");
  command.add_option("--width", arguments->width, "width of the text in columns (default: the terminal's, at most 100)")
      ->type_name("N")
      ->check(whole_number(60, 1000));
  command.callback([arguments, &status] { status = run_reported("merge", [&] { return run_merge(*arguments); }); });
}

}  // namespace memprof_tool
