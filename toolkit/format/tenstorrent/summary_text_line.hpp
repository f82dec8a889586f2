#pragma once

#include <memprof/profile/profile.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Parsers of the lines and sentences of `to_text`.

namespace memprof::inline MEMPROF_ABI::detail {

/// The bytes in "17.9 MiB", "+4.88 KiB", "-512 B"; nothing if the text is anything else.
[[nodiscard]] std::optional<std::int64_t> short_bytes_of(std::string_view text);

/// The bytes at the start of "17.7 MiB (18,513,664 B) of cpu": the exact ones if they follow.
[[nodiscard]] std::optional<std::int64_t> leading_bytes(std::string_view text);

/// The fields separated by two or more spaces.
[[nodiscard]] std::vector<std::string_view> fields_of(std::string_view line);

/// A row of the table of segments.
struct segment_row {
  std::string name;
  std::int64_t count = 0;
  value_summary peak;
  std::optional<value_summary> change;  ///< nothing: it is in the next row
};

/// The row of a name, or nothing if the line is not one. It ends with the numbers; the name is whatever precedes them:
/// "FORWARD_PASS  20  15.7 MiB  15.7 MiB  15.6 MiB  15.7 MiB  15.7 MiB", "FORWARD_PASS  20  15.7 MiB  change +15.7 MiB, each
/// time", or in a table in which no name varies "FORWARD_PASS  20  15.7 MiB  +15.7 MiB  each time".
[[nodiscard]] std::optional<segment_row> segment_row_of(std::string_view line);

/// The values in "  change  +15.7 MiB  +15.7 MiB ...".
[[nodiscard]] std::optional<value_summary> change_row_of(std::string_view line, std::int64_t count);

/// "17.7 MiB (18,513,664 B) of cpu at 174 ms in BACKWARD_PASS, step 1 of 20, operation forward"; earlier versions wrote "of
/// step".
void read_place(profile& summary, std::string_view peak);

/// The largest category absorbs the rounding error, so that their sum is the peak.
void read_categories(profile& summary, std::string_view owners);

/// "fits gpu-16gb: 5.12 GiB of 16.0 GiB free at the peak", or "...; 512 MiB free of 16.0 GiB, 700 MiB short".
void read_capacity(profile& summary, std::string_view fit);

}  // namespace memprof::inline MEMPROF_ABI::detail
