#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/trace/clock_readings.hpp>

#include <cstdint>
#include <string>

namespace memprof::inline MEMPROF_ABI::detail {

/// Translates a ledger's ids for a facet.
struct facet_names {
  const vector<std::string>& operations;  ///< paths, by node
  const vector<std::string>& segments;    ///< by row of the history, followed by that of the open one, if there is one
  bool has_open;
  const clock_readings& time;
  std::uint64_t begin_stamp;

  /// Converts a number of stamp ticks to nanoseconds.
  [[nodiscard]] std::int64_t duration_ns(std::int64_t ticks) const noexcept {
    return time.to_ns(begin_stamp + static_cast<std::uint64_t>(ticks)) - time.to_ns(begin_stamp);
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
