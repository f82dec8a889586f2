#include "class_rules.hpp"
#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "recording.hpp"
#include "text_output.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/toolkit/analysis/hlo_answer_json.hpp>
#include <memprof/toolkit/analysis/hlo_attribution.hpp>
#include <memprof/toolkit/analysis/hlo_program_list.hpp>
#include <memprof/toolkit/analysis/hlo_table.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>
#include <memprof/toolkit/format/xla/hlo_memory.hpp>
#include <memprof/toolkit/format/xla/xplane.hpp>
#include <memprof/toolkit/format/xla/xplane_trace.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

struct xplane_arguments {
  std::vector<std::string> paths;
  std::string module;
  std::int64_t space = 0;
  std::string classes;
  bool tsv = false;
  bool as_json = false;
  std::size_t rows = 20;
};

std::string without_suffix(std::string name) {
  for (const std::string_view suffix : {".xplane.pb", ".hlo_proto.pb"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  }
  return name;
}

/// The *.xplane.pb files in a folder, or else its *.hlo_proto.pb files, sorted by name.
std::vector<std::string> profiles_in(const std::string& folder) {
  namespace fs = std::filesystem;
  for (const std::string_view suffix : {".xplane.pb", ".hlo_proto.pb"}) {
    std::vector<std::string> found;
    std::error_code failure;
    for (fs::directory_iterator entry{folder, failure}, end; !failure && entry != end; entry.increment(failure)) {
      if (entry->path().filename().string().ends_with(suffix)) found.push_back(entry->path().string());
    }
    if (failure) memprof::detail::raise_about_file("read", folder, failure.message());
    std::sort(found.begin(), found.end());
    if (!found.empty()) return found;
  }
  memprof::detail::raise_about_file("read", folder, "it has no *.xplane.pb and no *.hlo_proto.pb");
}

/// What was complained about: on stderr at once, and in the JSON.
class remarks {
 public:
  void add(const std::string& what) {
    print_error("xplane", what);
    said_.push_back(what);
  }
  [[nodiscard]] const std::vector<std::string>& said() const { return said_; }

 private:
  std::vector<std::string> said_;
};

/// The program of that name, with a remark if there are several; null if there is none.
const memprof::xplane_program* program_of(const memprof::xplane_file& profile, const std::string& wanted, remarks& said) {
  const auto [program, candidates] = memprof::find_program(profile, wanted);
  if (candidates > 1)
    said.add("'" + profile.file().path().string() + "' has " + std::to_string(candidates) + " programs '" + wanted + "'; using " +
             program->name);
  return program;
}

/// Calls `read(profile, path)` for each file; reports a file that cannot be read and goes on. Returns the exit status.
template <class Read>
int for_each_profile(const std::vector<std::string>& arguments, remarks& said, Read&& read) {
  int status = success;
  const auto try_one = [&](const std::string& path, auto&& act) {
    try {
      act();
    } catch (const memprof::error& fault) {
      said.add(fault.what());
      status = bad_input;
    } catch (const std::bad_alloc&) {
      said.add("'" + path + "': out of memory while reading it");
      status = bad_input;
    }
  };
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(argument, ignored)) {
      paths.push_back(argument);
      continue;
    }
    try_one(argument, [&] {
      for (std::string& found : profiles_in(argument)) paths.push_back(std::move(found));
    });
  }
  for (const std::string& path : paths) {
    try_one(path, [&] {
      const memprof::detail::file_handle file = open_recording(path);
      const memprof::xplane_file profile{file.get(), path};
      if (!profile.damage().empty()) {
        said.add("'" + path + "': " + profile.damage() + "; the rest was read");
        status = bad_input;
      }
      read(profile, path);
    });
  }
  return status;
}

/// "0, 1"
std::string listed(const std::vector<std::int64_t>& spaces) {
  std::string text;
  for (const std::int64_t space : spaces) text += (text.empty() ? "" : ", ") + std::to_string(space);
  return text.empty() ? "none" : text;
}

int analyze_module(const xplane_arguments& arguments, const memprof::hlo_class_rules& rules) {
  remarks said;
  std::vector<memprof::hlo_worker> workers;
  const int status = for_each_profile(arguments.paths, said, [&](const memprof::xplane_file& profile, const std::string& path) {
    const memprof::xplane_program* const program = program_of(profile, arguments.module, said);
    if (program == nullptr) {
      said.add("'" + path + "' has no program '" + arguments.module + "'; skipping it");
      return;
    }
    memprof::hlo_worker made;
    made.host = without_suffix(std::filesystem::path{path}.filename().string());
    made.program = program->name;
    std::vector<std::int64_t> spaces;
    try {
      const memprof::hlo_memory memory{profile.file(), program->bytes};
      spaces = memprof::memory_spaces(memory.program());
      made.found = memprof::attribute(memory, arguments.space, rules);
    } catch (const memprof::error& fault) {
      memprof::detail::raise("'" + path + "': " + program->name + ": " + profile.fault_of(fault));
    }
    if (std::find(spaces.begin(), spaces.end(), arguments.space) == spaces.end())
      said.add("warning: '" + path + "': " + program->name + " has nothing in memory space " + std::to_string(arguments.space) +
               "; it uses: " + listed(spaces));
    for (const std::string& remark : made.found.remarks) said.add("warning: '" + path + "': " + remark);
    workers.push_back(std::move(made));
  });
  if (workers.empty()) {
    if (status == success)
      print_error("xplane", "no profile has a program '" + arguments.module + "'; omit --module to list them");
    return bad_input;
  }
  if (arguments.as_json) {
    print_json(memprof::detail::dump(
                   memprof::short_answer(memprof::xplane_json(workers, rules, arguments.space, arguments.rows, said.said()))) +
               '\n');
    return status;
  }
  const std::vector<memprof::hlo_column> columns = memprof::hlo_columns(workers, rules, !arguments.tsv);
  print(arguments.tsv ? memprof::hlo_table_tsv(workers, columns)
                      : memprof::hlo_table_text(workers, columns, rules, arguments.rows, "--rows shows more"));
  return status;
}

int list_modules(const xplane_arguments& arguments) {
  remarks said;
  memprof::hlo_program_list list{arguments.space};
  const int status = for_each_profile(arguments.paths, said, [&](const memprof::xplane_file& profile, const std::string&) {
    for (const std::string& fault : list.add(profile)) said.add(fault);
  });
  const std::vector<memprof::hlo_listed_program> programs = list.programs();
  if (programs.empty()) {
    if (status == success) print_error("xplane", "no profile contains an XLA program (no HLO proto in /host:metadata)");
    return bad_input;
  }
  if (std::find(list.spaces().begin(), list.spaces().end(), arguments.space) == list.spaces().end())
    said.add("warning: no program has anything in memory space " + std::to_string(arguments.space) +
             "; they use: " + listed(list.spaces()));
  if (arguments.as_json) {
    print_json(memprof::detail::dump(memprof::short_answer(memprof::xplane_json(programs, arguments.space, said.said()))) + '\n');
    return status;
  }
  print(memprof::hlo_programs_text(programs, arguments.tsv));
  return status;
}

int run_xplane(const xplane_arguments& arguments) {
  try {
    const memprof::hlo_class_rules rules = read_class_rules(arguments.classes);
    const int status = arguments.module.empty() ? list_modules(arguments) : analyze_module(arguments, rules);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    print_error("xplane", "cannot write the table: " + memprof::detail::reason_in_errno());
    return failed;
  } catch (const memprof::error& fault) {
    print_error("xplane", fault.what());
    return bad_input;
  }
}

}  // namespace

void add_xplane(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<xplane_arguments>();
  CLI::App& command =
      *program.add_subcommand("xplane", "show the memory that the programs in XLA profiles need, worker by worker");
  set_footer(command, "", "the output cannot be written", bad_input_text);
  command.add_option("PATH", arguments->paths, "*.xplane.pb or *.hlo_proto.pb files, or folders of them")->required();
  command
      .add_option("--module", arguments->module,
                  "program to analyze, such as jit_train_step or jit_train_step(123) (default: list all)")
      ->type_name("NAME");
  command.add_option("--space", arguments->space, "memory space; 0 is the device's main memory")
      ->capture_default_str()
      ->check(whole_number(0));
  command.add_option("--classes", arguments->classes, "TOML file of rules for the classes of blocks (see docs/formats.md)")
      ->type_name("FILE");
  command.add_option("--rows", arguments->rows, "number of blocks at the peak to list")
      ->capture_default_str()
      ->check(whole_number(0));
  CLI::Option* const tsv = command.add_flag("--tsv", arguments->tsv, "print tab-separated values, in GiB");
  command.add_flag("--json", arguments->as_json, "print JSON: the verdict, the numbers and their caveats")->excludes(tsv);
  command.callback([arguments, &status] { status = run_xplane(*arguments); });
}

}  // namespace memprof_tool
