#include "recorded_reserved.hpp"

#include <memprof/detail/saturating.hpp>
#include <memprof/toolkit/format/trace_source.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace memprof_tool {
namespace {

/// Whether it can be notable, by the profile alone: what is unused at the peak is at least what was never live.
bool may_be_notable(const memprof::space_profile& space) {
  const auto is_notable = [](std::int64_t reserved, std::int64_t live) {
    return reserved > 0 && memprof::is_notable_gap(memprof::detail::subtract_saturating(reserved, live), reserved);
  };
  return is_notable(space.reserved.peak, space.cumulative_peak) ||
         (!space.out_of_memory.empty() &&
          is_notable(space.out_of_memory.front().reserved_bytes, space.out_of_memory.front().live_bytes));
}

}  // namespace

std::vector<memprof::reserved_causes> find_reserved_causes(const memprof::profile& profile, std::FILE* file,
                                                           const std::string& path) {
  constexpr std::size_t most = 4;
  std::vector<const memprof::space_profile*> spaces;
  for (const memprof::space_profile& space : profile.spaces) {
    if (may_be_notable(space)) spaces.push_back(&space);
  }
  std::stable_sort(spaces.begin(), spaces.end(),
                   [](const auto* left, const auto* right) { return left->reserved.peak > right->reserved.peak; });
  std::vector<memprof::reserved_causes> all;
  const memprof::trace_file source{file, path};
  for (std::size_t index = 0; index < std::min(most, spaces.size()); ++index) {
    std::optional<memprof::reserved_causes> found = memprof::reserved_causes_in(source, profile, *spaces[index]);
    if (found) all.push_back(std::move(*found));
  }
  return all;
}

}  // namespace memprof_tool
