#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/marked_text.hpp>

#include <algorithm>
#include <cstdint>

/// @file
/// The lines of the facet "lifetimes": what an arena would save, and where reusing buffers would save most.

namespace memprof::inline MEMPROF_ABI::detail {

/// What an arena would save, and where reusing buffers would save most. Empty if no block was followed.
[[gnu::cold]] inline void lifetime_section(summary_section& section, const answer_topic& topic) {
  const auto& lifetimes = topic.space->facets.lifetimes;
  if (lifetimes.rows.empty()) return;
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
  marked_text& line = section.lines;
  line.add_count(passing).add(" of ").add_count(blocks, "block", "blocks").add(" lived within a single segment: ");
  line.add_bytes(bytes).add(" of allocations that an arena of ").add_bytes(arena).add(" would serve").end_line();
  if (busiest->allocation_count == busiest->peak_blocks || busiest->stands_for_others) return;
  line.add_count(busiest->allocation_count).add(" blocks of ").add_bytes(busiest->least_size).add(" to ");
  line.add(short_bytes(2 * static_cast<double>(busiest->least_size))).add(busiest->operation.empty() ? " " : " by ");
  add_owner(line, busiest->operation).add(", at most ").add_count(busiest->peak_blocks);
  line.add(" live at once: that many buffers would do").end_line();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
