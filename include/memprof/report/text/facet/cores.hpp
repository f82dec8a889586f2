#pragma once

#include <memprof/report/text/page.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/space_kind.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// @file
/// The lines of the facet "cores": what was on the busiest core, and in which rectangles of cores.

namespace memprof::inline MEMPROF_ABI::detail {

/// The busiest core, and the first `most` rectangles of cores.
[[nodiscard, gnu::cold]] page_section core_section(const auto& space, std::size_t most) {
  page_section section;
  section.heading = "Cores";
  if (!has_blocks_on_cores(space)) return section;
  const auto& peaks = space.cores.peaks;
  page_line line{short_and_exact_bytes(peaks.total) + " at most on one core"};
  if (!peaks.busiest_core.empty()) line.add(", ").add_name(peaks.busiest_core);
  line.add("; circular buffers at most " + short_bytes(peaks.circular_buffers) + ", buffers " + short_bytes(peaks.buffers));
  section.lines.push_back(line);
  section.table.has_titles = true;
  section.table.columns = {{"Total", true}, {"Circular buffers", true}, {"Buffers", true}, {"Cores", false}};
  const std::size_t shown = std::min(most, space.cores.ranges.size());
  for (std::size_t index = 0; index < shown; ++index) {
    const auto& row = space.cores.ranges[index];
    section.table.rows.push_back({short_bytes(row.peaks.total), short_bytes(row.peaks.circular_buffers),
                                  short_bytes(row.peaks.buffers), page_line{}.add_name(row.range)});
  }
  if (shown != 0 && shown < space.cores.ranges.size()) {
    section.further_lines.push_back(
        grouped(static_cast<std::int64_t>(space.cores.ranges.size() - shown), "further rectangle", "further rectangles"));
  }
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
