#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof tt-mlir`, which does what tt-mlir's own profiler does and uses its names and folders.
void add_tt_mlir(CLI::App& program, int& status);

}  // namespace memprof_tool
