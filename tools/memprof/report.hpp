#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof report`: the page of a trace or a profile. If chosen, it runs while `program` parses its arguments and stores
/// its exit status in `status`.
void add_report(CLI::App& program, int& status);

}  // namespace memprof_tool
