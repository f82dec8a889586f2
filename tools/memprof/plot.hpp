#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// `memprof plot`: a picture of a run. `status` is what the program ends with.
void add_plot(CLI::App& program, int& status);

}  // namespace memprof_tool
