#pragma once

#include <memprof/toolkit/format/tenstorrent/tt_inputs_registry.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_records.hpp>

#include <cstdio>
#include <filesystem>
#include <vector>

/// @file
/// The log of tt-mlir's runtime, read line by line, as operations with the memory states before them.

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// What a log has besides the contents that a sink gets.
struct tt_log_reading {
  tt_log_status status;
  std::vector<tt_input> inputs;  ///< arguments of the compiled module
  bool has_module = false;       ///< whether the log has a dump of one
};

/// Reads a file from its start, line by line, and passes its contents to `sink`. Raises an error with file and line for more
/// ranks than any run has.
[[nodiscard]] tt_log_reading read_tt_lines(std::FILE* file, const std::filesystem::path& path, tt_log_sink& sink);

}  // namespace detail

/// Whether a file has lines of tt-mlir's runtime, within its first 64 MiB: a program may print a lot before its first operation.
/// The file must be at its start and is left there.
[[nodiscard]] bool is_tt_log(std::FILE* file);

}  // namespace memprof::inline MEMPROF_ABI
