#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof run`: records a program that was not built with memprof. If chosen, it runs while `program` parses its arguments
/// and stores its exit status in `status`: the program's own.
void add_run(CLI::App& program, int& status);

}  // namespace memprof_tool
