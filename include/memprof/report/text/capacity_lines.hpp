#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/core_lines.hpp>
#include <memprof/report/text/peak_lines.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/trace/category.hpp>

#include <cstdint>
#include <string>

/// @file
/// The part of the text report that answers: would it have fitted the device, and if not, what would have helped.

namespace memprof::detail {

/// What would have had to be freed, in one sentence.
[[nodiscard]] std::string remedy_text(const auto& full) {
  if (!full.holders_known) return "Who held the rest is not known: the profiler itself got no memory.";
  if (full.remedy.empty()) return "Freeing all of it would not have been enough: more was asked for than the capacity.";
  std::int64_t together = 0;
  for (const owned_bytes& row : full.remedy) together += row.bytes;
  if (full.remedy.size() == 1) {
    const owned_bytes& owner = full.remedy.front();
    return "Freeing what " + (owner.owner.empty() ? operation_text({}) : on_one_line(owner.owner)) + " held, " +
           megabytes(together) + " in " + counted(owner.blocks, "block", "blocks") + ", would have been enough.";
  }
  return "Freeing what the largest " + std::to_string(full.remedy.size()) + " owners held, " + megabytes(together) +
         " together, would have been enough; no single one held as much.";
}

/// The first allocation that exceeded the space's capacity, and who held the rest.
void append_shortfall(auto& text, const auto& source, const auto& space, const text_options& options) {
  const capacity_shortfall& full = space.first_shortfall;
  text += on_one_line(space.name) + " would have been full" + (full.core.empty() ? "" : " on core " + on_one_line(full.core)) +
          ": " + megabytes(full.requested) + " more were asked for, " + after_begin(full.time_ns) + ",\n  " +
          segment_text(source, full.segment) + operation_text(full.operation);
  if (full.category != category::other) text += ", for category " + std::string{to_string(full.category)};
  text += ";\n  " + megabytes(full.free) + " were free of " + megabytes(space.capacity) + ", " + megabytes(full.shortfall) +
          " too few.\n  " + remedy_text(full) + '\n';
  if (!full.holders_known) return;
  append_owners(text, full.held, options.owners);
  append_categories(text, full.held);
  append_blocks(text, full.held, options.largest_blocks);
}

/// What was left of a capacity that was never exceeded.
inline void append_room(std::string& text, const space_profile& space) {
  const bool on_cores = space.capacity_is_per_core;
  const std::string busiest = on_one_line(space.cores.peaks.busiest_core);
  text += on_one_line(space.name) + " would not have been full: at its peak " +
          megabytes(space.capacity - (on_cores ? space.cores.peaks.total : space.cumulative_peak)) + " were free of " +
          megabytes(space.capacity);
  if (on_cores) text += busiest.empty() ? " on each core" : " on core " + busiest;
  text += '\n';
}

/// Whether the space's live bytes would have fitted; nothing if it has no capacity.
void append_capacity(auto& text, const auto& source, const auto& space, const text_options& options) {
  if (space.capacity == 0) return;
  if (space.first_shortfall.requested != 0) return append_shortfall(text, source, space, options);
  if (!space.capacity_is_per_core || lies_on_cores(space)) return append_room(text, space);
  text += "Whether " + on_one_line(space.name) + " would have been full is not known: each core has " +
          megabytes(space.capacity) + ", but no block was told on cores\n";
}

}  // namespace memprof::detail
