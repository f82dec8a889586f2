#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof trace`: the events of a trace. If chosen, it runs while `program` parses its arguments and stores its exit
/// status in `status`.
void add_trace(CLI::App& program, int& status);

}  // namespace memprof_tool
