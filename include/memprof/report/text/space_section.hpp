#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/place_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// @file
/// The order of the memory spaces, and a line for each but the first.

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] bool is_full(const auto& space) { return space.first_shortfall.requested != 0 || !space.out_of_memory.empty(); }

[[nodiscard, gnu::cold]] bool has_anything(const auto& space) {
  return space.cumulative_peak != 0 || space.reserved.peak != 0 || is_full(space) || space.cumulative_current != 0;
}

/// The spaces, most relevant first: the requested one, then those that were full, then by peak. Throws `memprof::error` if the
/// requested space does not exist.
[[nodiscard, gnu::cold]] std::vector<const space_profile*> ordered_spaces(const auto& source, const text_options& options) {
  std::vector<const space_profile*> spaces;
  const space_profile* const chosen = options.primary_space.empty() ? nullptr : &source.space(options.primary_space);
  for (const space_profile& space : source.spaces) spaces.push_back(&space);
  sort_rows(spaces.data(), spaces.size(), [&](const space_profile* left, const space_profile* right) {
    if ((left == chosen) != (right == chosen)) return left == chosen;
    if (is_full(*left) != is_full(*right)) return is_full(*left);
    if (left->cumulative_peak != right->cumulative_peak) return left->cumulative_peak > right->cumulative_peak;
    return left < right;  // in the order of the profile
  });
  return spaces;
}

/// A row for each space except the first, which has its own answer; those beyond `most` are only counted.
[[nodiscard, gnu::cold]] page_section space_section(const auto& source, const std::vector<const space_profile*>& spaces,
                                                    const segment_steps& steps, std::size_t most) {
  page_section section;
  section.heading = "Spaces";
  section.table.columns = {{"Space", false}, {"Peak", true}, {"Live at end", true}, {"Fit", false}, {"Peak in", false}};
  std::vector<const space_profile*> others;
  for (std::size_t index = 1; index < spaces.size(); ++index) {
    if (has_anything(*spaces[index])) others.push_back(spaces[index]);
  }
  const std::size_t shown = others.size() <= most + 1 ? others.size() : most;
  for (std::size_t index = 0; index < shown; ++index) {
    const space_profile& space = *others[index];
    page_line fit;
    if (!space.out_of_memory.empty()) {
      fit.add("out of memory", emphasis::alarm);
    } else if (space.first_shortfall.requested != 0) {
      fit.add("does not fit", emphasis::alarm);
    } else if (space.capacity != 0 && !space.capacity_is_per_core) {
      fit.add("fits, " + short_bytes(subtract_saturating(space.capacity, space.cumulative_peak)) + " free");
    }
    page_line place;
    place.add(short_time(space.peak_time_ns));
    add_segment(place, source, steps, space.peak_segment);
    section.table.rows.push_back({page_line{}.add_name(space.name), "peak " + short_bytes(space.cumulative_peak),
                                  "end " + short_bytes(space.cumulative_current), fit,
                                  space.cumulative_peak == 0 ? page_line{} : place});
  }
  if (shown < others.size()) {
    section.further_lines.emplace_back(grouped(static_cast<std::int64_t>(others.size() - shown)) +
                                       " more spaces with peaks of at most " + short_bytes(others[shown]->cumulative_peak));
  }
  return section;
}

/// A line for each memory shared by several spaces: their joint peak, and the share of each. Nothing if only one of them ever
/// held anything, as its own peak says the same.
[[nodiscard, gnu::cold]] page_section together_section(const auto& source, const segment_steps& steps) {
  constexpr std::size_t max_spaces = 4;
  page_section section;
  section.heading = "Together";
  for (const memory_profile& memory : source.memories) {
    std::size_t used = 0;
    for (const space_profile& space : source.spaces) {
      const bool lies_in_it = std::any_of(memory.spaces.begin(), memory.spaces.end(),
                                          [&](const owned_bytes& part) { return part.owner == space.name; });
      used += lies_in_it && space.cumulative_peak != 0 ? 1 : 0;
    }
    if (used < 2) continue;
    page_line line;
    line.add(short_and_exact_bytes(memory.cumulative_peak), emphasis::strong).add(" of ").add_name(memory.name, emphasis::strong);
    add_place(line, source, steps, memory.peak_time_ns, memory.peak_segment, memory.peak_operation);
    std::int64_t others = 0;
    for (std::size_t index = 0; index < memory.spaces.size(); ++index) {
      const owned_bytes& part = memory.spaces[index];
      if (index >= max_spaces) {
        others = add_saturating(others, part.bytes);
        continue;
      }
      line.add(index == 0 ? ": " : ", ").add_name(part.owner).add(" " + short_bytes(part.bytes));
    }
    if (others != 0) line.add(", others " + short_bytes(others));
    section.lines.push_back(line);
  }
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
