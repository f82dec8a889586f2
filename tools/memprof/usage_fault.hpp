#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace memprof_tool {

/// What is wrong with the arguments, as one line that begins with the subcommand. `program` is as its parser left it when it
/// failed on `words`.
[[nodiscard]] std::string usage_complaint(const CLI::App& program, const CLI::ParseError& fault,
                                          const std::vector<std::string>& words);

/// The same for an argument that should be the subcommand of `parent`, whose full name is `parent_name`.
[[nodiscard]] std::string unknown_subcommand(const CLI::App& parent, const std::string& parent_name, const std::string& argument);

/// The same for the words behind "help", if they are not a subcommand and its own; otherwise empty.
[[nodiscard]] std::string help_complaint(const CLI::App& program, const std::vector<std::string>& words);

}  // namespace memprof_tool
