#pragma once

#include <memprof/trace/trace.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace memprof_tool {

/// Reads an XLA profile into `trace`, whose profile has rows for `operations`: the named program, or all if the name is empty.
/// `rules` is a file of class rules, or empty. Returns what could not be read, as sentences without a final full stop. Throws
/// `memprof::error` if the file is not an XLA profile or has no such program.
[[nodiscard]] std::vector<std::string> read_xplane(std::FILE* file, const std::string& path, const std::string& program,
                                                   const std::string& rules, memprof::trace& trace, std::uint32_t operations);

}  // namespace memprof_tool
