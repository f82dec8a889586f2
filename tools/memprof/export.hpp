#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof export`: a trace or a profile in the format of another tool. When it is chosen it runs within the parsing of
/// `program`, and its exit status goes to `status`.
void add_export(CLI::App& program, int& status);

}  // namespace memprof_tool
