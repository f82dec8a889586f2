#pragma once

#include <memprof/trace/clock_readings.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// What the ids of a ledger mean to a facet.
struct facet_names {
  const std::vector<std::string>& operations;  ///< paths, by node
  const std::vector<std::string>& segments;    ///< by row of the history, and then that of the open one, if there is one
  bool has_open;
  const clock_readings& time;
  std::uint64_t begin_stamp;

  /// So many stamps, in nanoseconds.
  [[nodiscard]] std::int64_t duration_ns(std::int64_t ticks) const noexcept {
    return time.to_ns(begin_stamp + static_cast<std::uint64_t>(ticks)) - time.to_ns(begin_stamp);
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
