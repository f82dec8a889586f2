#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/peak_section.hpp>
#include <memprof/report/text/place_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/space_kind.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

/// @file
/// The answers about a device: what its allocator reserved, what streams used beyond what was live, what lay on its cores, which
/// streams had it, and when it was full.

namespace memprof::inline MEMPROF_ABI::detail {

/// Nothing if no allocator reported what it holds.
[[nodiscard]] page_section reserved_section(const auto& space) {
  page_section section;
  section.heading = "Reserved";
  const reserved_profile& held = space.reserved;
  if (held.peak == 0) return section;
  section.lines.push_back(short_and_exact_bytes(held.peak) + " by the allocator, " +
                          short_bytes(std::max(held.peak - space.cumulative_peak, std::int64_t{0})) +
                          " more than was ever live; " + short_bytes(held.current) + " at the end");
  return section;
}

/// Nothing where streams were done with each block when it was freed, as far as peak and end tell.
[[nodiscard]] page_section active_section(const auto& space) {
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
[[nodiscard]] page_line stream_text(const auto& row) {
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

/// One stream with the allocator's own pool holds all that is said of the space anyway.
[[nodiscard]] bool are_worth_a_table(const auto& streams) {
  return streams.size() > 1 || (streams.size() == 1 && !streams.front().pool.empty() && streams.front().pool != "unknown");
}

/// The first `most` streams, which are those with the most reserved bytes; with 0 only how many there are.
[[nodiscard]] page_section stream_section(const auto& space, std::size_t most) {
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

/// The busiest core, and the first `most` rectangles of cores.
[[nodiscard]] page_section core_section(const auto& space, std::size_t most) {
  page_section section;
  section.heading = "Cores";
  if (!lies_on_cores(space)) return section;
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

/// The first allocation for which the device had no memory, and how many more there were.
[[nodiscard]] page_section failure_section(const auto& source, const auto& space, const segment_steps& steps) {
  page_section section;
  section.heading = "Failed";
  if (space.out_of_memory.empty()) return section;
  const auto& failed = space.out_of_memory.front();
  page_line line;
  line.add("out of memory", emphasis::alarm).add(" requesting " + short_bytes(failed.requested));
  add_place(line, source, steps, failed.time_ns, failed.segment, failed.operation);
  line.add("; ");
  if (failed.device_free >= 0) line.add(short_bytes(failed.device_free) + " free on the device, ");
  // Nothing was ever reserved where nobody reported it.
  if (space.reserved.peak != 0) {
    line.add(short_bytes(failed.reserved_bytes) + " reserved, " + short_bytes(failed.live_bytes) + " of it live");
  } else {
    line.add(short_bytes(failed.live_bytes) + " live");
  }
  const std::int64_t further =
      add_saturating(static_cast<std::int64_t>(space.out_of_memory.size()) - 1, space.further_out_of_memory.count);
  if (further > 0) line.add("; " + grouped(further, "more failure", "more failures"));
  section.lines.push_back(line);
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
