#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof profile`: the profile of a trace as JSON. If chosen, it runs while `program` parses its arguments and stores its
/// exit status in `status`.
void add_profile(CLI::App& program, int& status);

}  // namespace memprof_tool
