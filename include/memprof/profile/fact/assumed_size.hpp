#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// Results of an operator whose sizes depend on data that a simulated run did not have. The profile is then not exact.
struct assumed_size {
  std::string name;       ///< of the operator, such as "aten::nonzero"
  std::string operation;  ///< the program's innermost operation around it; empty: none
  std::string cause;      ///< what the sizes depend on, and what was assumed
  std::int64_t count = 0;
  std::int64_t assumed = 0;  ///< rows or elements that were assumed, over all calls
  std::int64_t most = 0;     ///< the most that there can be, over all calls; 0: unknown
  std::int64_t bytes = 0;    ///< what the calls allocated with the assumed sizes

  bool operator==(const assumed_size&) const = default;

  static constexpr std::string_view table = "assumed_sizes";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("name", row.name);
    visit("operation", row.operation);
    visit("cause", row.cause);
    visit("count", row.count);
    visit("assumed", row.assumed);
    visit("most", row.most);
    visit("bytes", row.bytes);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
