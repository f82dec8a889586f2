#include "file_names.hpp"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace memprof_tool {
namespace {

/// What is wrong with the name of a file or a folder; empty: nothing.
std::string fault_of_argument(const std::string& name) { return name.empty() ? "the name is empty" : ""; }
std::string fault_of_folder(const std::string& name) {
  return name == "-" ? "'-' is no folder; of a folder of that name, write './-'" : "";
}
std::string fault_of_value(const std::string& name) {
  if (!name.starts_with("--")) return fault_of_argument(name);
  return "a name is missing before '" + name + "'; of a file of that name, write './" + name + "'";
}

bool takes_file_name(const CLI::Option& option) {
  const std::string kind = option.get_type_name();
  for (const char* const name : {"FILE", "OUT", "FOLDER", "DIR", "PATH", "RUN"}) {
    if (kind.find(name) != std::string::npos || (kind == "TEXT" && option.get_name() == name)) return true;
  }
  return false;
}

}  // namespace

void refuse_wrong_file_names(CLI::App& program) {
  const CLI::Validator is_argument{fault_of_argument, ""};
  const CLI::Validator is_value{fault_of_value, ""};
  const CLI::Validator is_folder{fault_of_folder, ""};
  for (CLI::Option* const option : program.get_options()) {
    if (takes_file_name(*option)) option->check(option->nonpositional() ? is_value : is_argument);
    if (const std::string kind = option->get_type_name(); kind == "FOLDER" || kind == "DIR") option->check(is_folder);
  }
  for (CLI::App* const command : program.get_subcommands({})) refuse_wrong_file_names(*command);
}

std::string missing_file_name(const CLI::App& command) {
  for (const CLI::Option* const option : command.get_options()) {
    if (!option->nonpositional() || !takes_file_name(*option)) continue;
    for (const std::string& name : option->results()) {
      if (name.starts_with("--")) return option->get_name() + ": " + fault_of_value(name);
    }
  }
  return {};
}

}  // namespace memprof_tool
