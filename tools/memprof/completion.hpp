#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof completion`, which prints what makes bash or zsh complete this program's subcommands, options and values.
void add_completion(CLI::App& program, int& status);

}  // namespace memprof_tool
