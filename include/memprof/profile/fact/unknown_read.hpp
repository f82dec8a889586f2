#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// A value that the program read in a simulated run and that the simulation does not know: it got what zeros give, and may have
/// gone another way than it does for real.
struct unknown_read {
  std::string name;       ///< of the operator that read, as in "aten::item"; empty: the program read the memory itself
  std::string operation;  ///< the innermost of the program around it; empty: none
  std::int64_t count = 0;

  bool operator==(const unknown_read&) const = default;

  static constexpr std::string_view table = "unknown_reads";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("name", row.name);
    visit("operation", row.operation);
    visit("count", row.count);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
