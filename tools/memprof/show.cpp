#include "show.hpp"

#include "exit_status.hpp"
#include "recording.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/report/text.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <new>
#include <string>

namespace memprof_tool {
namespace {

struct show_arguments {
  std::string file;
  std::string space;
  std::size_t segments = 10;
};

void complain(const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "memprof show: %s\n", what.c_str());
}

int run_show(const show_arguments& arguments) {
  try {
    const recording read = read_recording(arguments.file);
    memprof::text_options options;
    options.primary_space = arguments.space;
    options.max_segments = arguments.segments;
    std::fputs(memprof::to_text(read.profile, options).c_str(), stdout);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      complain("cannot write to the standard output");
      return failed;
    }
    if (read.complaint.empty()) return success;
    complain(read.complaint);
  } catch (const memprof::error& fault) {
    complain(fault.what());
  } catch (const std::bad_alloc&) {
    complain("'" + arguments.file + "': out of memory while reading it");
  }
  return bad_input;
}

}  // namespace

void add_show(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<show_arguments>();
  CLI::App& command = *program.add_subcommand("show", "the summary of a trace or a profile");
  command.add_option("FILE", arguments->file, "a trace, or a profile in JSON")->required();
  command.add_option("--segments", arguments->segments, "the first so many segments; 0: all (default: 10)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--space", arguments->space,
                  "memory space that the segments are about (default: dram, else the first that is not cpu, else cpu)")
      ->type_name("NAME");
  command.callback([arguments, &status] { status = run_show(*arguments); });
}

}  // namespace memprof_tool
