#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/space_kind.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// The text that scripts read: exactly what tt-train's memory tracker prints, so that parsers of its logs (analyze_memory.py,
/// extract_results.py) read memprof's too. MB is 2^20 bytes.

namespace memprof::inline MEMPROF_ABI::detail {

/// The space printed as "DRAM", null if there is none; a space on cores gets the L1 line instead.
[[nodiscard, gnu::cold]] inline const space_profile* primary_space(const profile& source, const text_options& options) {
  if (!options.primary_space.empty()) return &source.space(options.primary_space);
  if (const space_profile* const dram = source.find_space("dram")) return dram;
  for (const space_profile& space : source.spaces) {
    if (space.name != "cpu" && !has_cores(space)) return &space;
  }
  return source.find_space("cpu");
}

[[nodiscard, gnu::cold]] inline std::string upper_case(std::string text) {
  for (char& character : text) {
    if (character >= 'a' && character <= 'z') character = static_cast<char>(character - 'a' + 'A');
  }
  return text;
}

/// The label before the colon in the line of a space on cores. Parsers search for "DRAM:" anywhere in a line.
[[nodiscard, gnu::cold]] inline std::string core_label(const space_profile& space) {
  const std::string label = upper_case(on_one_line(space.name));
  return std::string_view{label}.ends_with("DRAM") ? label + " space" : label;
}

/// A label and bytes.
[[gnu::cold]] inline void append_megabytes(std::string& text, const char* label, std::int64_t bytes) {
  text += label;
  text += megabytes(bytes);
}

[[gnu::cold]] inline void append_usage(std::string& text, const segment_usage& usage) {
  append_megabytes(text, "  DRAM: Segment Peak ", usage.segment_peak);
  append_megabytes(text, ", Allocations ", usage.allocations);
  append_megabytes(text, ", Deallocations ", usage.deallocations);
  text += ", Segment Change ";
  text += signed_megabytes(usage.segment_change);
  append_megabytes(text, "\n  DRAM: Cumulative Peak ", usage.cumulative_peak);
  append_megabytes(text, ", Cumulative Current ", usage.cumulative_current);
  text += '\n';
}

[[gnu::cold]] inline void append_core_usage(std::string& text, const std::string& label, const core_peaks& peaks) {
  text += "  ";
  text += label;
  append_megabytes(text, ": Peak CB ", peaks.circular_buffers);
  append_megabytes(text, ", Peak Buffer ", peaks.buffers);
  append_megabytes(text, ", Peak Total ", peaks.total);
  text += '\n';
}

/// The "--- NAME ---" block of each segment, and the totals. The primary space is printed as "DRAM", with zeros if there is none;
/// spaces on cores get the tracker's L1 line, the first of them even if nothing was on any core; other spaces are not printed. If
/// the profile does not keep all segments, a line that parsers skip says how many are missing.
[[gnu::cold]] inline void append_tracker_lines(std::string& text, const profile& source, const text_options& options) {
  if (source.segments.empty()) {
    text += "WARNING: No traces captured\n";
    return;
  }
  const space_profile* const primary = primary_space(source, options);
  const auto first_on_cores = std::find_if(source.spaces.begin(), source.spaces.end(), has_cores);
  const space_profile* const cores = first_on_cores == source.spaces.end() ? nullptr : &*first_on_cores;
  text += "=== Memory Usage Summary ===\n\n";
  for (std::size_t index = 0; index < source.segments.size(); ++index) {
    text += "--- " + on_one_line(source.segments[index].name) + " ---\n";
    const bool has_usage = primary != nullptr && index < primary->segments.size();
    append_usage(text, has_usage ? primary->segments[index] : segment_usage{});
    for (const space_profile& space : source.spaces) {
      if (&space == primary || (!has_blocks_on_cores(space) && &space != cores)) continue;
      append_core_usage(text, core_label(space),
                        index < space.cores.segments.size() ? space.cores.segments[index] : core_peaks{});
    }
  }
  const std::int64_t missing = count_of_segments(source) - static_cast<std::int64_t>(source.segments.size());
  if (missing > 0) text += "(" + counted(missing, "more segment", "more segments") + " not kept in the profile)\n";
  append_megabytes(text, "\n=== Final Totals ===\nOverall DRAM Peak: ", primary == nullptr ? 0 : primary->cumulative_peak);
  append_megabytes(text, ", Final DRAM Usage: ", primary == nullptr ? 0 : primary->cumulative_current);
  text += "\n\n";
}

}  // namespace memprof::inline MEMPROF_ABI::detail
