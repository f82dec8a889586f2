#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/trace/fact_table.hpp>

#include <string>

/// @file
/// Tables of a profile as CSV (RFC 4180): a header, then records with as many fields, lines ended by CR LF, bytes as integers.
/// Names are written unchanged, but with an apostrophe before those that a spreadsheet would run (csv_text.hpp).

namespace memprof::inline MEMPROF_ABI {

/// A record for each segment name in each memory space: how many segments there were, and the first, last, least, greatest and
/// mean of their peak above their begin, their change, and what was live at their end. `growth_per_step` is the slope of the last
/// of these (`linear_fit`).
[[nodiscard]] std::string segments_csv(const profile& source);

/// A record for each segment that the profile keeps in each memory space, in order of time.
[[nodiscard]] std::string every_segment_csv(const profile& source);

/// A record for each operation in each memory space that held bytes at the peak or at the end: `bytes_at_peak`, `blocks_at_peak`,
/// `bytes_at_end`. The operation is empty for bytes outside every operation; bytes of operations that the profile does not name
/// are in a record whose `others` is 1.
[[nodiscard]] std::string owners_csv(const profile& source);

/// The table of facts with its columns.
[[nodiscard]] std::string fact_csv(const fact_table& table);

}  // namespace memprof::inline MEMPROF_ABI
