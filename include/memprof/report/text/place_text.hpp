#pragma once

#include <memprof/profile/segments_by_name.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/quantity.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// How the answers state when and where something happened.

namespace memprof::inline MEMPROF_ABI::detail {

/// " in BACKWARD_PASS, step 2 of 200"; nothing if the index refers to no segment.
[[gnu::cold]] void add_segment(page_line& line, const auto& source, const segment_steps& steps, std::int64_t index) {
  if (index < 0 || static_cast<std::size_t>(index) >= source.segments.size()) return;
  const auto at = static_cast<std::size_t>(index);
  line.add(" in ").add_name(source.segments[at].name);
  if (steps.count > 1 && steps.of_segment[at] >= 0)
    line.add(", step " + grouped(steps.of_segment[at] + 1) + " of " + grouped(steps.count));
}

/// " at 52.1 ms in BACKWARD_PASS, step 2 of 200, operation forward/block"; no operation if the program names none.
[[gnu::cold]] void add_place(page_line& line, const auto& source, const segment_steps& steps, std::int64_t time_ns,
                             std::int64_t segment, std::string_view operation) {
  line.add(" at " + short_time(time_ns));
  add_segment(line, source, steps, segment);
  if (!operation.empty()) {
    line.add(", operation ").add_name(operation);
  } else if (!source.operations.empty()) {
    line.add(", outside every operation");
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
