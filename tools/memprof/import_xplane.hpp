#pragma once

#include <memprof/trace/trace.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace memprof_tool {

/// Reads a profile of XLA into `trace`: the program of that name, or all if it is empty. `rules` is a file of class rules or
/// empty. Returns what could not be read, as sentences without their stop. Throws `memprof::error` if it is no such profile, or
/// has no such program.
[[nodiscard]] std::vector<std::string> read_xplane(std::FILE* file, const std::string& path, const std::string& program,
                                                   const std::string& rules, memprof::trace& trace);

}  // namespace memprof_tool
