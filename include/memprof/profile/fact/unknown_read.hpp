#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// A value that the program read in a simulated run and that the simulation does not know. The program got a stand-in,
/// and may have taken another path than in a real run: a profile with one that `steers` is not exact.
struct unknown_read {
  std::string name;       ///< the reading operator or method, such as "aten::item", or a decision and where; empty: unknown
  std::string operation;  ///< the program's innermost operation around it; empty: none
  std::int64_t count = 0;
  std::int64_t steers = 0;  ///< not 0: a truth value, an integer or a decision; 0: a number, which most programs only print

  bool operator==(const unknown_read&) const = default;

  static constexpr std::string_view table = "unknown_reads";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("name", row.name);
    visit("operation", row.operation);
    visit("count", row.count);
    visit("steers", row.steers);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
