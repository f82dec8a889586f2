#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/breakdown_text.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/format/tenstorrent/tracker_log.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace memprof_tests {

/// A space of a profile with its breakdown.
inline memprof::analyzed_space analyzed(memprof::profile profile, std::size_t space = 0,
                                        const memprof::breakdown_options& options = {}) {
  const auto shared = std::make_shared<const memprof::profile>(std::move(profile));
  return {shared, space, memprof::break_down(*shared, shared->spaces[space], options)};
}

/// The summaries of a log with theirs.
inline std::vector<memprof::analyzed_space> analyzed_log(const std::string& log, const memprof::breakdown_options& options = {},
                                                         const std::string& file = "run.log") {
  std::vector<memprof::analyzed_space> result;
  for (memprof::profile& summary : memprof::parse_tracker_log(log, file))
    result.push_back(analyzed(std::move(summary), 0, options));
  return result;
}

}  // namespace memprof_tests
