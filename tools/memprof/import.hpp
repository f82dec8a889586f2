#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof import`: another tool's recording as a trace or a profile. When it is chosen it runs within the parsing of
/// `program`, and its exit status goes to `status`.
void add_import(CLI::App& program, int& status);

}  // namespace memprof_tool
