#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/quantity.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// @file
/// The lines of the facet "streams": what streams used beyond what was live, and which of them held the memory.

namespace memprof::inline MEMPROF_ABI::detail {

/// Empty if streams were done with each block when it was freed, as far as the peak and the end show.
[[nodiscard, gnu::cold]] page_section active_section(const auto& space) {
  page_section section;
  section.heading = "Active";
  const active_profile& used = space.active;
  if (used.peak <= space.cumulative_peak && used.current <= space.cumulative_current) return section;
  const auto beyond = [](std::int64_t bytes, std::int64_t live) { return short_bytes(std::max(bytes - live, std::int64_t{0})); };
  section.lines.push_back(short_and_exact_bytes(used.peak) + " with freed blocks that streams still used, " +
                          beyond(used.peak, space.cumulative_peak) + " more than was ever live; " +
                          beyond(used.current, space.cumulative_current) + " freed but in use at the end");
  return section;
}

/// "stream default, private pool 0:1".
[[nodiscard, gnu::cold]] page_line stream_text(const auto& row) {
  page_line line;
  if (row.stands_for_others) return line.add("all other streams and pools");
  line.add("stream ").add_name(row.stream);
  if (row.pool == "unknown") {
    line.add(", pool unknown");
  } else if (!row.pool.empty()) {
    line.add(", private pool ").add_name(row.pool);
  }
  return line;
}

/// A single stream with the allocator's own pool adds nothing to what the space already says.
[[nodiscard, gnu::cold]] bool are_worth_a_table(const auto& streams) {
  return streams.size() > 1 || (streams.size() == 1 && !streams.front().pool.empty() && streams.front().pool != "unknown");
}

/// The first `most` streams, which are those with the most reserved bytes; if `most` is 0, only their number.
[[nodiscard, gnu::cold]] page_section stream_section(const auto& space, std::size_t most) {
  page_section section;
  section.heading = "Streams";
  if (!are_worth_a_table(space.streams)) return section;
  const auto& first = space.streams.front();
  const auto count = static_cast<std::int64_t>(space.streams.size());
  if (most == 0) {
    page_line line{grouped(count, "stream and pool", "streams and pools") + "; the most, " + short_bytes(first.reserved_peak) +
                   " reserved and " + short_bytes(first.cumulative_peak) + " live, on "};
    section.lines.push_back(line.append(stream_text(first)));
    return section;
  }
  section.table.has_titles = true;
  section.table.columns = {{"Reserved peak", true}, {"at the end", true},  {"Live peak", true},
                           {"at the end", true},    {"Allocations", true}, {"Stream and pool", false}};
  const std::size_t shown = std::min(most, space.streams.size());
  for (std::size_t index = 0; index < shown; ++index) {
    const auto& row = space.streams[index];
    section.table.rows.push_back({short_bytes(row.reserved_peak), short_bytes(row.reserved_current),
                                  short_bytes(row.cumulative_peak), short_bytes(row.cumulative_current),
                                  grouped(row.allocation_count), stream_text(row)});
  }
  if (shown < space.streams.size()) {
    section.further_lines.push_back(
        grouped(count - static_cast<std::int64_t>(shown), "further stream and pool", "further streams and pools"));
  }
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
