#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/peak_callers.hpp>

#include <cstdio>
#include <optional>
#include <string>

namespace memprof_tool {

/// Who asked for what was live at the peak of a trace with stacks, also as the names of the profile's largest blocks. None, with
/// nothing changed, if the trace has no stacks, or no longer the events of its peak.
[[nodiscard]] std::optional<memprof::peak_callers> add_callers(memprof::profile& profile, std::FILE* file,
                                                               const std::string& path);

}  // namespace memprof_tool
