#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "gzip.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "output_file.hpp"
#include "progress.hpp"
#include "recorded_stacks.hpp"
#include "text_output.hpp"
#include "train_step.hpp"
#include "training_options.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/detail/terminal.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>
#include <memprof/toolkit/analysis/waterfall.hpp>
#include <memprof/toolkit/analysis/waterfall/column_titles.hpp>
#include <memprof/toolkit/analysis/waterfall_json.hpp>
#include <memprof/toolkit/analysis/waterfall_text.hpp>
#include <memprof/toolkit/estimate/estimate.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/toolkit/page/html.hpp>
#include <memprof/toolkit/page/waterfall_html.hpp>
#include <memprof/trace/run_mode.hpp>
#include <memprof/trace/trace.hpp>

#include <nano_gpt/one_step.hpp>
#include <nano_gpt/options.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

constexpr std::size_t max_columns = 3;

struct waterfall_arguments {
  decoder_options decoder;
  setup_options training;
  std::vector<std::string> files;
  std::vector<std::string> rules;
  std::string space;
  std::string json;
  bool as_json = false;
  std::string html;
  std::size_t width = 0;  ///< 0: not given
  bool runs_step = false;
  bool shows_all = false;
  bool is_of_script = false;
  bool only_checks = false;  ///< what is given, before a script runs whose traces come last
};

/// Whether the options describe a decoder, rather than only naming files.
bool describes_decoder(const CLI::App& command) {
  constexpr std::array<const char*, 9> options{"--config",  "--run-config",      "--batch-size",
                                               "--seq-len", "--d-model",         "--n-heads",
                                               "--layers",  "--base-vocab-size", "--num-special-tokens"};
  return std::any_of(options.begin(), options.end(), [&](const char* option) { return command.count(option) > 0; });
}

/// Parses "PATTERN=PART".
memprof::part_rule rule_of(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    memprof::detail::raise("--map: '" + text + "' is not PATTERN=PART, for example 'encoder/*/attn/**=attention'");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// The column for a file, still without its title.
memprof::compared_run read_column(const std::string& path, const std::string& space, std::vector<std::string>& complaints) {
  const recorded_stacks read = read_stacks(path);
  if (!read.content.complaint.empty()) {
    print_error("waterfall", read.content.complaint);
    complaints.push_back(read.content.complaint);
  }
  return memprof::compared_run_of({}, read.content.profile, space_of(read.content.profile, space), read.stacks);
}

memprof::compared_run column_of_trace(std::string title, const memprof::profile& profile, const std::string& space,
                                      const memprof::trace& events) {
  if (events.left_out() != 0) memprof::detail::raise("out of memory recording the events of a step");
  memprof::compared_run column =
      memprof::compared_run_of(std::move(title), profile, space_of(profile, space), memprof::stack_table_of(events, true));
  column.training_steps = 1;
  return column;
}

/// The column for a step of the plain trainer.
memprof::compared_run run_step(const memprof::decoder_model& model, const memprof::training_setup& setup, memprof::run_mode mode,
                               const std::string& space) {
  nano_gpt::options options = nano_gpt::options_for(model, setup);
  options.mode = mode;
  const bool is_real = mode == memprof::run_mode::normal;
  const progress shown{is_real ? "memprof: running one step" : "memprof: running without dispatch"};
  memprof::trace events;
  const nano_gpt::measured_step step = nano_gpt::measure_one_step(options, 1e-3, &events);
  if (step.ran_out_of_memory) memprof::detail::raise("--run: the machine ran out of memory in the step");
  return column_of_trace(is_real ? "measured" : "no dispatch", step.profile, space, events);
}

/// The Python package runs scripts before it calls this program (python/memprof/_waterfall.py).
void refuse_scripts(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (file.ends_with(".py") || file.ends_with(".pyw"))
      memprof::detail::raise("--run " + file + " needs memprof's Python package: python -m memprof waterfall --run " + file);
  }
}

std::vector<memprof::compared_run> compared_runs_of(waterfall_arguments& arguments, const CLI::App& command,
                                                    std::vector<std::string>& complaints) {
  if (arguments.runs_step) refuse_scripts(arguments.files);
  std::vector<memprof::compared_run> columns;
  if (describes_decoder(command)) {
    const chosen_decoder decoder = choose_decoder(arguments.decoder, command);
    memprof::training_setup& setup = arguments.training.setup;
    setup.batch_size = decoder.shape.batch_size;
    setup.seq_len = decoder.shape.seq_len;
    if (!arguments.training.device.empty()) setup.device = device_of(arguments.training.device);
    memprof::trace events;
    const memprof::training_estimate estimate = estimate_with_trace(decoder.model, setup, events);
    columns.push_back(column_of_trace("estimate", estimate.step, {}, events));
    if (arguments.runs_step) {
      (void)nano_gpt::options_for(decoder.model, setup);
      require_memory(estimate.space().cumulative_peak);
      for (const memprof::run_mode mode : {memprof::run_mode::no_dispatch, memprof::run_mode::normal})
        columns.push_back(run_step(decoder.model, setup, mode, arguments.space));
    }
  } else if (arguments.runs_step) {
    memprof::detail::raise("--run needs a decoder: --config NAME, or its dimensions; or a Python script after it");
  }
  for (const std::string& path : arguments.files) columns.push_back(read_column(path, arguments.space, complaints));
  if (arguments.only_checks) {
    if (columns.size() > max_columns - 2)
      memprof::detail::raise("expected one column at most beside a script's two: an estimate (--config NAME), or a file");
    return columns;
  }
  if (columns.size() < 2 || columns.size() > max_columns) {
    memprof::detail::raise("expected 2 or 3 columns, but got " + std::to_string(columns.size()) +
                           ": give an estimate (--config NAME, or a file) and the files of one or two runs, "
                           "or --config and --run");
  }
  memprof::title_columns(columns, arguments.files);
  if (arguments.is_of_script) {
    for (std::size_t index = columns.size() - 2; index < columns.size(); ++index) columns[index].file.clear();
  }
  return columns;
}

constexpr file_kind waterfall_kind{
    "a waterfall", [](std::string_view begin) { return begin.find(memprof::waterfall_json_format) != begin.npos; }};

/// Raises an error if an output would overwrite an input, or another file than one that this subcommand writes.
void check_outputs(const waterfall_arguments& arguments) {
  for (const std::string& input : arguments.files) {
    for (const std::string* const output : {&arguments.json, &arguments.html}) {
      if (!output->empty()) keep_input(input, *output);
    }
  }
  keep_apart(arguments.json, arguments.html);
  if (!arguments.json.empty()) keep_other_file(arguments.json, waterfall_kind);
  if (!arguments.html.empty()) keep_other_file(arguments.html, page_file_kind);
}

int run_waterfall(waterfall_arguments& arguments, const CLI::App& command) {
  const bool is_quiet = is_printed({arguments.json, arguments.html}, arguments.as_json ? "--json" : "");
  std::vector<std::string> complaints;
  check_outputs(arguments);
  std::vector<memprof::part_rule> rules;
  for (const std::string& text : arguments.rules) rules.push_back(rule_of(text));
  std::vector<memprof::compared_run> columns = compared_runs_of(arguments, command, complaints);
  if (arguments.only_checks) return complaints.empty() ? success : bad_input;
  const memprof::waterfall waterfall = memprof::make_waterfall(std::move(columns), rules);
  const nlohmann::ordered_json document = memprof::with_caveats(memprof::to_json(waterfall), complaints);

  if (is_quiet) {  // see below
  } else if (arguments.as_json) {
    print_json(memprof::detail::dump(memprof::short_answer(document)) + '\n');
  } else {
    memprof::text_options options = memprof::detail::fitted_to(stdout, {});
    if (arguments.width != 0) options.columns = arguments.width;
    print(memprof::to_text(waterfall, options, arguments.shows_all), stdout, text_colors::own);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    memprof::detail::raise("cannot write the table: " + memprof::detail::reason_in_errno());
  if (!arguments.json.empty()) write_output(arguments.json, memprof::detail::dump(document) + '\n');
  if (!arguments.html.empty()) {
    write_named_output(arguments.html, [&](const std::filesystem::path& name) {
      memprof::write_html(waterfall, name, {.title = {}, .source = {}, .notes = {}, .gzip = gzip});
    });
  }
  return complaints.empty() ? success : bad_input;
}

}  // namespace

void add_waterfall(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<waterfall_arguments>();
  CLI::App& command = *program.add_subcommand(
      "waterfall", "compare an estimate, a run without dispatch and a real run, and explain why their peaks differ");
  set_footer(
      command,
      "Files are traces or profiles, in the order of the columns. With --config or dimensions, the first column is the "
      "estimate of that decoder; with --run, the others are steps of examples/nano_gpt, without dispatch and real; or with "
      "the Python package, the first --steps N (2) of a script: --run SCRIPT.py ARGUMENTS, or -m MODULE.",
      "", bad_file_text);
  command.add_option("FILE", arguments->files, "traces or JSON profiles");
  command.add_flag("--run", arguments->runs_step,
                   "run one step of the plain trainer, or a Python script, without dispatch and for real");
  command.add_option("--map", arguments->rules, "assign matching operations to a part: 'encoder/*/attn/**=attention'")
      ->type_name("PATTERN=PART")
      ->allow_extra_args(false);
  command.add_flag("--check-before-run", arguments->only_checks, "check the options and files, and do nothing")->group("");
  command.add_flag("--of-script", arguments->is_of_script, "the last two files are of runs of a script, and temporary")
      ->group("");
  command.add_flag("--all", arguments->shows_all, "show all operations, those too that do not differ");
  command.add_option("--space", arguments->space, "memory space of the runs (default: the one with the greatest peak)")
      ->type_name("NAME");
  command.add_flag("--json", arguments->as_json, "print the numbers as JSON");
  command.add_option("--json-out", arguments->json, "also write the numbers to this file, as JSON")->type_name("FILE");
  command.add_option("--html", arguments->html, "also write an HTML page to this file")->type_name("FILE");
  command.add_option("--width", arguments->width, "width of the text in columns (default: the terminal's, at most 100)")
      ->type_name("N")
      ->check(whole_number(60, 1000));
  arguments->decoder.add(command);
  arguments->training.add(command);
  command.add_option("--device", arguments->training.device, "device of the estimate: a preset, a JSON file or a size (80GB)")
      ->type_name("NAME|FILE|SIZE");
  command.callback(
      [arguments, &command, &status] { status = run_reported("waterfall", [&] { return run_waterfall(*arguments, command); }); });
}

}  // namespace memprof_tool
