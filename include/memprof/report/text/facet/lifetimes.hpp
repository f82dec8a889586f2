#pragma once

#include <memprof/report/text/page.hpp>
#include <memprof/report/text/quantity.hpp>

#include <algorithm>
#include <cstdint>

/// @file
/// The lines of the facet "lifetimes": what an arena would save, and where reusing buffers would save most.

namespace memprof::inline MEMPROF_ABI::detail {

/// What an arena would save, and where reusing buffers would save most. Empty if no block was followed.
[[nodiscard, gnu::cold]] page_section lifetime_section(const auto& space) {
  page_section section;
  section.heading = "Lifetimes";
  const auto& lifetimes = space.facets.lifetimes;
  if (lifetimes.rows.empty()) return section;
  std::int64_t blocks = 0;
  std::int64_t passing = 0;
  std::int64_t bytes = 0;
  std::int64_t arena = 0;
  const auto* busiest = &lifetimes.rows.front();
  for (const auto& row : lifetimes.rows) {
    blocks += row.allocation_count;
    passing += row.passing_count;
    bytes += row.passing_bytes;
    if (row.allocation_count - row.peak_blocks > busiest->allocation_count - busiest->peak_blocks) busiest = &row;
  }
  for (const auto& row : lifetimes.segments_by_name) arena = std::max(arena, row.peak);
  section.lines.push_back(grouped(passing) + " of " + grouped(blocks, "block", "blocks") + " lived within a single segment: " +
                          short_bytes(bytes) + " of allocations that an arena of " + short_bytes(arena) + " would serve");
  if (busiest->allocation_count == busiest->peak_blocks || busiest->stands_for_others) return section;
  page_line line{grouped(busiest->allocation_count) + " blocks of " + short_bytes(busiest->least_size) + " to " +
                 short_bytes(2 * static_cast<double>(busiest->least_size)) + " "};
  if (busiest->operation.empty()) {
    line.add("outside every operation");
  } else {
    line.add("by ").add_name(busiest->operation);
  }
  line.add(", at most " + grouped(busiest->peak_blocks) + " live at once: that many buffers would do");
  section.lines.push_back(line);
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
