#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/ledger/core_ledger.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/core_range.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// @file
/// The part of `profile/build.hpp` about memory that each core has of its own. Templates for the reason that is told there.

namespace memprof::detail {

/// "3-4": column, then row.
template <class Coordinate>
[[nodiscard]] std::string core_text(Coordinate x, Coordinate y) {
  return std::to_string(x).append(1, '-').append(std::to_string(y));
}

/// "[0-0 - 7-7]", as tt-metal writes a rectangle of cores.
template <class Range>
[[nodiscard]] std::string core_range_text(const Range& cores) {
  std::string text{'['};
  return text.append(core_text(cores.x0, cores.y0)).append(" - ").append(core_text(cores.x1, cores.y1)).append(1, ']');
}

template <class Maxima>
[[nodiscard]] core_peaks to_core_peaks(const Maxima& greatest) {
  core_peaks result{greatest.peak.circular_buffers, greatest.peak.buffers, greatest.peak.total, {}};
  if (greatest.peak.total != 0) result.busiest_core = core_text(greatest.busiest_x, greatest.busiest_y);
  return result;
}

/// The rows of all rectangles, the greatest total first.
template <class Cores>
[[nodiscard]] std::vector<core_range_peaks> build_core_ranges(const Cores& cores) {
  struct row {
    std::uint32_t packed;
    core_maxima greatest;
  };
  std::vector<row> rows(cores.ranges().size());
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const std::uint32_t packed = cores.ranges()[index];
    rows[index] = {packed, cores.overall(core_range::unpacked(packed))};
  }
  sort_rows(rows.data(), rows.size(), [](const row& left, const row& right) {
    const core_usage& of_left = left.greatest.peak;
    const core_usage& of_right = right.greatest.peak;
    return of_left.total != of_right.total ? of_left.total > of_right.total : left.packed < right.packed;
  });
  std::vector<core_range_peaks> result(rows.size());
  for (std::size_t index = 0; index < rows.size(); ++index) {
    result[index] = {core_range_text(core_range::unpacked(rows[index].packed)), to_core_peaks(rows[index].greatest)};
  }
  return result;
}

/// What one space held on each core; `first_segment` is that of the space, `segment_count` the profile's. Costs a pass over the
/// cores of each rectangle.
template <class Cores>
[[nodiscard]] core_profile build_cores(const Cores& cores, std::size_t first_segment, std::size_t segment_count) {
  core_profile result;
  if (!cores.is_used()) return result;
  result.peaks = to_core_peaks(cores.overall(any_core));
  result.segments = std::vector<core_peaks>(segment_count);
  for (std::size_t index = first_segment; index < segment_count; ++index) {
    const std::size_t own_index = index - first_segment;
    const bool is_open = own_index >= cores.segments().size();
    result.segments[index] = to_core_peaks(is_open ? cores.open_segment() : cores.segments()[own_index]);
  }
  result.ranges = build_core_ranges(cores);
  return result;
}

}  // namespace memprof::detail
