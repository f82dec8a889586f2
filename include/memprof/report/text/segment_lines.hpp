#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/core_lines.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

/// @file
/// The part of the text report that scripts read: line for line what the memory tracker of tt-train prints, so that parsers of
/// its logs (analyze_memory.py, extract_results.py) read ours. Lines of further memory spaces stand where those parsers look
/// past.

namespace memprof::detail {

/// The space that the options choose, or a null pointer if there is none; one whose blocks lie on cores has lines of its own.
[[nodiscard]] const space_profile* primary_space(const auto& source, const text_options& options) {
  if (!options.primary_space.empty()) return &source.space(options.primary_space);
  if (const space_profile* const dram = source.find_space("dram")) return dram;
  for (const space_profile& space : source.spaces) {
    if (space.name != "cpu" && !lies_on_cores(space)) return &space;
  }
  return source.find_space("cpu");
}

/// What stands before the colon in the lines of another space. The parsers search for "DRAM:" anywhere in a line.
[[nodiscard]] std::string space_label(const auto& space) {
  const std::string label = lies_on_cores(space) ? upper_case(on_one_line(space.name)) : on_one_line(space.name);
  return std::string_view{label}.ends_with("DRAM") ? label + " space" : label;
}

void append_usage(auto& text, const std::string& label, const auto& usage) {
  text += "  " + label + ": Segment Peak " + megabytes(usage.segment_peak) + ", Allocations " + megabytes(usage.allocations) +
          ", Deallocations " + megabytes(usage.deallocations) + ", Segment Change " + signed_megabytes(usage.segment_change) +
          '\n';
  text += "  " + label + ": Cumulative Peak " + megabytes(usage.cumulative_peak) + ", Cumulative Current " +
          megabytes(usage.cumulative_current) + '\n';
}

/// The blocks "--- NAME ---" and the totals, `primary` under the name "DRAM"; zeros if there is no space. For spaces whose blocks
/// lie on cores the tracker's line of L1.
void append_segments(auto& text, const auto& source, const space_profile* primary, const text_options& options) {
  const std::size_t shown =
      options.max_segments == 0 ? source.segments.size() : std::min(options.max_segments, source.segments.size());
  const segment_usage none;
  const auto usage_in = [&none](const space_profile* space, std::size_t index) -> const segment_usage& {
    return space != nullptr && index < space->segments.size() ? space->segments[index] : none;
  };

  text += "=== Memory Usage Summary ===\n\n";
  for (std::size_t index = 0; index < shown; ++index) {
    text += "--- " + on_one_line(source.segments[index].name) + " ---\n";
    append_usage(text, "DRAM", usage_in(primary, index));
    for (const space_profile& space : source.spaces) {
      if (lies_on_cores(space)) append_core_usage(text, "  " + space_label(space), core_peaks_in(space, index));
    }
    for (const space_profile& space : source.spaces) {
      if (&space != primary && !lies_on_cores(space)) append_usage(text, space_label(space), usage_in(&space, index));
    }
  }
  if (shown < source.segments.size()) {
    text += "(" + counted(static_cast<std::int64_t>(source.segments.size() - shown), "more segment", "more segments") + ")\n";
  }

  text += "\n=== Final Totals ===\n";
  const auto append_totals = [&text](const std::string& label, std::int64_t peak, std::int64_t current) {
    text += "Overall " + label + " Peak: " + megabytes(peak) + ", Final " + label + " Usage: " + megabytes(current) + '\n';
  };
  append_totals("DRAM", primary == nullptr ? 0 : primary->cumulative_peak, primary == nullptr ? 0 : primary->cumulative_current);
  for (const space_profile& space : source.spaces) {
    if (lies_on_cores(space)) {
      append_core_usage(text, "Overall " + space_label(space), space.cores.peaks);
    } else if (&space != primary) {
      append_totals(space_label(space), space.cumulative_peak, space.cumulative_current);
    }
  }
  text += '\n';
}

}  // namespace memprof::detail
