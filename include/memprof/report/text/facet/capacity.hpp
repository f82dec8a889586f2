#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/space_kind.hpp>
#include <memprof/trace/category.hpp>

#include <cstdint>

/// @file
/// The lines of the facets "capacity" and "out of memory": does it fit the device, and if not, what failed, and what would help.

namespace memprof::inline MEMPROF_ABI::detail {

/// The first allocation that failed for lack of device memory, and how many more did.
[[gnu::cold]] inline void failure_section(summary_section& section, const answer_topic& topic) {
  const space_profile& space = *topic.space;
  if (space.out_of_memory.empty()) return;
  const out_of_memory_failure& failed = space.out_of_memory.front();
  marked_text& line = section.lines;
  line.add("out of memory", emphasis::alarm).add(" requesting ").add_bytes(failed.requested);
  add_place(line, topic, failed.time_ns, failed.segment, failed.operation);
  line.add("; ");
  if (failed.device_free >= 0) line.add_bytes(failed.device_free).add(" free on the device, ");
  // Reserved bytes are 0 if no allocator reported any.
  if (space.reserved.peak != 0) line.add_bytes(failed.reserved_bytes).add(" reserved, ");
  line.add_bytes(failed.live_bytes).add(space.reserved.peak != 0 ? " of it live" : " live");
  const std::int64_t further =
      add_saturating(static_cast<std::int64_t>(space.out_of_memory.size()) - 1, space.further_out_of_memory.count);
  if (further > 0) line.add("; ").add_count(further, "more failure", "more failures");
  line.end_line();
}

/// What would have had to be freed for the allocation to fit.
[[gnu::cold]] inline void add_remedy(marked_text& line, const capacity_shortfall& full) {
  if (!full.holders_known) {
    line.add("owners of the rest unknown: the profiler itself ran out of memory");
  } else if (full.remedy.empty()) {
    line.add("freeing everything would not suffice: the request exceeds the capacity");
  } else if (full.remedy.size() == 1) {
    const owned_bytes& owner = full.remedy.front();
    add_owner(line.add("freeing "), owner.owner);
    line.add(", ").add_bytes(owner.bytes).add(" in ").add_count(owner.blocks, "block", "blocks").add(", would suffice");
  } else {
    std::int64_t together = 0;
    for (const owned_bytes& row : full.remedy) together = add_saturating(together, row.bytes);
    line.add("freeing the ").add_count(static_cast<std::int64_t>(full.remedy.size())).add(" largest owners, ");
    line.add_bytes(together).add(", would suffice; no single owner does");
  }
}

[[gnu::cold]] inline marked_text& add_device(marked_text& line, const profile& source) {
  return source.device.empty() ? line.add("the device") : line.add_name(source.device);
}

/// The greatest number of live bytes that the capacity must hold.
[[nodiscard, gnu::cold]] inline std::int64_t peak_for_capacity(const space_profile& space) {
  return space.capacity_is_per_core ? space.cores.peaks.total : space.cumulative_peak;
}

/// Whether an allocator reported what it took from the device, which is what the device must hold.
[[nodiscard, gnu::cold]] inline bool reserved_counts(const space_profile& space) {
  return !space.capacity_is_per_core && space.reserved.peak > space.cumulative_peak;
}

/// The first allocation that exceeded the space's capacity, and what would help.
[[gnu::cold]] inline void add_shortfall(marked_text& line, const answer_topic& topic) {
  const space_profile& space = *topic.space;
  const capacity_shortfall& full = space.first_shortfall;
  add_device(line.add("does not fit ", emphasis::alarm), topic.source);
  line.add(": ").add_bytes(full.requested).add(" requested");
  if (!full.core.empty()) line.add(" on core ").add_name(full.core);
  add_place(line, topic, full.time_ns, full.segment, full.operation);
  if (full.category != category::other) line.add(" (").add(to_string(full.category)).add(")");
  line.add("; ").add_bytes(full.free).add(" free of ").add_bytes(space.capacity);
  line.add(", ").add_bytes(full.shortfall).add(" short");
  const std::int64_t short_at_peak = subtract_saturating(peak_for_capacity(space), space.capacity);
  if (short_at_peak > full.shortfall) line.add(", ").add_bytes(short_at_peak).add(" short at the peak");
  add_remedy(line.end_line(), full);
}

/// "4.12 GiB of 16.0 GiB free when most was reserved; the device's context is not counted". An allocator that may not reserve
/// more gives back what it caches before it fails, so what is reserved beyond the capacity is no proof that the program would
/// fail.
[[gnu::cold]] inline void add_room_for_reserved(marked_text& line, const profile& source, const space_profile& space) {
  const std::int64_t free = subtract_saturating(space.capacity, space.reserved.peak);
  if (free >= 0) {
    add_device(line.add("fits ", emphasis::strong), source).add(": ").add_bytes(free);
    line.add(" of ").add_bytes(space.capacity).add(" free when most was reserved; the device's context is not counted");
    return;
  }
  add_device(line.add("may not fit ", emphasis::alarm), source).add(": ").add_bytes(space.reserved.peak);
  line.add(" reserved of ").add_bytes(space.capacity).add(", ");
  line.add_bytes(subtract_saturating(space.reserved.peak, space.capacity)).add(" too much; live bytes alone would leave ");
  line.add_bytes(subtract_saturating(space.capacity, space.cumulative_peak)).add("");
}

/// "5.12 GiB of 16.0 GiB free at the peak", or why that is unknown.
[[gnu::cold]] inline void add_room(marked_text& line, const profile& source, const space_profile& space) {
  if (space.capacity_is_per_core && !has_blocks_on_cores(space)) {
    line.add("per-core fit unknown: each core has ").add_bytes(space.capacity).add(", but no block was recorded on cores");
    return;
  }
  if (reserved_counts(space)) {
    add_room_for_reserved(line, source, space);
    return;
  }
  add_device(line.add("fits ", emphasis::strong), source).add(": ");
  line.add_bytes(subtract_saturating(space.capacity, peak_for_capacity(space))).add(" of ").add_bytes(space.capacity);
  line.add(" free at the peak");
  if (!space.capacity_is_per_core) return;
  if (space.cores.peaks.busiest_core.empty()) {
    line.add(" on each core");
  } else {
    line.add(" on core ").add_name(space.cores.peaks.busiest_core);
  }
}

/// Whether the space's live bytes, and what its allocator reserved for them, fit; empty if no device was named.
[[gnu::cold]] inline void fit_section(summary_section& section, const answer_topic& topic) {
  const space_profile& space = *topic.space;
  marked_text& line = section.lines;
  if (space.first_shortfall.requested != 0) {
    add_shortfall(line, topic);
  } else if (space.capacity != 0) {
    add_room(line, topic.source, space);
  } else if (!topic.source.device.empty()) {
    line.add_name(topic.source.device).add(" does not limit ").add_name(space.name);
  }
  if (!line.empty()) line.end_line();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
