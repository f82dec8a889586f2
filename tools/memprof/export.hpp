#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof export`: a trace or a profile in the format of another tool. If chosen, it runs while `program` parses its
/// arguments and stores its exit status in `status`.
void add_export(CLI::App& program, int& status);

}  // namespace memprof_tool
