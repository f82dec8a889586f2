#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "recording.hpp"
#include "text_output.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/terminal.hpp>
#include <memprof/ledger/segment_history.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/report/text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/peak_callers.hpp>
#include <memprof/toolkit/analysis/peak_callers_json.hpp>
#include <memprof/toolkit/analysis/peak_callers_text.hpp>
#include <memprof/toolkit/analysis/reserved_causes.hpp>
#include <memprof/toolkit/analysis/reserved_causes_json.hpp>
#include <memprof/toolkit/analysis/reserved_causes_text.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>
#include <memprof/toolkit/analysis/summary_json.hpp>
#include <memprof/toolkit/format/tables/csv.hpp>
#include <memprof/toolkit/format/tables/fact_text.hpp>
#include <memprof/toolkit/format/tables/markdown.hpp>
#include <memprof/toolkit/format/trace_source.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

struct show_arguments {
  std::string file;
  std::string space;
  std::string format = "summary";
  std::string csv;  ///< the name of the table
  bool as_csv = false;
  bool as_markdown = false;
  bool as_json = false;
  std::string facts;  ///< the name of the table; empty: all
  bool shows_facts = false;
  std::size_t top = 0;  ///< 0: not given
  std::string color = "auto";
  std::size_t width = 0;  ///< 0: not given
  memprof::text_options options;
};

/// The text options, adapted to the terminal.
memprof::text_options options_of(const show_arguments& arguments) {
  memprof::text_options options = arguments.options;
  options.primary_space = arguments.space;
  if (arguments.format == "tracker") options.format = memprof::text_format::tracker;
  if (arguments.top != 0) options.owners = arguments.top;
  if (arguments.width != 0) {
    options.columns = arguments.width;
    options.is_colored = memprof::detail::shows_colors(stdout);
  } else {
    options = memprof::detail::fitted_to(stdout, options);
  }
  if (arguments.color != "auto") options.is_colored = arguments.color == "always";
  return options;
}

const memprof::fact_table& find_facts(const memprof::profile& profile, const show_arguments& arguments) {
  std::string names;
  for (const memprof::fact_table& table : profile.facts) {
    if (table.name == arguments.facts) return table;
    names += (names.empty() ? " '" : ", '") + memprof::detail::on_one_line(table.name) + "'";
  }
  memprof::detail::raise("'" + arguments.file + "' has no table of facts '" + arguments.facts + "'; it has" +
                         (names.empty() ? " none" : names));
}

std::string facts_text(const memprof::profile& profile, const show_arguments& arguments) {
  const memprof::text_options options = options_of(arguments);
  if (arguments.as_csv) {
    if (arguments.facts.empty()) memprof::detail::raise("--csv prints one table of facts; choose it with --facts NAME");
    return memprof::fact_csv(find_facts(profile, arguments));
  }
  constexpr std::size_t most = 10;
  if (!arguments.facts.empty()) {
    const memprof::fact_table& table = find_facts(profile, arguments);
    return memprof::to_text(table, arguments.top != 0 ? arguments.top : table.rows.size(), options);
  }
  if (profile.facts.empty()) return "No facts were recorded.\n";
  std::string text;
  for (const memprof::fact_table& table : profile.facts) {
    text += (text.empty() ? "" : "\n") + memprof::to_text(table, arguments.top != 0 ? arguments.top : most, options);
  }
  return text;
}

std::string text_of(const memprof::profile& profile, const show_arguments& arguments) {
  if (arguments.shows_facts) return facts_text(profile, arguments);
  if (!arguments.as_csv) {
    const memprof::text_options options = options_of(arguments);
    return arguments.as_markdown ? memprof::to_markdown(profile, options) : memprof::to_text(profile, options);
  }
  if (arguments.csv == "owners") return memprof::owners_csv(profile);
  return arguments.options.all_segments ? memprof::every_segment_csv(profile) : memprof::segments_csv(profile);
}

/// That a recording keeps fewer blocks than were asked for, as a sentence without a full stop; empty: it does not.
std::string note_of_blocks(const memprof::profile& profile, std::size_t asked) {
  for (const memprof::space_profile& space : profile.spaces) {
    const memprof::live_set& peak = space.live_at_peak;
    const std::size_t kept = peak.largest_blocks.size();
    if (asked <= kept || peak.blocks <= static_cast<std::int64_t>(kept)) continue;
    return "of the " + memprof::detail::grouped(peak.blocks) + " blocks at the peak the recording names the largest " +
           std::to_string(kept) + "; capture_options::largest_blocks keeps more";
  }
  return {};
}

bool is_summary(const show_arguments& arguments) {
  return !arguments.shows_facts && !arguments.as_csv && !arguments.as_json && arguments.format == "summary";
}

/// Whether the text ends with who asked for what.
bool has_callers(const show_arguments& arguments) { return is_summary(arguments) && !arguments.as_markdown; }

int run_show(const show_arguments& arguments) {
  try {
    // A table of every segment needs all segments of a trace, as far as memory reaches.
    constexpr std::uint32_t all_segments = memprof::detail::segment_history::max_kept;
    const bool wants_all = arguments.options.all_segments || arguments.format == "tracker";
    const memprof::detail::file_handle file = open_recording(arguments.file);
    recording read = read_recording(file.get(), arguments.file, wants_all ? all_segments : 0);
    if (!arguments.shows_facts && (read.complaint.empty() || read.profile.spaces.empty())) {
      if (!read.complaint.empty()) memprof::detail::raise(read.complaint);
      require_something(read.profile, arguments.file);
    }
    std::optional<memprof::peak_callers> callers;
    if (read.is_trace) callers = memprof::add_peak_callers(read.profile, memprof::trace_file{file.get(), arguments.file});
    std::vector<memprof::reserved_causes> causes;
    if (read.is_trace && (arguments.as_json || has_callers(arguments)))
      causes = memprof::all_reserved_causes_in(memprof::trace_file{file.get(), arguments.file}, read.profile);
    if (arguments.as_json) {
      memprof::profile named = read.profile;
      if (named.provenance.file.empty()) named.provenance.file = arguments.file;
      nlohmann::ordered_json answer = memprof::with_caveats(memprof::summary_json(named), {read.complaint});
      if (!causes.empty()) answer["reserved_causes"] = memprof::to_json(causes);
      if (callers && callers->has_rows()) answer["callers"] = memprof::to_json(*callers);
      print_json(memprof::detail::dump(memprof::short_answer(answer)) + '\n');
    } else {
      std::string text = text_of(read.profile, arguments);
      if (has_callers(arguments)) {
        for (const memprof::reserved_causes& each : causes) text += '\n' + memprof::to_text(each, options_of(arguments));
        if (callers) text += memprof::to_text(*callers, options_of(arguments));
      }
      print(text, stdout, arguments.as_csv ? text_colors::none : text_colors::own);
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      print_error("show", "cannot write to the standard output");
      return failed;
    }
    const std::string note = is_summary(arguments) ? note_of_blocks(read.profile, arguments.options.largest_blocks) : "";
    if (!note.empty()) print_error("show", note);
    if (read.complaint.empty()) return success;
    print_error("show", read.complaint);
  } catch (const memprof::error& fault) {
    print_error("show", fault.what());
  } catch (const std::bad_alloc&) {
    print_error("show", "'" + arguments.file + "': out of memory while reading it");
  }
  return bad_input;
}

/// In "--facts FILE", without the name of a table, the parser takes the file for the name.
void find_file(show_arguments& arguments) {
  if (!arguments.file.empty()) return;
  for (std::string* const value : {&arguments.facts, &arguments.csv}) {
    if (value->empty() || *value == "segments" || *value == "owners") continue;
    arguments.file = std::exchange(*value, {});
    return;
  }
}

}  // namespace

void add_show(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<show_arguments>();
  CLI::App& command = *program.add_subcommand("show", "summarise a trace or a profile: peak, owners, fit, growth, segments");
  set_footer(command,
             "A summary has at most 40 lines of 100 columns, and is never wider than the terminal. --segments, --top, --blocks, "
             "--streams, --cores, --checkpoints, --spaces and --faults show more. NO_COLOR in the environment turns colours off.",
             "the output cannot be written", bad_input_text);
  command.add_option("FILE", arguments->file, "a trace or a JSON profile");
  memprof::text_options& options = arguments->options;
  command.add_flag("--segments", options.all_segments, "show every segment on its own line, in order of time");
  command
      .add_option("--top", arguments->top,
                  "number of operations at the peak and at the end (default: 5), or of rows with --facts")
      ->type_name("N")
      ->check(whole_number(1));
  command.add_option("--blocks", options.largest_blocks, "number of largest blocks to show at the peak")
      ->type_name("N")
      ->check(whole_number(0));
  command.add_option("--streams", options.streams, "number of streams and pools of a device to show")
      ->type_name("N")
      ->check(whole_number(0));
  command.add_option("--cores", options.core_ranges, "number of rectangles of cores to show")
      ->type_name("N")
      ->check(whole_number(0));
  command
      .add_option("--checkpoints", options.checkpoints,
                  "number of checkpoints to show (default: 4); --blocks sets the number of blocks of each")
      ->type_name("N")
      ->check(whole_number(0));
  command.add_flag("--spaces", options.all_spaces, "show the full summary of every memory space");
  command.add_flag("--faults", options.all_faults, "show every kind of anomaly in the numbers");
  command.add_option("--space", arguments->space, "memory space to show first, and as DRAM in the tracker's format")
      ->type_name("NAME");
  CLI::Option* const facts =
      command
          .add_option("--facts", arguments->facts,
                      "show the tables of facts, what sources know besides memory over time, or all rows of one")
          ->type_name("[NAME]")
          ->expected(0, 1);
  CLI::Option* const format =
      command.add_option("--format", arguments->format, "summary, or tracker for the format of tt-train's memory tracker")
          ->type_name("NAME")
          ->check(one_of("format", {"summary", "tracker"}));
  CLI::Option* const markdown = command.add_flag("--markdown", arguments->as_markdown, "print the summary as Markdown");
  CLI::Option* const csv =
      command
          .add_option("--csv", arguments->csv, "print a table as CSV: segments (default), owners, or the one named by --facts")
          ->type_name("[TABLE]")
          ->expected(0, 1);
  csv->excludes(markdown)->excludes(format);
  markdown->excludes(format);
  facts->excludes(markdown)->excludes(format);
  command.add_flag("--json", arguments->as_json, "print the summary as JSON: the verdict, the numbers and their caveats")
      ->excludes(csv)
      ->excludes(markdown)
      ->excludes(format)
      ->excludes(facts);
  command.add_option("--width", arguments->width, "width of the text in columns (default: the terminal's, at most 100)")
      ->type_name("N")
      ->check(whole_number(60, 1000));
  command.add_option("--color", arguments->color, "when to use colours: auto, always or never (default: auto)")
      ->type_name("WHEN")
      ->check(one_of("value", {"auto", "always", "never"}));
  command.callback([arguments, facts, csv, &status] {
    arguments->shows_facts = facts->count() > 0;
    arguments->as_csv = csv->count() > 0;
    find_file(*arguments);
    if (arguments->file.empty()) throw CLI::RequiredError{"FILE"};
    if (!arguments->csv.empty() && arguments->csv != "segments" && arguments->csv != "owners") {
      throw CLI::ValidationError{"--csv", "'" + arguments->csv + "' is not a table; expected segments or owners"};
    }
    status = run_show(*arguments);
  });
}

}  // namespace memprof_tool
