#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof xplane`: the memory that the programs in XLA profiles need, worker by worker. If chosen, it runs while `program`
/// parses its arguments and stores its exit status in `status`.
void add_xplane(CLI::App& program, int& status);

}  // namespace memprof_tool
