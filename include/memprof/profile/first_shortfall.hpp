#pragma once

#include <memprof/ledger/shortfall_record.hpp>
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
/// What a space's first shortfall was in words of the profile, and what would have prevented it. Templates, like all that builds
/// profiles, so that only units that read one pay for compiling them.

namespace memprof::inline MEMPROF_ABI::detail {

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

/// The first shortfall of a space that had one. `held` was live beside it.
template <class Space, class Rows>
[[nodiscard]] capacity_shortfall build_first_shortfall(const Space& space, const clock_readings& time,
                                                       const std::vector<std::string>& paths, live_set held, const Rows& rows) {
  const shortfall_record& shortfall = space.first_shortfall();
  capacity_shortfall result;
  result.requested = static_cast<std::int64_t>(shortfall.asked.bytes);
  if (shortfall.is_on_core) result.core = core_text(shortfall.core.x0, shortfall.core.y0);
  if (shortfall.asked.operation() != 0) result.operation = paths[shortfall.asked.operation()];
  result.category = static_cast<category>(shortfall.asked.category());
  result.segment = rows.index_of(shortfall.segment);
  result.time_ns = time.to_ns(shortfall.stamp);
  result.free = space.capacity() - held.bytes;
  result.shortfall = result.requested - result.free;
  result.holders_known = shortfall.has_holders;
  result.remedy = least_to_free(held.by_operation, result.shortfall);
  result.held = std::move(held);
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
