#pragma once

#include <memprof/trace/trace.hpp>

#include <CLI/App.hpp>
#include <cstdio>
#include <string>
#include <vector>

namespace memprof_tool {

/// What is to be said of a log that was read.
struct tt_reading {
  std::vector<std::string> remarks;
  std::string damage;    ///< why the end is missing, as a sentence without its stop; empty: it is not
  bool is_whole = true;  ///< false: the end is missing, or lines that could not be read
};

/// Reads a log of tt-mlir's runtime into `trace`. Throws `memprof::error` if it has no memory states.
[[nodiscard]] tt_reading read_tt_log(std::FILE* file, const std::string& path, memprof::trace& trace);

/// `memprof tt-mlir`: what tt-mlir's own profiler does, with its names and folders.
void add_tt_mlir(CLI::App& program, int& status);

}  // namespace memprof_tool
