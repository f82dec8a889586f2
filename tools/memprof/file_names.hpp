#pragma once

#include <CLI/App.hpp>
#include <string>

namespace memprof_tool {

/// Has every option and argument of `program` and its subcommands that is the name of a file or a folder refuse an empty one,
/// which would otherwise mean the option's default or the current folder; and an option refuse the next option, which CLI11 takes
/// for the name that is missing.
void refuse_wrong_file_names(CLI::App& program);

/// What is wrong with an option of a command, as it was parsed, whose name is missing: "--output: a name is missing before
/// '--format'". Empty: nothing.
[[nodiscard]] std::string missing_file_name(const CLI::App& command);

}  // namespace memprof_tool
