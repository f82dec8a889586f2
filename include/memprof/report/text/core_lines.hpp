#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/text_format.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

/// @file
/// The parts of the text report about memory that each core has of its own: the line of L1 that the tracker of tt-train prints,
/// and which cores it was.

namespace memprof::detail {

/// Whether blocks of the space were told on cores.
[[nodiscard]] bool lies_on_cores(const auto& space) { return !space.cores.ranges.empty(); }

[[nodiscard]] inline std::string upper_case(std::string text) {
  for (char& character : text) {
    if (character >= 'a' && character <= 'z') character = static_cast<char>(character - 'a' + 'A');
  }
  return text;
}

/// The peaks in one segment; zeros if the profile has no such segment.
[[nodiscard]] core_peaks core_peaks_in(const auto& space, std::size_t segment) {
  return segment < space.cores.segments.size() ? space.cores.segments[segment] : core_peaks{};
}

void append_core_usage(auto& text, const std::string& label, const auto& peaks) {
  text += label + ": Peak CB " + megabytes(peaks.circular_buffers) + ", Peak Buffer " + megabytes(peaks.buffers) +
          ", Peak Total " + megabytes(peaks.total) + '\n';
}

/// The busiest core, and the first `most` rectangles of cores in a table.
void append_core_ranges(auto& text, const auto& cores, std::size_t most) {
  text += "  On one core at most " + megabytes(cores.peaks.total) + " (" + counted(cores.peaks.total, "byte", "bytes") + ")";
  if (!cores.peaks.busiest_core.empty()) text += ", first of all on core " + on_one_line(cores.peaks.busiest_core);
  const std::size_t shown = std::min(most, cores.ranges.size());
  text += shown == 0 ? "\n" : ":\n         Peak CB      Peak Buffer       Peak Total  Cores\n";
  for (std::size_t index = 0; index < shown; ++index) {
    constexpr std::size_t width = 15;
    const core_range_peaks& row = cores.ranges[index];
    text += right_aligned(megabytes(row.peaks.circular_buffers), width + 1) +
            right_aligned(megabytes(row.peaks.buffers), width + 2) + right_aligned(megabytes(row.peaks.total), width + 2) + "  " +
            on_one_line(row.range) + '\n';
  }
  if (shown != 0 && shown < cores.ranges.size()) {
    text +=
        "    (" + counted(static_cast<std::int64_t>(cores.ranges.size() - shown), "more rectangle", "more rectangles") + ")\n";
  }
}

}  // namespace memprof::detail
