#pragma once

#include <CLI/App.hpp>

namespace memprof_tool {

/// Adds `memprof xplane`: what the programs in profiles of XLA need, worker by worker. When it is chosen it runs within the
/// parsing of `program`, and its exit status goes to `status`.
void add_xplane(CLI::App& program, int& status);

}  // namespace memprof_tool
