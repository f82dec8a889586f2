#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/place_text.hpp>
#include <memprof/report/text/quantity.hpp>

#include <cstdint>

/// @file
/// The lines of the facet "out of memory": the first allocation that failed.

namespace memprof::inline MEMPROF_ABI::detail {

/// The first allocation that failed for lack of device memory, and how many more did.
[[nodiscard, gnu::cold]] page_section failure_section(const auto& source, const auto& space, const segment_steps& steps) {
  page_section section;
  section.heading = "Failed";
  if (space.out_of_memory.empty()) return section;
  const auto& failed = space.out_of_memory.front();
  page_line line;
  line.add("out of memory", emphasis::alarm).add(" requesting " + short_bytes(failed.requested));
  add_place(line, source, steps, failed.time_ns, failed.segment, failed.operation);
  line.add("; ");
  if (failed.device_free >= 0) line.add(short_bytes(failed.device_free) + " free on the device, ");
  // Reserved bytes are 0 if no allocator reported any.
  if (space.reserved.peak != 0) {
    line.add(short_bytes(failed.reserved_bytes) + " reserved, " + short_bytes(failed.live_bytes) + " of it live");
  } else {
    line.add(short_bytes(failed.live_bytes) + " live");
  }
  const std::int64_t further =
      add_saturating(static_cast<std::int64_t>(space.out_of_memory.size()) - 1, space.further_out_of_memory.count);
  if (further > 0) line.add("; " + grouped(further, "more failure", "more failures"));
  section.lines.push_back(line);
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
