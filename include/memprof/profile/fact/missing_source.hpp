#pragma once

#include <memprof/config.hpp>

#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// Something that a capture should have recorded but could not.
struct missing_source {
  std::string source;  ///< for example "CUDA"
  std::string reason;

  bool operator==(const missing_source&) const = default;

  static constexpr std::string_view table = "not_captured";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("source", row.source);
    visit("reason", row.reason);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
