#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof merge`. If chosen, it runs while `program` parses its arguments and stores its exit status in `status`.
void add_merge(CLI::App& program, int& status);

}  // namespace memprof_tool
