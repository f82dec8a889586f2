#include "recorded_callers.hpp"

#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/toolkit/analysis/block_callers.hpp>
#include <memprof/toolkit/analysis/peak_callers.hpp>
#include <memprof/toolkit/format/trace_source.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace memprof_tool {

std::optional<memprof::peak_callers> add_callers(memprof::profile& profile, std::FILE* file, const std::string& path) {
  const std::optional<memprof::heap_stacks> recorded = memprof::recorded_stacks_of(profile);
  if (!recorded) return {};
  std::size_t largest_blocks = 0;
  for (const memprof::space_profile& each : profile.spaces)
    largest_blocks = std::max(largest_blocks, each.live_at_peak.largest_blocks.size());
  const memprof::trace_file source{file, path};
  memprof::peak_callers callers = memprof::peak_callers_of(source, *recorded, largest_blocks);
  const memprof::space_profile* const space = profile.find_space(callers.space);
  if (space == nullptr || callers.bytes != space->cumulative_peak) return {};
  memprof::name_largest_blocks(profile, callers);
  return callers;
}

}  // namespace memprof_tool
