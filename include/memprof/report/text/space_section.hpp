#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/space_kind.hpp>

#include <cstddef>
#include <cstdint>

/// @file
/// A line for each memory space but the first, and for each memory that several of them share.

namespace memprof::inline MEMPROF_ABI::detail {

/// A row for each space except the first, which has its own answer; those beyond the limit are only counted.
[[gnu::cold]] inline void space_section(summary_section& section, const answer_topic& topic) {
  section.table.set_columns("Space\tPeak\tLive at end\tFit\tPeak in", "lrrll");
  vector<std::size_t> others;
  for (std::size_t index = 1; index < topic.space_order.size(); ++index) {
    const std::size_t number = topic.space_order[index];
    if (has_anything(topic.source.spaces[number])) others.push_back(number);
  }
  const std::size_t shown = others.size() <= topic.limits.spaces + 1 ? others.size() : topic.limits.spaces;
  marked_text& rows = section.table.rows;
  for (std::size_t index = 0; index < shown; ++index) {
    const space_profile& space = topic.source.spaces[others[index]];
    rows.add_name(space.name).next_cell();
    rows.add("peak ").add_bytes(space.cumulative_peak).next_cell();
    rows.add("end ").add_bytes(space.cumulative_current).next_cell();
    if (!space.out_of_memory.empty()) {
      rows.add("out of memory", emphasis::alarm);
    } else if (space.first_shortfall.requested != 0) {
      rows.add("does not fit", emphasis::alarm);
    } else if (space.capacity != 0 && !space.capacity_is_per_core) {
      rows.add("fits, ").add_bytes(subtract_saturating(space.capacity, space.cumulative_peak)).add(" free");
    }
    rows.next_cell();
    if (space.cumulative_peak != 0) {
      rows.add_time(space.peak_time_ns);
      add_segment(rows, topic, space.peak_segment);
    }
    rows.end_line();
  }
  if (shown == others.size()) return;
  section.further_lines.add_count(static_cast<std::int64_t>(others.size() - shown))
      .add(" more spaces with peaks of at most ")
      .add_bytes(topic.source.spaces[others[shown]].cumulative_peak)
      .end_line();
}

/// The number of spaces in a memory that ever held anything.
[[nodiscard, gnu::cold]] inline std::size_t used_spaces_of(const memory_profile& memory, const profile& source) {
  std::size_t used = 0;
  for (const space_profile& space : source.spaces) {
    bool lies_in_it = false;
    for (const owned_bytes& part : memory.spaces) lies_in_it = lies_in_it || part.owner == space.name;
    used += lies_in_it && space.cumulative_peak != 0 ? 1 : 0;
  }
  return used;
}

/// A line for each memory shared by several spaces: their joint peak, and the share of each. Nothing if only one of them ever
/// held anything, as its own peak says the same.
[[gnu::cold]] inline void together_section(summary_section& section, const answer_topic& topic) {
  constexpr std::size_t max_spaces = 4;
  marked_text& line = section.lines;
  for (const memory_profile& memory : topic.source.memories) {
    if (used_spaces_of(memory, topic.source) < 2) continue;
    line.add_total(memory.cumulative_peak, emphasis::strong).add(" of ").add_name(memory.name, emphasis::strong);
    add_place(line, topic, memory.peak_time_ns, memory.peak_segment, memory.peak_operation);
    std::int64_t others = 0;
    for (std::size_t index = 0; index < memory.spaces.size(); ++index) {
      const owned_bytes& part = memory.spaces[index];
      if (index >= max_spaces) {
        others = add_saturating(others, part.bytes);
      } else {
        line.add(index == 0 ? ": " : ", ").add_name(part.owner).add(" ").add_bytes(part.bytes);
      }
    }
    if (others != 0) line.add(", others ").add_bytes(others);
    line.end_line();
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
