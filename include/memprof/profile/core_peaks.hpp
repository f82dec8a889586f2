#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/ledger/core_ledger.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segment_rows.hpp>
#include <memprof/trace/core_range.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// @file
/// The part of `profile/build.hpp` about memory that each core has of its own. Templates for the reason given there.

namespace memprof::inline MEMPROF_ABI::detail {

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

/// What one space held on each core. Costs a pass over the cores of each rectangle.
template <class Cores, class Rows>
[[nodiscard]] core_profile build_cores(const Cores& cores, const Rows& rows, const std::vector<named_segments>& names) {
  core_profile result;
  if (!cores.is_used()) return result;
  result.peaks = to_core_peaks(cores.overall(any_core));
  const auto open = cores.open_segment();
  result.segments = std::vector<core_peaks>(rows.size());
  for (std::size_t index = 0; index < rows.finished(); ++index) {
    const std::size_t position = rows.position(index);
    if (position < cores.segments().size()) result.segments[index] = to_core_peaks(cores.segments()[position]);
  }
  if (rows.has_open()) result.segments[rows.finished()] = to_core_peaks(open);
  result.segments_by_name = std::vector<named_core_peaks>(rows.names());
  for_each_name(rows, cores.by_name(), std::array{open.peak.circular_buffers, open.peak.buffers, open.peak.total},
                [&](std::size_t row, const auto& values) {
                  result.segments_by_name[row] = {names[row].name, values[0], values[1], values[2]};
                });
  result.ranges = build_core_ranges(cores);
  return result;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
