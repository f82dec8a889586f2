#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/space_kind.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// @file
/// The lines of the facet "cores": what was on the busiest core, and in which rectangles of cores.

namespace memprof::inline MEMPROF_ABI::detail {

/// The busiest core, and the first rectangles of cores.
[[gnu::cold]] inline void core_section(summary_section& section, const answer_topic& topic) {
  const space_profile& space = *topic.space;
  if (!has_blocks_on_cores(space)) return;
  const core_peaks& peaks = space.cores.peaks;
  section.lines.add_total(peaks.total).add(" at most on one core");
  if (!peaks.busiest_core.empty()) section.lines.add(", ").add_name(peaks.busiest_core);
  section.lines.add("; circular buffers at most ").add_bytes(peaks.circular_buffers);
  section.lines.add(", buffers ").add_bytes(peaks.buffers).end_line();
  section.table.has_titles = true;
  section.table.set_columns("Total\tCircular buffers\tBuffers\tCores", "rrrl");
  const std::size_t shown = std::min(topic.options.core_ranges, space.cores.ranges.size());
  marked_text& rows = section.table.rows;
  for (std::size_t index = 0; index < shown; ++index) {
    const core_range_peaks& row = space.cores.ranges[index];
    rows.add_bytes(row.peaks.total).next_cell().add_bytes(row.peaks.circular_buffers).next_cell();
    rows.add_bytes(row.peaks.buffers).next_cell().add_name(row.range).end_line();
  }
  if (shown == 0 || shown == space.cores.ranges.size()) return;
  const auto further = static_cast<std::int64_t>(space.cores.ranges.size() - shown);
  section.further_lines.add_count(further, "further rectangle", "further rectangles").end_line();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
