#pragma once

#include <memprof/ledger/capacity_overrun.hpp>
#include <memprof/profile/core_peaks.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/clock_readings.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// @file
/// What a space's first overrun was in words of the profile, and what would have prevented it. Templates, like all that builds
/// profiles, so that only units that read one pay for compiling them.

namespace memprof::detail {

/// The least of `owners`, greatest first, that held `missing` bytes: see `capacity_shortfall::remedy`. Of equally large ones the
/// first.
template <class Owners>
[[nodiscard]] Owners least_to_free(const Owners& owners, std::int64_t missing) {
  std::size_t first = 0;
  std::size_t count = 0;
  for (std::size_t row = 0; row < owners.size() && owners[row].bytes >= missing; ++row) {
    if (count != 0 && owners[row].bytes == owners[first].bytes) continue;
    first = row;
    count = 1;
  }
  if (count == 0) {
    for (; count < owners.size() && missing > 0; ++count) missing -= owners[count].bytes;
    if (missing > 0) return {};
  }
  Owners rows(count);
  for (std::size_t row = 0; row < count; ++row) rows[row] = owners[first + row];
  return rows;
}

/// The first overrun of a space that had one. `held` was live beside it.
template <class Space, class Rows>
[[nodiscard]] capacity_shortfall build_first_shortfall(const Space& space, const clock_readings& time,
                                                       const std::vector<std::string>& paths, live_set held, const Rows& rows) {
  const capacity_overrun& overrun = space.first_overrun();
  capacity_shortfall result;
  result.requested = static_cast<std::int64_t>(overrun.asked.bytes);
  if (overrun.is_on_core) result.core = core_text(overrun.core.x0, overrun.core.y0);
  if (overrun.asked.operation() != 0) result.operation = paths[overrun.asked.operation()];
  result.category = static_cast<category>(overrun.asked.category());
  result.segment = rows.index_of(overrun.segment);
  result.time_ns = time.to_ns(overrun.stamp);
  result.free = space.capacity() - held.bytes;
  result.shortfall = result.requested - result.free;
  result.holders_known = overrun.has_holders;
  result.remedy = least_to_free(held.by_operation, result.shortfall);
  result.held = std::move(held);
  return result;
}

}  // namespace memprof::detail
