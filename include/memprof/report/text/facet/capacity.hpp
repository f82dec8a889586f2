#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/peak_section.hpp>
#include <memprof/report/text/place_text.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/space_kind.hpp>
#include <memprof/trace/category.hpp>

#include <cstdint>
#include <string>

/// @file
/// The lines of the facet "capacity": does it fit the device, and if not, what would help.

namespace memprof::inline MEMPROF_ABI::detail {

/// What would have had to be freed for the allocation to fit.
[[nodiscard, gnu::cold]] page_line remedy_line(const auto& full) {
  if (!full.holders_known) return "owners of the rest unknown: the profiler itself ran out of memory";
  if (full.remedy.empty()) return "freeing everything would not suffice: the request exceeds the capacity";
  if (full.remedy.size() == 1) {
    const owned_bytes& owner = full.remedy.front();
    page_line line{"freeing "};
    line.append(owner_name(owner.owner));
    return line.add(", " + short_bytes(owner.bytes) + " in " + grouped(owner.blocks, "block", "blocks") + ", would suffice");
  }
  std::int64_t together = 0;
  for (const owned_bytes& row : full.remedy) together = add_saturating(together, row.bytes);
  return "freeing the " + std::to_string(full.remedy.size()) + " largest owners, " + short_bytes(together) +
         ", would suffice; no single owner does";
}

[[nodiscard, gnu::cold]] inline page_line device_name(const auto& source) {
  return source.device.empty() ? page_line{"the device"} : page_line{}.add_name(source.device);
}

/// The first allocation that exceeded the space's capacity, and what would help.
[[nodiscard, gnu::cold]] page_section shortfall_section(const auto& source, const auto& space, const segment_steps& steps) {
  const auto& full = space.first_shortfall;
  page_section section;
  section.heading = "Fit";
  page_line line;
  line.add("does not fit ", emphasis::alarm);
  line.append(device_name(source));
  line.add(": " + short_bytes(full.requested) + " requested");
  if (!full.core.empty()) line.add(" on core ").add_name(full.core);
  add_place(line, source, steps, full.time_ns, full.segment, full.operation);
  if (full.category != category::other) line.add(" (" + std::string{to_string(full.category)} + ")");
  line.add("; " + short_bytes(full.free) + " free of " + short_bytes(space.capacity) + ", " + short_bytes(full.shortfall) +
           " short");
  const std::int64_t peak = space.capacity_is_per_core ? space.cores.peaks.total : space.cumulative_peak;
  const std::int64_t short_at_peak = subtract_saturating(peak, space.capacity);
  if (short_at_peak > full.shortfall) line.add(", " + short_bytes(short_at_peak) + " short at the peak");
  section.lines = {line, remedy_line(full)};
  return section;
}

/// "5.12 GiB of 16.0 GiB free at the peak", or why that is unknown.
[[nodiscard, gnu::cold]] page_line room_text(const auto& space) {
  if (space.capacity_is_per_core && !has_blocks_on_cores(space)) {
    return "per-core fit unknown: each core has " + short_bytes(space.capacity) + ", but no block was recorded on cores";
  }
  const std::int64_t peak = space.capacity_is_per_core ? space.cores.peaks.total : space.cumulative_peak;
  page_line line{short_bytes(subtract_saturating(space.capacity, peak)) + " of " + short_bytes(space.capacity) +
                 " free at the peak"};
  if (!space.capacity_is_per_core) return line;
  if (space.cores.peaks.busiest_core.empty()) return line.add(" on each core");
  return line.add(" on core ").add_name(space.cores.peaks.busiest_core);
}

/// Whether the space's live bytes fit; empty if no device was named.
[[nodiscard, gnu::cold]] page_section fit_section(const auto& source, const auto& space, const segment_steps& steps) {
  page_section section;
  section.heading = "Fit";
  if (space.first_shortfall.requested != 0) return shortfall_section(source, space, steps);
  if (space.capacity == 0) {
    if (!source.device.empty()) {
      section.lines.push_back(page_line{}.add_name(source.device).add(" does not limit ").add_name(space.name));
    }
    return section;
  }
  page_line line;
  if (!space.capacity_is_per_core || has_blocks_on_cores(space)) {
    line.add("fits ", emphasis::strong);
    line.append(device_name(source));
    line.add(": ");
  }
  line.append(room_text(space));
  section.lines.push_back(line);
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
