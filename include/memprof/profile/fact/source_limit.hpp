#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// Why numbers are not exact measurements: another program recorded them, or a simulated run had to assume what they rest on. A
/// profile's `provenance` combines all rows.
struct source_limit {
  std::string remark;         ///< a sentence without its full stop; empty: none
  std::int64_t rounding = 1;  ///< bytes are rounded to multiples of about this many
  std::int64_t planned = 0;   ///< not 0: the numbers were planned by a compiler, not measured
  std::int64_t assumed = 0;   ///< not 0: they rest on values or sizes that were assumed, so the profile is not exact

  static constexpr std::string_view table = "source_limits";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("remark", row.remark);
    visit("rounding", row.rounding);
    visit("planned", row.planned);
    visit("assumed", row.assumed);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
