#pragma once

#include <CLI/App.hpp>
#include <string>

namespace memprof_tool {

/// What is wrong with the arguments, as one line that begins with the subcommand. `program` is as its parser left it when it
/// failed.
[[nodiscard]] std::string usage_complaint(const CLI::App& program, const CLI::ParseError& fault);

/// The same for an argument that should be the subcommand of `parent`, whose full name is `parent_name`.
[[nodiscard]] std::string unknown_subcommand(const CLI::App& parent, const std::string& parent_name, const std::string& argument);

}  // namespace memprof_tool
