#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/place_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/trace/run_mode.hpp>

#include <cstdint>
#include <string>

/// @file
/// The first line of a report: the run it describes.

namespace memprof::inline MEMPROF_ABI::detail {

/// The heading of the first line; the toolkit's summary_text_reader looks for it.
inline constexpr std::string_view run_heading = "memprof";

/// "nano_gpt --steps 200, rank 0 of 4: 200 steps in 603 segments, 4.21 s".
[[nodiscard, gnu::cold]] page_section run_section(const auto& source, const segment_steps& steps) {
  page_section section;
  section.heading = run_heading;
  page_line line;
  if (!source.process.command_line.empty()) {
    line.add_command(source.process.command_line);
    if (source.process.rank >= 0) {
      line.add(", rank " + std::to_string(source.process.rank));
      if (source.process.world_size > 0) line.add(" of " + std::to_string(source.process.world_size));
    }
    line.add(": ");
  }
  if (steps.count > 1) line.add(grouped(steps.count, "step", "steps") + " in ");
  line.add(grouped(count_of_segments(source), "segment", "segments") + ", " + short_time(source.duration_ns));
  if (source.mode == run_mode::no_dispatch) line.add("; no_dispatch: real sizes and lifetimes, nothing allocated");
  if (!source.complete) line.add("; capture not ended, numbers so far", emphasis::caution);
  section.lines.push_back(line);
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
