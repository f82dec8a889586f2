#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// Why numbers that somebody else recorded are not those of a measurement, to the byte. A profile's `provenance` has what all
/// rows say together.
struct source_limit {
  std::string remark;         ///< a sentence without its stop; empty: there is nothing to say
  std::int64_t rounding = 1;  ///< bytes are rounded to multiples of about so many
  std::int64_t planned = 0;   ///< not 0: a compiler planned them, and nothing was measured

  static constexpr std::string_view table = "source_limits";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("remark", row.remark);
    visit("rounding", row.rounding);
    visit("planned", row.planned);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
