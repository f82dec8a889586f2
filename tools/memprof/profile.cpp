#include "profile.hpp"

#include "complain.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "recording.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/profile/write_json.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <new>
#include <string>

namespace memprof_tool {
namespace {

struct profile_arguments {
  std::string file;
  std::string output;
  bool has_facets = false;
};

int run_profile(const profile_arguments& arguments) {
  recording read;
  try {
    keep_input(arguments.file, arguments.output);
    read = arguments.has_facets ? read_recording(arguments.file, 0, memprof::facets::all) : read_recording(arguments.file);
    if (arguments.has_facets && !read.is_trace) {
      print_error("profile", "'" + arguments.file + "' is a profile; --facets needs a trace");
      return bad_input;
    }
  } catch (const memprof::error& fault) {
    print_error("profile", fault.what());
    return bad_input;
  } catch (const std::bad_alloc&) {
    print_error("profile", "'" + arguments.file + "': out of memory while reading it");
    return bad_input;
  }
  try {
    memprof::write_json(read.profile, arguments.output);
  } catch (const memprof::error& fault) {
    print_error("profile", fault.what());
    return failed;
  }
  if (read.complaint.empty()) return success;
  print_error("profile", read.complaint);
  return bad_input;
}

}  // namespace

void add_profile(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<profile_arguments>();
  CLI::App& command = *program.add_subcommand("profile", "write the profile of a trace as JSON");
  set_footer(command, "", "the profile cannot be written", bad_input_text);
  command.add_option("FILE", arguments->file, "a trace, or a JSON profile to convert to the current version")->required();
  command.add_option("-o,--output", arguments->output, "output file; may be /dev/stdout")->required()->type_name("FILE");
  command.add_flag("--facets", arguments->has_facets,
                   "include the facets that follow individual blocks; takes several times as long");
  command.callback([arguments, &status] { status = run_profile(*arguments); });
}

}  // namespace memprof_tool
