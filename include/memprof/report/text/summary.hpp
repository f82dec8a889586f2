#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/check_section.hpp>
#include <memprof/report/text/checkpoint_section.hpp>
#include <memprof/report/text/device_section.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/end_section.hpp>
#include <memprof/report/text/facet/capacity.hpp>
#include <memprof/report/text/facet/cores.hpp>
#include <memprof/report/text/facet/lifetimes.hpp>
#include <memprof/report/text/facet/streams.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/peak_section.hpp>
#include <memprof/report/text/process_section.hpp>
#include <memprof/report/text/run_section.hpp>
#include <memprof/report/text/section_text.hpp>
#include <memprof/report/text/segment_lines.hpp>
#include <memprof/report/text/segment_section.hpp>
#include <memprof/report/text/space_kind.hpp>
#include <memprof/report/text/space_section.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/report/text/worker_section.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

/// @file
/// The summary: its answers, their order, and how many lines each may take.

namespace memprof::inline MEMPROF_ABI::detail {

/// A row of the summary: a heading, and the function that fills its section. A section without lines is left out.
struct answer {
  std::string_view heading;
  void (*fill)(summary_section&, const answer_topic&);
  bool needs_room = false;  ///< left out if the limits are tight
  bool is_verdict = false;  ///< whether memory suffices, or what the numbers are worth: keeps its text longest
};

inline constexpr answer run_answer{run_heading, run_section};

/// The answers about a space, in reading order.
inline constexpr answer space_answers[] = {
    {"Failed", failure_section, false, true},
    {"Peak", peak_section, false, true},
    {"Owners", owner_section},
    {"Workers", worker_section},
    {"Blocks", block_section},
    {"Cores", core_section},
    {"Reserved", reserved_section},
    {"Active", active_section, true},
    {"Streams", stream_section},
    {"Fit", fit_section, false, true},
    {"Growth", growth_section},
    {"At end", end_section},
    {"Lifetimes", lifetime_section, true},
};

inline constexpr answer answer_about_other_spaces{"Spaces", space_section};

/// The answers about the run.
inline constexpr answer run_answers[] = {
    {"Together", together_section},           {"Process", process_section}, {"Device", device_section},
    {"Accuracy", check_section, false, true}, {"Facts", fact_section},
};

/// From the most readable to one that always leaves room for the rest: rows go before text, and the text of verdicts goes last.
inline constexpr summary_limits summary_levels[] = {{5, 3, 8, 6, 3, 3, 4, 8}, {4, 2, 8, 3, 3, 3, 4, 8}, {3, 1, 4, 3, 2, 3, 4, 6},
                                                    {3, 1, 4, 3, 2, 2, 4, 6}, {2, 1, 3, 2, 1, 2, 3, 5}, {2, 1, 3, 2, 1, 1, 3, 5},
                                                    {1, 1, 3, 2, 1, 1, 2, 4}, {3, 1, 3, 2, 1, 1, 1, 8}};

[[nodiscard, gnu::cold]] inline summary_limits limits_for(const text_options& options, std::size_t level) {
  constexpr std::size_t all = 1000;
  summary_limits limits = summary_levels[level];
  if (options.owners > text_options{}.owners) limits.owners = limits.owners_at_end = options.owners;
  if (options.all_faults) limits.anomalies = all;
  return limits;
}

[[nodiscard, gnu::cold]] inline bool asks_for_more(const text_options& options) {
  const text_options usual;
  return options.owners > usual.owners || options.largest_blocks != 0 || options.streams != 0 || options.core_ranges != 0 ||
         options.checkpoints > usual.checkpoints || options.all_spaces || options.all_segments || options.all_faults;
}

/// Calls `show` with each section of the summary, in order: everything but the tables of segments and checkpoints.
template <class Show>
void for_each_section(answer_topic topic, Show&& show) {
  const auto answer_all = [&](const answer* first, const answer* last) {
    for (; first != last; ++first) {
      if (first->needs_room && topic.limits.are_tight()) continue;
      summary_section section;
      section.heading = first->heading;
      section.is_verdict = first->is_verdict;
      first->fill(section, topic);
      show(section);
    }
  };
  answer_all(&run_answer, &run_answer + 1);
  const std::size_t spaces = topic.space_order.size();
  const std::size_t in_full = topic.options.all_spaces ? spaces : std::min<std::size_t>(spaces, 1);
  for (std::size_t index = 0; index < in_full; ++index) {
    topic.space = &topic.source.spaces[topic.space_order[index]];
    answer_all(std::begin(space_answers), std::end(space_answers));
  }
  if (!topic.options.all_spaces) answer_all(&answer_about_other_spaces, &answer_about_other_spaces + 1);
  answer_all(std::begin(run_answers), std::end(run_answers));
}

/// The most lines that the table of checkpoints takes, including the empty line before it.
[[nodiscard, gnu::cold]] inline std::size_t lines_of_checkpoints(const profile& source, const text_options& options) {
  if (source.checkpoints.empty() || options.checkpoints == 0) return 0;
  constexpr std::size_t around = 3;  // empty line, titles, count of those left out
  return around + std::min(options.checkpoints, source.checkpoints.size());
}

/// The summary as text.
[[nodiscard, gnu::cold]] inline std::string summary_text(const profile& source, const text_options& options) {
  const std::size_t columns = std::max<std::size_t>(options.columns, 60);
  const std::size_t max_lines = std::max<std::size_t>(options.max_lines, 32);
  const vector<std::size_t> order = space_order(source, options);
  const segment_steps steps = steps_of(source);
  const bool names_spaces = are_several(source, order, options);
  const std::size_t segment_rows = order.empty() ? 0 : rows_of_names(segments_by_name(source, source.spaces[order.front()]));
  std::size_t for_checkpoints = lines_of_checkpoints(source, options);
  std::string text;
  const auto lines = [&] { return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')); };
  std::size_t for_segments = 0;  // with the empty line before them and their titles
  const auto has_room = [&] { return asks_for_more(options) || lines() + for_segments + for_checkpoints <= max_lines; };
  for (std::size_t level = 0; level < std::size(summary_levels); ++level) {
    const answer_topic topic{source, steps, order, options, limits_for(options, level)};
    if (segment_rows != 0) for_segments = 2 + (names_spaces ? 1 : 0) + std::min(segment_rows, topic.limits.segment_rows);
    text.clear();
    for_each_section(topic, [&](const summary_section& section) {
      const std::size_t most = section.is_verdict ? topic.limits.lines_of_verdicts : topic.limits.lines_each;
      append_section(text, section, columns, order.empty() ? 2 : most, options.is_colored);
      if (order.empty() && section.heading == run_heading)
        text.append("No allocations recorded.\n").append(causes_of_silence(source));
    });
    if (order.empty()) return text;
    if (has_room()) break;
  }
  if (!has_room()) for_checkpoints = 0;
  const std::size_t tables = options.all_spaces ? order.size() : 1;
  for (std::size_t index = 0; index < tables && !source.segments.empty(); ++index) {
    const space_profile& space = source.spaces[order[index]];
    text += '\n';
    const std::size_t around = 1 + (names_spaces ? 1 : 0) + for_checkpoints;  // with the titles
    const std::size_t room = asks_for_more(options) ? max_lines : max_lines - std::min(max_lines, lines() + around);
    summary_section section = options.all_segments ? every_segment_section(source, space, steps)
                                                   : segment_section(segments_by_name(source, space), room);
    if (names_spaces && !section.table.rows.empty()) {
      const std::string titles = section.table.titles;
      section.table.titles = titles_with_space(titles, space.name);
      if (table_layout{section.table}.full_width() > columns) {
        section.table.titles = titles;
        text += "Segments in " + shortened(on_one_line(space.name), columns - 12) + '\n';
      }
    }
    append_section(text, section, columns, 1, options.is_colored);
  }
  if (for_checkpoints != 0) {
    text += '\n';
    append_section(text, checkpoint_section(source, options), columns, 1, options.is_colored);
  }
  return text;
}

/// A profile in the format that the options name. Neither cold nor inlined: code that always calls a cold function counts as cold
/// itself, and the caller is the program's own.
[[nodiscard, gnu::noinline]] inline std::string render_summary(const profile& source, const text_options& options) {
  if (options.format == text_format::summary) return summary_text(source, options);
  std::string text;
  append_tracker_lines(text, source, options);
  return text;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
