#pragma once

#include <memprof/toolkit/format/recorded_event_writer.hpp>
#include <memprof/trace/trace.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace memprof_tool {

/// What there is to report about a log after reading it.
struct tt_reading {
  std::vector<std::string> remarks;
  std::string damage;    ///< why the end is missing, as a sentence without a final full stop; empty: it is not
  bool is_whole = true;  ///< false: the end is missing, or some lines could not be read
};

/// Reads a log of tt-mlir's runtime into `trace`, whose profile has rows for `operations`. Throws `memprof::error` if it has no
/// memory states.
[[nodiscard]] tt_reading read_tt_log(std::FILE* file, const std::string& path, memprof::trace& trace,
                                     std::uint32_t operations = memprof::imported_operations);

}  // namespace memprof_tool
