#include "profile.hpp"

#include "exit_status.hpp"
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
};

void complain(const std::string& what) { std::fprintf(stderr, "memprof profile: %s\n", what.c_str()); }

int run_profile(const profile_arguments& arguments) {
  recording read;
  try {
    keep_input(arguments.file, arguments.output);
    read = read_recording(arguments.file);
  } catch (const memprof::error& fault) {
    complain(fault.what());
    return bad_input;
  } catch (const std::bad_alloc&) {
    complain("'" + arguments.file + "': out of memory while reading it");
    return bad_input;
  }
  try {
    memprof::write_json(read.profile, arguments.output);
  } catch (const memprof::error& fault) {
    complain(fault.what());
    return failed;
  }
  if (read.complaint.empty()) return success;
  complain(read.complaint);
  return bad_input;
}

}  // namespace

void add_profile(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<profile_arguments>();
  CLI::App& command = *program.add_subcommand("profile", "the profile of a trace, as JSON");
  command.add_option("FILE", arguments->file, "a trace, or a profile in JSON, which is brought to the current version")
      ->required();
  command.add_option("-o,--output", arguments->output, "where it goes; /dev/stdout works too")->required()->type_name("FILE");
  command.callback([arguments, &status] { status = run_profile(*arguments); });
}

}  // namespace memprof_tool
