#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// An operation whose memory a simulated run only estimated.
struct approximated_operation {
  std::string name;
  std::string cause;
  std::int64_t count = 0;
  std::int64_t bytes = 0;  ///< total size of the blocks allocated on an estimate

  bool operator==(const approximated_operation&) const = default;

  static constexpr std::string_view table = "approximations";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("name", row.name);
    visit("cause", row.cause);
    visit("count", row.count);
    visit("bytes", row.bytes);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
