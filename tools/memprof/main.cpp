#include "analyze.hpp"
#include "estimate.hpp"
#include "exit_status.hpp"
#include "export.hpp"
#include "fit.hpp"
#include "help_text.hpp"
#include "import.hpp"
#include "plot.hpp"
#include "profile.hpp"
#include "report.hpp"
#include "show.hpp"
#include "trace.hpp"
#include "tt_mlir.hpp"
#include "usage_fault.hpp"
#include "waterfall.hpp"
#if MEMPROF_TOOL_PROTOZERO
#include "xplane.hpp"
#endif

#include <memprof/version.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
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
  const bool has_script = count > 1 && std::string_view{values[1]} == "tt-mlir";
  std::vector<std::string> arguments;
  for (int index = count - 1; index > 0; --index) arguments.push_back(has_script ? values[index] : with_hyphens(values[index]));
  return arguments;
}

/// Whether the first argument looks like a subcommand but is none.
bool is_unknown_subcommand(const CLI::App& program, const std::string& argument) {
  const auto known = program.get_subcommands([&](const CLI::App* command) { return command->get_name() == argument; });
  return !argument.starts_with('-') && known.empty();
}

}  // namespace

int main(int argument_count, char** argument_values) {
  CLI::App program{"Exact memory profiles of training loops: summaries, pages, pictures and estimates."};
  program.name("memprof");
  program.formatter(std::make_shared<memprof_tool::help_text>(memprof_tool::help_columns()));
  program.set_help_flag("-h,--help", "print this help and exit");
  program.set_version_flag("--version", std::string{"memprof "} + memprof::version_string, "print the version and exit");
  program.require_subcommand(1);
  program.footer(
      "'memprof SUBCOMMAND --help' lists the options of a subcommand.\n\n"
      "Exit status: 0 on success; 1 if an output cannot be written or another program failed; 2 if an argument is invalid or "
      "an input cannot be read completely. The help of a subcommand has its own.");
  int status = memprof_tool::success;
  // In the order in which a new user needs them, which is that of the help.
  memprof_tool::add_show(program, status);
  memprof_tool::add_report(program, status);
  memprof_tool::add_profile(program, status);
  memprof_tool::add_analyze(program, status);
  memprof_tool::add_plot(program, status);
  memprof_tool::add_trace(program, status);
  memprof_tool::add_fit(program, status);
  memprof_tool::add_estimate(program, status);
  memprof_tool::add_waterfall(program, status);
  memprof_tool::add_export(program, status);
  memprof_tool::add_import(program, status);
  memprof_tool::add_tt_mlir(program, status);
#if MEMPROF_TOOL_PROTOZERO
  memprof_tool::add_xplane(program, status);
#endif

  if (argument_count > 1 && is_unknown_subcommand(program, argument_values[1])) {
    std::fprintf(stderr, "%s\n", memprof_tool::unknown_subcommand(program, program.get_name(), argument_values[1]).c_str());
    return memprof_tool::bad_input;
  }
  try {
    program.parse(arguments_of(argument_count, argument_values));
  } catch (const CLI::ParseError& fault) {
    if (fault.get_exit_code() == 0) return program.exit(fault);  // --help or --version
    std::fprintf(stderr, "%s\n", memprof_tool::usage_complaint(program, fault).c_str());
    return memprof_tool::bad_input;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "memprof: %s\n", fault.what());
    return memprof_tool::failed;
  }
  return status;
}
