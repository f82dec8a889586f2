#pragma once

#include <CLI/App.hpp>

/// Each adds the subcommand of its name to `program`. If chosen, that runs while `program` parses its arguments, and stores its
/// exit status in `status`.
namespace memprof_tool {

void add_show(CLI::App& program, int& status);
void add_profile(CLI::App& program, int& status);
void add_report(CLI::App& program, int& status);
void add_plot(CLI::App& program, int& status);
void add_trace(CLI::App& program, int& status);
void add_analyze(CLI::App& program, int& status);
void add_check(CLI::App& program, int& status);
void add_compare(CLI::App& program, int& status);
void add_leaks(CLI::App& program, int& status);
void add_merge(CLI::App& program, int& status);
void add_what_if(CLI::App& program, int& status);
void add_waterfall(CLI::App& program, int& status);
void add_run(CLI::App& program, int& status);
void add_fit(CLI::App& program, int& status);
void add_estimate(CLI::App& program, int& status);
void add_convert(CLI::App& program, int& status);
void add_import(CLI::App& program, int& status);
void add_export(CLI::App& program, int& status);
void add_xplane(CLI::App& program, int& status);
void add_tt_mlir(CLI::App& program, int& status);
void add_completion(CLI::App& program, int& status);

}  // namespace memprof_tool
