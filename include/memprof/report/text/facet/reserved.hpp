#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/quantity.hpp>

#include <algorithm>
#include <cstdint>

/// @file
/// The line of the facet "reserved": what the allocator held of the device.

namespace memprof::inline MEMPROF_ABI::detail {

/// Empty if no allocator reported what it holds.
[[nodiscard, gnu::cold]] page_section reserved_section(const auto& space) {
  page_section section;
  section.heading = "Reserved";
  const reserved_profile& held = space.reserved;
  if (held.peak == 0) return section;
  section.lines.push_back(short_and_exact_bytes(held.peak) + " by the allocator, " +
                          short_bytes(std::max(held.peak - space.cumulative_peak, std::int64_t{0})) +
                          " more than was ever live; " + short_bytes(held.current) + " at the end");
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
