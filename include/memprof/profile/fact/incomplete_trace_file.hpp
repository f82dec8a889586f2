#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// A capture's trace file that lacks some or all of the events. The capture's own profile is complete.
struct incomplete_trace_file {
  std::string path;
  std::string reason;
  std::int64_t missing_events = 0;  ///< so far; not counted any more once the file has ended

  bool operator==(const incomplete_trace_file&) const = default;

  static constexpr std::string_view table = "incomplete_trace_file";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("path", row.path);
    visit("reason", row.reason);
    visit("missing_events", row.missing_events);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
