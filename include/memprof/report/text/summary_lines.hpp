#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/check_section.hpp>
#include <memprof/report/text/checkpoint_section.hpp>
#include <memprof/report/text/end_section.hpp>
#include <memprof/report/text/facet/capacity.hpp>
#include <memprof/report/text/facet/cores.hpp>
#include <memprof/report/text/facet/out_of_memory.hpp>
#include <memprof/report/text/facet/reserved.hpp>
#include <memprof/report/text/facet/streams.hpp>
#include <memprof/report/text/facet_lines.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/page_text.hpp>
#include <memprof/report/text/peak_section.hpp>
#include <memprof/report/text/process_section.hpp>
#include <memprof/report/text/run_section.hpp>
#include <memprof/report/text/segment_section.hpp>
#include <memprof/report/text/space_section.hpp>
#include <memprof/report/text/text_options.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

/// @file
/// The summary: its answers, their order, and how many lines each may take.

namespace memprof::inline MEMPROF_ABI::detail {

/// How much of each answer is shown.
struct summary_limits {
  std::size_t owners;
  std::size_t owners_at_end;
  std::size_t faults;
  std::size_t spaces;
  std::size_t growing_spaces;
  std::size_t lines_each;  ///< of a paragraph
};

/// From the most readable to one that always leaves room for the rest.
inline constexpr std::array<summary_limits, 5> summary_levels{
    {{5, 3, 8, 6, 3, 3}, {5, 3, 4, 3, 3, 2}, {4, 2, 4, 3, 2, 2}, {3, 1, 3, 2, 1, 2}, {3, 1, 3, 2, 1, 1}}};

/// No limit on the kinds of faults.
inline constexpr std::size_t all_faults = 1000;

/// The fewest rows of the table of segments.
inline constexpr std::size_t least_segment_rows = 8;

[[nodiscard, gnu::cold]] inline bool asks_for_more(const text_options& options) {
  const text_options usual;
  return options.owners > usual.owners || options.largest_blocks != 0 || options.streams != 0 || options.core_ranges != 0 ||
         options.checkpoints > usual.checkpoints || options.all_spaces || options.all_segments || options.all_faults;
}

/// Whether the answers are about one of several spaces, and so have to name it.
[[nodiscard, gnu::cold]] inline bool are_several(const std::vector<const space_profile*>& spaces, const text_options& options) {
  if (spaces.size() < 2) return false;
  return options.all_spaces ||
         std::any_of(spaces.begin() + 1, spaces.end(), [](const space_profile* space) { return has_anything(*space); });
}

/// The answers about a space, in reading order; `growth` is the one about its growth.
[[nodiscard, gnu::cold]] std::vector<page_section> answers_for(const auto& source, const auto& space, const segment_steps& steps,
                                                               page_section growth, const text_options& options,
                                                               const summary_limits& limits) {
  const bool is_crowded = limits.lines_each == 1;  // hardly any room for the rest
  return {failure_section(source, space, steps),
          peak_section(source, space, steps),
          owner_section(space.live_at_peak, std::min(options.owners, limits.owners)),
          block_section(space.live_at_peak, options.largest_blocks),
          core_section(space, options.core_ranges),
          reserved_section(space),
          is_crowded ? page_section{} : active_section(space),
          stream_section(space, options.streams),
          fit_section(source, space, steps),
          std::move(growth),
          end_section(source, space, std::min(options.owners, limits.owners_at_end), !is_crowded)};
}

/// Everything but the tables of segments and checkpoints.
[[nodiscard, gnu::cold]] std::vector<page_section> summary_sections(const auto& source,
                                                                    const std::vector<const space_profile*>& spaces,
                                                                    const segment_steps& steps, const text_options& options,
                                                                    const summary_limits& limits) {
  std::vector<page_section> sections{run_section(source, steps)};
  const std::size_t in_full = options.all_spaces ? spaces.size() : std::min<std::size_t>(1, spaces.size());
  for (std::size_t index = 0; index < in_full; ++index) {
    // With all spaces in full, each says how it grows.
    const std::vector<const space_profile*> about =
        options.all_spaces ? std::vector<const space_profile*>{spaces[index]} : spaces;
    page_section growth = growth_section(source, about, are_several(spaces, options), limits.growing_spaces);
    for (page_section& section : answers_for(source, *spaces[index], steps, std::move(growth), options, limits)) {
      sections.push_back(std::move(section));
    }
    if (limits.lines_each > 1) {
      for (page_section& section : facet_sections(*spaces[index])) sections.push_back(std::move(section));
    }
  }
  if (!options.all_spaces) sections.push_back(space_section(source, spaces, steps, limits.spaces));
  sections.push_back(together_section(source, steps));
  sections.push_back(process_section(source));
  sections.push_back(check_section(source, limits.faults));
  sections.push_back(fact_section(source));
  return sections;
}

/// The most lines that the table of checkpoints takes, including the empty line before it.
[[nodiscard, gnu::cold]] std::size_t lines_of_checkpoints(const auto& source, const text_options& options) {
  if (source.checkpoints.empty() || options.checkpoints == 0) return 0;
  constexpr std::size_t around = 3;  // empty line, titles, count of those left out
  return around + std::min(options.checkpoints, source.checkpoints.size());
}

/// The lines of a summary, without line endings.
[[nodiscard, gnu::cold]] std::vector<std::string> summary_lines(const auto& source, const text_options& options) {
  const std::size_t columns = std::max<std::size_t>(options.columns, 60);
  const std::size_t max_lines = std::max<std::size_t>(options.max_lines, 32);
  const std::vector<const space_profile*> spaces = ordered_spaces(source, options);
  const segment_steps steps = steps_of(source);
  std::vector<std::string> lines;
  const auto add = [&](const page_section& section, std::size_t lines_each) {
    for (std::string& line : section_text(section, columns, lines_each, options.is_colored)) lines.push_back(std::move(line));
  };
  if (spaces.empty()) {
    add(run_section(source, steps), 2);
    lines.emplace_back("No allocations recorded.");
    for (std::string& cause : causes_of_silence(source)) lines.push_back(std::move(cause));
    add(process_section(source), 2);
    add(check_section(source, summary_levels[0].faults), 2);
    add(fact_section(source), 2);
    return lines;
  }
  const bool names_spaces = are_several(spaces, options);
  const std::size_t least_lines_of_tables = 2 + (names_spaces ? 1 : 0) + least_segment_rows;
  std::size_t for_checkpoints = lines_of_checkpoints(source, options);
  for (summary_limits limits : summary_levels) {
    if (options.owners > text_options{}.owners) limits.owners = limits.owners_at_end = options.owners;
    if (options.all_faults) limits.faults = all_faults;
    lines.clear();
    for (const page_section& section : summary_sections(source, spaces, steps, options, limits)) add(section, limits.lines_each);
    if (asks_for_more(options) || lines.size() + least_lines_of_tables + for_checkpoints <= max_lines) break;
  }
  if (!asks_for_more(options) && lines.size() + least_lines_of_tables + for_checkpoints > max_lines) for_checkpoints = 0;
  const std::size_t tables = options.all_spaces ? spaces.size() : 1;
  for (std::size_t index = 0; index < tables && !source.segments.empty(); ++index) {
    const space_profile& space = *spaces[index];
    lines.emplace_back();
    const std::size_t around = 1 + (names_spaces ? 1 : 0) + for_checkpoints;  // with the titles
    const std::size_t room = asks_for_more(options) ? max_lines : max_lines - std::min(max_lines, lines.size() + around);
    page_section table = options.all_segments ? every_segment_section(source, space, steps)
                                              : segment_section(segments_by_name(source, space), room);
    if (names_spaces && !table.table.rows.empty()) {
      table.table.first_title = title_with_space(table.table, space);
      if (full_width(table.table) > columns) {
        table.table.first_title.clear();
        lines.push_back("Segments in " + shortened(on_one_line(space.name), columns - 12));
      }
    }
    add(table, 1);
  }
  if (for_checkpoints != 0) {
    lines.emplace_back();
    add(checkpoint_section(source, options.checkpoints, options.largest_blocks), 1);
  }
  return lines;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
