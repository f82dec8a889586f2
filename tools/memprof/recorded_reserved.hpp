#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/reserved_causes.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace memprof_tool {

/// Why allocators reserved more than was allocated, in each memory space of a trace in which that is notable: those with the most
/// reserved bytes, at most four. Reads the trace again if there is any.
[[nodiscard]] std::vector<memprof::reserved_causes> find_reserved_causes(const memprof::profile& profile, std::FILE* file,
                                                                         const std::string& path);

}  // namespace memprof_tool
