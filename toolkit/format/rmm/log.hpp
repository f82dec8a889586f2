#pragma once

#include <memprof/config.hpp>

#include <cstdio>
#include <filesystem>
#include <string>

namespace memprof::inline MEMPROF_ABI {

namespace extend {

class trace_writer;

}  // namespace extend

/// Whether a file begins as an RMM log does, with or without a byte order mark. The file must be at its start and is left there.
[[nodiscard]] bool is_rmm_log(std::FILE* file);

/// Writes the contents of an RMM log to a `trace_writer` as the memory space `gpu`; the caller finishes the trace. Takes memory
/// for one line. Returns why reading ended early (a truncated last line), as a sentence without a full stop; empty if it did not.
/// Raises an error that names the line for anything else that cannot be read.
[[nodiscard]] std::string read_rmm_log(std::FILE* file, const std::filesystem::path& path, extend::trace_writer& writer);

}  // namespace memprof::inline MEMPROF_ABI
