#pragma once

#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/label.hpp>

#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// The meaning of a ledger's ids, and whether more events may come.
struct ledger_names {
  name_view labels;
  const label* space_names;  ///< by memory space id
  const clock_readings& time;
  bool is_complete = true;  ///< false adds the segment that is still open, under the name `open_segment_name`
};

/// The name that a profile gives to operations beyond the limit.
inline constexpr std::string_view other_operations_name = "other operations";

/// The name that a profile gives to memory spaces beyond the limit.
inline constexpr std::string_view other_spaces_name = "other spaces";

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
