#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/marked_text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// @file
/// The lines of the facets "reserved" and "streams": what the allocator held of the device, what streams used beyond what was
/// live, and which of them held the memory.

namespace memprof::inline MEMPROF_ABI::detail {

/// Empty if no allocator reported what it holds.
[[gnu::cold]] inline void reserved_section(summary_section& section, const answer_topic& topic) {
  const reserved_profile& held = topic.space->reserved;
  if (held.peak == 0) return;
  section.lines.add_total(held.peak).add(" by the allocator, ");
  section.lines.add_bytes(std::max<std::int64_t>(held.peak - topic.space->cumulative_peak, 0)).add(" more than was ever live; ");
  section.lines.add_bytes(held.current).add(" at the end").end_line();
}

/// Bytes freed on streams that were still in use at the end. Blocks without a stream are live, too, and never active.
[[nodiscard, gnu::cold]] inline std::int64_t pending_at_end(const space_profile& space) {
  std::int64_t live = 0;
  for (const stream_usage& row : space.streams) live = add_saturating(live, row.cumulative_current);
  if (space.streams.empty()) live = space.cumulative_current;
  return std::max<std::int64_t>(space.active.current - live, 0);
}

/// Empty if streams were done with each block when it was freed, as far as the peak and the end show.
[[gnu::cold]] inline void active_section(summary_section& section, const answer_topic& topic) {
  const space_profile& space = *topic.space;
  const active_profile& used = space.active;
  const std::int64_t pending = pending_at_end(space);
  if (used.peak <= space.cumulative_peak && pending == 0) return;
  section.lines.add_total(used.peak).add(" with freed blocks that streams still used, ");
  section.lines.add_bytes(std::max<std::int64_t>(used.peak - space.cumulative_peak, 0)).add(" more than was ever live; ");
  section.lines.add_bytes(pending).add(" freed but in use at the end").end_line();
}

/// "stream default, private pool 0:1".
[[gnu::cold]] inline void add_stream(marked_text& line, const stream_usage& row) {
  if (row.stands_for_others) {
    line.add("all other streams and pools");
    return;
  }
  line.add("stream ").add_name(row.stream);
  if (row.pool == "unknown") {
    line.add(", pool unknown");
  } else if (!row.pool.empty()) {
    line.add(", private pool ").add_name(row.pool);
  }
}

/// A single stream with the allocator's own pool adds nothing to what the space already says.
[[nodiscard, gnu::cold]] inline bool are_worth_a_table(const vector<stream_usage>& streams) {
  return streams.size() > 1 || (streams.size() == 1 && !streams.front().pool.empty() && streams.front().pool != "unknown");
}

/// The first streams, which are those with the most reserved bytes; if none was asked for, only their number.
[[gnu::cold]] inline void stream_section(summary_section& section, const answer_topic& topic) {
  const vector<stream_usage>& streams = topic.space->streams;
  if (!are_worth_a_table(streams)) return;
  const auto count = static_cast<std::int64_t>(streams.size());
  if (topic.options.streams == 0) {
    const stream_usage& first = streams.front();
    section.lines.add_count(count, "stream and pool", "streams and pools").add("; the most, ");
    section.lines.add_bytes(first.reserved_peak).add(" reserved and ").add_bytes(first.cumulative_peak).add(" live, on ");
    add_stream(section.lines, first);
    section.lines.end_line();
    return;
  }
  section.table.has_titles = true;
  section.table.set_columns("Reserved peak\tat the end\tLive peak\tat the end\tAllocations\tStream and pool", "rrrrrl");
  const std::size_t shown = std::min(topic.options.streams, streams.size());
  marked_text& rows = section.table.rows;
  for (std::size_t index = 0; index < shown; ++index) {
    const stream_usage& row = streams[index];
    for (const std::int64_t bytes : {row.reserved_peak, row.reserved_current, row.cumulative_peak, row.cumulative_current})
      rows.add_bytes(bytes).next_cell();
    rows.add_count(row.allocation_count).next_cell();
    add_stream(rows, row);
    rows.end_line();
  }
  if (shown == streams.size()) return;
  const std::int64_t further = count - static_cast<std::int64_t>(shown);
  section.further_lines.add_count(further, "further stream and pool", "further streams and pools").end_line();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
