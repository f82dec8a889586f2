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
[[nodiscard, gnu::cold]] const space_profile* primary_space(const auto& source, const text_options& options) {
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
[[nodiscard, gnu::cold]] std::string core_label(const auto& space) {
  const std::string label = upper_case(on_one_line(space.name));
  return std::string_view{label}.ends_with("DRAM") ? label + " space" : label;
}

[[gnu::cold]] void append_usage(auto& text, const auto& usage) {
  text += "  DRAM: Segment Peak " + megabytes(usage.segment_peak) + ", Allocations " + megabytes(usage.allocations) +
          ", Deallocations " + megabytes(usage.deallocations) + ", Segment Change " + signed_megabytes(usage.segment_change) +
          "\n  DRAM: Cumulative Peak " + megabytes(usage.cumulative_peak) + ", Cumulative Current " +
          megabytes(usage.cumulative_current) + '\n';
}

[[gnu::cold]] void append_core_usage(auto& text, const std::string& label, const auto& peaks) {
  text += "  " + label + ": Peak CB " + megabytes(peaks.circular_buffers) + ", Peak Buffer " + megabytes(peaks.buffers) +
          ", Peak Total " + megabytes(peaks.total) + '\n';
}

/// The "--- NAME ---" block of each segment, and the totals. The primary space is printed as "DRAM", with zeros if there is none;
/// spaces on cores get the tracker's L1 line, the first of them even if nothing was on any core; other spaces are not printed. If
/// the profile does not keep all segments, a line that parsers skip says how many are missing.
[[gnu::cold]] void append_tracker_lines(auto& text, const auto& source, const text_options& options) {
  if (source.segments.empty()) {
    text += "WARNING: No traces captured\n";
    return;
  }
  const space_profile* const primary = primary_space(source, options);
  const auto first_on_cores =
      std::find_if(source.spaces.begin(), source.spaces.end(), [](const auto& space) { return has_cores(space); });
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
  text += "\n=== Final Totals ===\nOverall DRAM Peak: " + megabytes(primary == nullptr ? 0 : primary->cumulative_peak) +
          ", Final DRAM Usage: " + megabytes(primary == nullptr ? 0 : primary->cumulative_current) + "\n\n";
}

}  // namespace memprof::inline MEMPROF_ABI::detail
