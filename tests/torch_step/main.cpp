// The program memprof with the subcommand estimate alone.
#include "commands.hpp"
#include "exit_status.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>

int main(int argument_count, char** argument_values) {
  CLI::App program;
  program.require_subcommand(1);
  int status = memprof_tool::success;
  memprof_tool::add_estimate(program, status);
  try {
    program.parse(argument_count, argument_values);
  } catch (const CLI::ParseError& fault) {
    std::fprintf(stderr, "memprof: %s\n", fault.what());
    return memprof_tool::bad_input;
  }
  return status;
}
