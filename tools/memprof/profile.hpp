#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof profile`: the profile of a trace as JSON. When it is chosen it runs within the parsing of `program`, and its
/// exit status goes to `status`.
void add_profile(CLI::App& program, int& status);

}  // namespace memprof_tool
