#pragma once

#include <memprof/profile/profile.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// The contents of a run's picture: the parts of a peak, times, and the bands of segments.

namespace memprof::inline MEMPROF_ABI {

/// How a picture divides a peak: by category if any block has one, else by operation.
enum class composition : std::uint8_t { automatic, category, operation };

}  // namespace memprof::inline MEMPROF_ABI

namespace memprof::inline MEMPROF_ABI::detail {

/// The unit of a time axis.
struct time_unit {
  std::string_view name;
  double nanoseconds;

  [[nodiscard]] double of(std::int64_t ns) const { return static_cast<double>(ns) / nanoseconds; }
  /// With three significant digits.
  [[nodiscard]] std::string text(std::int64_t ns) const;
};

/// The unit for times up to `ns`.
[[nodiscard]] constexpr time_unit time_unit_for(std::int64_t ns) noexcept {
  if (ns >= 1'000'000'000) return {"s", 1e9};
  if (ns >= 1'000'000) return {"ms", 1e6};
  return {"\xc2\xb5s", 1e3};
}

struct composition_row {
  std::string name;
  std::int64_t bytes = 0;
  std::string_view colour;
};

struct composition_rows {
  std::string title;
  std::vector<composition_row> rows;
  int name_width = 190;  ///< pixels for the names
};

/// What a peak is made of: what was live or, for a log, its parts by phases.
[[nodiscard]] composition_rows composition_of(const profile& of, const space_profile& space, composition by);

/// A segment's name above the timeline.
struct band_name {
  std::string text;
  double middle = 0;  ///< of the segment, as a share of the time axis
  bool is_upright = false;
};

/// The segments of a timeline whose axis ends at `end`.
struct segment_bands {
  std::vector<std::pair<double, double>> bands;  ///< of every other segment, as shares of the time axis
  std::vector<band_name> names;                  ///< those that fit
  int height = 20;                               ///< pixels that the names take
};

/// Empty if there are too many segments to see. `width` is the length of the time axis in pixels. A name is upright if its
/// segment is narrow, and left out if the segment is narrower than a line is high.
[[nodiscard]] segment_bands bands_of(const profile& of, std::int64_t end, int width);

void append_bands(std::string& script, const segment_bands& segments);

}  // namespace memprof::inline MEMPROF_ABI::detail
