#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// What a process is predicted to hold of a simulated device besides what its allocator takes: docs/predicted_memory.md.
struct device_context {
  std::string space;       ///< the device's memory space
  std::int64_t bytes = 0;  ///< the most that was measured
  std::int64_t least = 0;  ///< bytes, the least that was measured
  std::string source;      ///< who measured it where

  bool operator==(const device_context&) const = default;

  static constexpr std::string_view table = "device_contexts";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("space", row.space);
    visit("bytes", row.bytes);
    visit("least", row.least);
    visit("source", row.source);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
