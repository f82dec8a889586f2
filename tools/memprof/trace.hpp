#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof trace`: the events of a trace. When it is chosen it runs within the parsing of `program`, and its exit status
/// goes to `status`.
void add_trace(CLI::App& program, int& status);

}  // namespace memprof_tool
