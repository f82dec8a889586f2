#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof what-if`, which says what peak a run would have had with a change.
void add_what_if(CLI::App& program, int& status);

}  // namespace memprof_tool
