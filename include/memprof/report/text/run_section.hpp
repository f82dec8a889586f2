#pragma once

#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// The first and the last line of a report: the run it describes, and what else the sources know about it.

namespace memprof::inline MEMPROF_ABI::detail {

/// The heading of the first line; the toolkit's summary_text_reader looks for it.
inline constexpr std::string_view run_heading = "memprof";

/// "nano_gpt --steps 200, rank 0 of 4: 200 steps in 603 segments, 4.21 s".
[[gnu::cold]] inline void run_section(summary_section& section, const answer_topic& topic) {
  const profile& source = topic.source;
  marked_text& line = section.lines;
  if (!source.process.command_line.empty()) {
    line.add_command(source.process.command_line);
    if (source.process.rank >= 0) {
      line.add(", rank " + std::to_string(source.process.rank));
      if (source.process.world_size > 0) line.add(" of " + std::to_string(source.process.world_size));
    }
    line.add(": ");
  }
  if (topic.steps.count > 1) line.add_count(topic.steps.count, "step", "steps").add(" in ");
  line.add_count(count_of_segments(source), "segment", "segments").add(", ").add_time(source.duration_ns);
  if (source.mode == run_mode::no_dispatch) line.add("; no_dispatch: real sizes and lifetimes, nothing allocated");
  if (!source.complete) line.add("; capture not ended, numbers so far", emphasis::caution);
  line.end_line();
}

/// The tables of facts: what sources know that is not memory over time. Every capture has `process_memory`, so it says nothing.
[[gnu::cold]] inline void fact_section(summary_section& section, const answer_topic& topic) {
  marked_text& line = section.lines;
  for (const fact_table& table : topic.source.facts) {
    if (table.rows.empty() || table.name == process_memory::table) continue;
    if (!line.empty()) line.add(", ");
    line.add_name(table.name).add(" (").add_count(static_cast<std::int64_t>(table.rows.size()), "row", "rows").add(")");
  }
  if (!line.empty()) line.add("; memprof show --facts NAME prints a table").end_line();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
