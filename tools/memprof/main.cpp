#include "ample_stack.hpp"
#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "file_names.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "text_output.hpp"
#include "usage_fault.hpp"

#include <memprof/version.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

/// Accepts options spelled with underscores, as in analyze_memory.py. Values keep theirs.
std::string with_hyphens(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  const auto end_of_name = std::find(argument.begin(), argument.end(), '=');
  std::replace(argument.begin(), end_of_name, '_', '-');
  return argument;
}

/// The arguments in the order that CLI11 expects, last first. Those of a script to run stay as they are.
std::vector<std::string> arguments_of(int count, char** values) {
  constexpr int first_of_script = 4;  // in "memprof tt-mlir run --output-dir= SCRIPT"
  const bool has_script = count > 1 && std::string_view{values[1]} == "tt-mlir";
  std::vector<std::string> arguments;
  // What follows "--" in "memprof run -- PROGRAM" is the program's.
  const bool runs = count > 1 && std::string_view{values[1]} == "run";
  const auto end_of_options = runs ? std::find(values, values + count, std::string_view{"--"}) - values : count;
  for (int index = count - 1; index > 0; --index) {
    if (index > end_of_options) {
      arguments.emplace_back(values[index]);
      continue;
    }
    std::string argument = has_script ? values[index] : with_hyphens(values[index]);
    // CLI11 takes the next argument for the value that is missing in "--output=".
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1 && !(has_script && index >= first_of_script)) {
      arguments.emplace_back();
      argument.pop_back();
    }
    arguments.push_back(std::move(argument));
  }
  // "help show" is "show --help".
  if (!arguments.empty() && arguments.back() == "help") {
    arguments.pop_back();
    if (arguments.empty() || !arguments.front().starts_with('-')) arguments.insert(arguments.begin(), "--help");
  }
  return arguments;
}

/// Only for the help and the completion: `arguments_of` has replaced it by --help.
void add_help(CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* const command : program.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  CLI::App& help = *program.add_subcommand("help", "print the help of a subcommand");
  memprof_tool::set_footer(help, "", "", "there is no such subcommand");
  help.add_option_function<std::string>(
          "SUBCOMMAND", [](const std::string&) {}, "subcommand, and its own if it has any")
      ->check(memprof_tool::one_of("subcommand", names));
}

/// Whether the first argument looks like a subcommand but is none.
bool is_unknown_subcommand(const CLI::App& program, const std::string& argument) {
  const auto known = program.get_subcommands([&](const CLI::App* command) { return command->get_name() == argument; });
  return !argument.starts_with('-') && known.empty();
}

int run_program(int argument_count, char** argument_values) {
  CLI::App program{"Exact memory profiles of training loops: summaries, pages, pictures and estimates."};
  program.name("memprof");
  program.formatter(std::make_shared<memprof_tool::help_text>(memprof_tool::help_columns()));
  program.set_help_flag("-h,--help", "print this help and exit");
  program.set_version_flag("--version", std::string{"memprof "} + memprof::version_string, "print the version and exit");
  program.require_subcommand(1);
  program.footer(
      "'memprof help SUBCOMMAND' or 'memprof SUBCOMMAND --help' lists the options of a subcommand.\n\n"
      "Exit status: 0 on success; 1 if an output cannot be written or another program failed; 2 if an argument is invalid or "
      "an input cannot be read completely. The help of a subcommand has its own.");
  int status = memprof_tool::success;
  // In the order in which a new user needs them, which is that of the help.
  memprof_tool::add_run(program, status);
  memprof_tool::add_show(program, status);
  memprof_tool::add_report(program, status);
  memprof_tool::add_leaks(program, status);
  memprof_tool::add_compare(program, status);
  memprof_tool::add_what_if(program, status);
  memprof_tool::add_check(program, status);
  memprof_tool::add_merge(program, status);
  memprof_tool::add_profile(program, status);
  memprof_tool::add_analyze(program, status);
  memprof_tool::add_plot(program, status);
  memprof_tool::add_trace(program, status);
  memprof_tool::add_fit(program, status);
  memprof_tool::add_estimate(program, status);
  memprof_tool::add_waterfall(program, status);
  memprof_tool::add_convert(program, status);
  memprof_tool::add_export(program, status);
  memprof_tool::add_import(program, status);
  memprof_tool::add_tt_mlir(program, status);
#if MEMPROF_TOOL_PROTOZERO
  memprof_tool::add_xplane(program, status);
#endif
  memprof_tool::refuse_wrong_file_names(program);

  memprof_tool::add_completion(program, status);
  add_help(program);

  const bool asks_for_help = argument_count > 2 && std::string_view{argument_values[1]} == "help";
  const char* const first = argument_count > 1 ? argument_values[asks_for_help ? 2 : 1] : "-";
  if (is_unknown_subcommand(program, first)) {
    memprof_tool::print(memprof_tool::unknown_subcommand(program, program.get_name(), first) + "\n", stderr);
    return memprof_tool::bad_input;
  }
  if (asks_for_help) {
    const std::vector<std::string> words{argument_values + 2, argument_values + argument_count};
    if (const std::string complaint = memprof_tool::help_complaint(program, words); !complaint.empty()) {
      memprof_tool::print(complaint + "\n", stderr);
      return memprof_tool::bad_input;
    }
  }
  const std::vector<std::string> arguments = arguments_of(argument_count, argument_values);
  try {
    program.parse(std::vector{arguments});
  } catch (const CLI::ParseError& fault) {
    if (fault.get_exit_code() == 0) {  // --help or --version
      std::ostringstream text;
      program.exit(fault, text, text);
      return memprof_tool::print_whole("", text.str());
    }
    memprof_tool::print(memprof_tool::usage_complaint(program, fault, {arguments.rbegin(), arguments.rend()}) + "\n", stderr);
    return memprof_tool::bad_input;
  } catch (const std::exception& fault) {
    memprof_tool::print_error("", fault.what());
    return memprof_tool::failed;
  }
  return status;
}

/// Lets writing a file beyond the limit on their size fail with a reason, where the signal would end the process without a word.
/// A handler, and not SIG_IGN, which programs that this one runs would inherit.
void let_large_files_fail() {
  if (std::signal(SIGXFSZ, [](int) {}) == SIG_IGN) (void)std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace

int main(int argument_count, char** argument_values) {
  let_large_files_fail();
  return memprof_tool::with_ample_stack([=] { return run_program(argument_count, argument_values); });
}
