#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/text_options.hpp>

#include <cstdio>
#include <string>

namespace memprof_tool {

/// Who asked for what was live at the peak of a trace with stacks, as a table, and as the names of the profile's largest blocks.
/// Empty, with nothing changed, if the trace has no stacks, or no longer the events of its peak.
[[nodiscard]] std::string add_callers(memprof::profile& profile, std::FILE* file, const std::string& path,
                                      const memprof::text_options& options);

}  // namespace memprof_tool
