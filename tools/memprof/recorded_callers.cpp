#include "recorded_callers.hpp"

#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/toolkit/analysis/block_callers.hpp>
#include <memprof/toolkit/analysis/peak_callers.hpp>
#include <memprof/toolkit/format/trace_source.hpp>

#include <optional>

namespace memprof_tool {

std::optional<memprof::peak_callers> add_callers(memprof::profile& profile, std::FILE* file, const std::string& path) {
  const std::optional<memprof::heap_stacks> recorded = memprof::recorded_stacks_of(profile);
  const memprof::space_profile* const heap = profile.find_space("cpu");
  if (!recorded || heap == nullptr) return {};
  const memprof::trace_file source{file, path};
  memprof::peak_callers callers = memprof::peak_callers_of(source, *recorded, heap->live_at_peak.largest_blocks.size());
  if (callers.bytes != heap->cumulative_peak) return {};
  memprof::name_largest_blocks(profile, callers);
  return callers;
}

}  // namespace memprof_tool
