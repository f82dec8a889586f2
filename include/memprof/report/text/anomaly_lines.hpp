#pragma once

#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/unrecorded_module.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/text_format.hpp>

#include <string>

/// @file
/// The part of the text report that says in words what was unusual; nothing is said of what did not happen.

namespace memprof::detail {

void append_line(auto& text, const std::string& line) { text += "  " + line + '\n'; }

[[nodiscard]] std::string in_space(const auto& space) { return " in " + on_one_line(space.name); }

/// Why totals and peaks may be too small, one reason a line; empty if there is none.
[[nodiscard]] std::string losses(const auto& source) {
  std::string lines;
  const event_anomalies& on_the_way = source.anomalies;
  if (on_the_way.dropped_events != 0) {
    append_line(lines,
                counted(on_the_way.dropped_events, "event was", "events were") +
                    " dropped because a ring was full (overflow::drop; a larger ring_capacity drops fewer, overflow::drain "
                    "none)");
  }
  if (on_the_way.reentrant_events != 0) {
    append_line(lines, counted(on_the_way.reentrant_events, "event was", "events were") +
                           " lost because a signal handler allocated or freed while another event was recorded");
  }
  if (on_the_way.missing_events != 0) {
    append_line(lines, "at least " + counted(on_the_way.missing_events, "event is", "events are") + " missing in the trace");
  }
  if (on_the_way.rejected_events != 0) {
    append_line(lines, counted(on_the_way.rejected_events, "event was", "events were") +
                           " rejected: impossible values, or no memory to keep them");
  }
  for (const auto& [path] : rows_of<unrecorded_module>(source.facts)) {
    append_line(lines, "what " + on_one_line(path) +
                           " allocated is missing: it has a registry of its own; link the executable with -rdynamic (CMake: "
                           "ENABLE_EXPORTS ON)");
  }
  for (const space_profile& space : source.spaces) {
    const event_tally& untracked = space.anomalies.untracked_allocations;
    if (untracked.count == 0) continue;
    append_line(lines, counted(untracked.count, "allocation", "allocations") + in_space(space) + " (" +
                           megabytes(untracked.bytes) + ") could not be kept because the profiler itself got no memory");
  }
  return lines;
}

/// What shares a row because the program makes names without end, and what to do about it.
[[nodiscard]] std::string folded_names(const auto& source) {
  std::string lines;
  const event_anomalies& found = source.anomalies;
  if (found.other_segments != 0) {
    append_line(lines, counted(found.other_segments, "segment has", "segments have") +
                           " no row of their own: give the phases of every step the same names (or raise segment_names)");
  }
  if (found.other_operations != 0) {
    append_line(lines, counted(found.other_operations, "operation", "operations") +
                           " ran without a row of their own: leave numbers that grow out of their names (or raise operations)");
  }
  if (found.other_names != 0) {
    append_line(lines, counted(found.other_names, "event has a name", "events have names") +
                           " beyond the 65,536 that a process has room for: leave numbers that grow out of them");
  }
  for (const space_profile& space : source.spaces) {
    if (!space.stands_for_others) continue;
    append_line(lines, "memory spaces beyond the 254th share one: give blocks of the same kind the same space");
  }
  return lines;
}

/// What else happened that a careful reader wants to know, one thing a line.
[[nodiscard]] std::string oddities(const auto& source) {
  std::string lines;
  for (const space_profile& space : source.spaces) {
    const auto add = [&](const event_tally& tally, const char* singular, const char* plural, const std::string& rest) {
      if (tally.count != 0) append_line(lines, counted(tally.count, singular, plural) + in_space(space) + rest);
    };
    const auto of = [](const event_tally& tally) { return " (" + megabytes(tally.bytes) + ")"; };
    const space_anomalies& found = space.anomalies;
    add(found.unmatched_frees, "free", "frees",
        " of blocks that the capture never saw allocated" + of(found.unmatched_frees) + ": not counted as deallocations");
    add(found.replaced_allocations, "allocation", "allocations",
        " at the address of a live block" + of(found.replaced_allocations) + ": the older block counts as deallocated");
    add(found.mismatched_sizes, "free", "frees",
        " that told another size than was allocated" + of(found.mismatched_sizes) + ": the allocated size counts");
    add(found.cross_thread_frees, "free", "frees",
        " by another thread than the one that allocated" + of(found.cross_thread_frees) + ": usual in pipelines");
    add(space.reserved.unmatched_releases, "release", "releases",
        " of memory that the capture never saw reserved" + of(space.reserved.unmatched_releases));
    add(space.reserved.replaced_reservations, "reservation", "reservations",
        " of memory that was reserved already" + of(space.reserved.replaced_reservations) + ": the older one counts as released");
    add(found.null_allocations, "allocation", "allocations",
        " at a null address" + of(found.null_allocations) + ": failed, not counted");
    add(found.overlapping_blocks, "live block", "live blocks",
        " within another live block" + of(found.overlapping_blocks) + ": counted twice");
    add(found.unknown_annotations, "annotation", "annotations", " of an address that was not live");
  }
  if (source.anomalies.unbalanced_scopes != 0) {
    append_line(lines, counted(source.anomalies.unbalanced_scopes, "operation", "operations") + " without a begin or an end");
  }
  if (source.anomalies.too_deep_scopes != 0) {
    append_line(lines, counted(source.anomalies.too_deep_scopes, "operation", "operations") +
                           " within 256 others: counted as part of the 256th");
  }
  return lines + folded_names(source);
}

/// Says loudly, before any number is explained, what is missing altogether, and that the numbers are not exact, and why.
void append_warning(auto& text, const auto& source) {
  for (const missing_source& missing : rows_of<missing_source>(source.facts)) {
    text += "WARNING: NOT CAPTURED: " + on_one_line(missing.source) + ": " + on_one_line(missing.reason) + '\n';
  }
  if (source.exact) return;
  const std::string reasons = losses(source);
  text += "WARNING: NOT EXACT, totals may be too small, and live bytes and peaks too small or too large\n";
  text += reasons.empty() ? "  the profile does not say why\n" : reasons;
}

void append_oddities(auto& text, const auto& source) {
  const std::string lines = oddities(source);
  if (!lines.empty()) text += "Unusual:\n" + lines;
}

}  // namespace memprof::detail
