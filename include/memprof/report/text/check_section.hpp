#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/profile/fact/incomplete_trace_file.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/unrecorded_module.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/marked_text.hpp>
#include <memprof/report/text/process_section.hpp>
#include <memprof/report/text/simulation_guesses.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// The answer to "can the numbers be trusted": a line for each kind of anomaly with its count, the worst first.

namespace memprof::inline MEMPROF_ABI::detail {

/// A number that the whole capture counts, and the words for it.
struct counted_event {
  std::int64_t event_anomalies::*count;
  const char* one;
  const char* many;
  const char* what;
};

inline constexpr counted_event lost_events[] = {
    {&event_anomalies::dropped_events, "event", "events",
     " dropped from full rings (overflow::drop): use overflow::drain or a larger ring_capacity"},
    {&event_anomalies::reentrant_events, "event", "events",
     " lost in signal handlers that interrupted the recording of another event"},
    {&event_anomalies::missing_events, "or more events", "or more events", " missing from the trace"},
    {&event_anomalies::rejected_events, "event", "events", " rejected: impossible values, or no memory to keep them"},
    {&event_anomalies::missing_fact_rows, "row", "rows",
     " of the tables of facts missing from the trace, or beyond what fits into memory"},
};

/// What changes no total, or shares a row because the program generates names without bound, and the remedy.
inline constexpr counted_event altered_events[] = {
    {&event_anomalies::unbalanced_scopes, "operation", "operations", " without a begin or end"},
    {&event_anomalies::too_deep_scopes, "operation", "operations", " nested deeper than 256: counted as part of the 256th"},
    {&event_anomalies::other_segments, "segment", "segments",
     " without a separate row: give the phases of each step the same names"},
    {&event_anomalies::other_operations, "operation", "operations",
     " without a separate row: keep growing numbers out of their names, or set a higher limit"},
    {&event_anomalies::other_names, "event", "events",
     " with names beyond the limit of 65,536 per process: keep growing numbers out of names"},
};

[[gnu::cold]] inline void add_counted_events(marked_text& lines, const event_anomalies& found, const counted_event* first,
                                             const counted_event* last) {
  for (; first != last; ++first) {
    const std::int64_t count = found.*first->count;
    if (count != 0) lines.add_count(count, first->one, first->many).add(first->what).end_line();
  }
}

/// A number that each space counts, and the words for it.
struct counted_in_space {
  event_tally (*tally_in)(const space_profile&);
  const char* one;
  const char* many;
  const char* what;
  bool has_bytes = true;
};

inline constexpr counted_in_space counted_in_spaces[] = {
    {[](const space_profile& in) { return in.anomalies.unmatched_frees; }, "unmatched free", "unmatched frees",
     ": of untracked blocks, not counted as deallocations"},
    {[](const space_profile& in) { return in.anomalies.mismatched_sizes; }, "free", "frees",
     ": with a mismatched size; the allocated size counts"},
    {[](const space_profile& in) { return in.anomalies.overlapping_blocks; }, "overlapping block", "overlapping blocks",
     ": live within another live block, counted twice"},
    {[](const space_profile& in) { return in.anomalies.replaced_allocations; }, "allocation", "allocations",
     ": at the address of a live block, which counts as deallocated"},
    {[](const space_profile& in) { return in.anomalies.null_allocations; }, "allocation", "allocations",
     ": at a null address: failed, not counted"},
    {[](const space_profile& in) { return in.anomalies.unknown_annotations; }, "annotation", "annotations",
     ": for an address that was not live", false},
    {[](const space_profile& in) { return in.reserved.unmatched_releases; }, "unmatched release", "unmatched releases",
     ": without a reservation"},
    {[](const space_profile& in) { return in.reserved.replaced_reservations; }, "reservation", "reservations",
     ": of memory already reserved; the older reservation counts as released"},
    {[](const space_profile& in) { return in.active.unmatched_completions; }, "completed deallocation", "completed deallocations",
     ": of blocks never seen freed"},
    {[](const space_profile& in) { return in.active.missing_completions; }, "freed block", "freed blocks",
     ": no completion seen; counted as active until the address was reused"},
};

/// How often something happened across all spaces, and in which of them.
struct tally_of_spaces {
  event_tally all;
  std::int64_t spaces = 0;
  std::string_view first_space;
};

[[nodiscard, gnu::cold]] inline tally_of_spaces sum_over_spaces(const profile& source,
                                                                event_tally (*tally_in)(const space_profile&)) {
  tally_of_spaces sum;
  for (const space_profile& space : source.spaces) {
    const event_tally tally = tally_in(space);
    if (tally.count == 0) continue;
    sum.all.count = add_saturating(sum.all.count, tally.count);
    sum.all.bytes = add_saturating(sum.all.bytes, tally.bytes);
    if (++sum.spaces == 1) sum.first_space = space.name;
  }
  return sum;
}

/// What was not captured at all or lost on the way: totals and peaks are not those of the program.
[[gnu::cold]] inline void add_losses(marked_text& lines, const profile& source) {
  for_each_fact<missing_source>(source.facts, [&](const missing_source& missing) {
    lines.add_name(missing.source).add(" not captured: ").add(on_one_line(missing.reason)).end_line();
  });
  if (const std::optional<process_account> process = process_account_of(source);
      process && (has_unrecorded_heap(*process) || process->is_incomplete)) {
    add_unrecorded_heap(lines, source, *process);
    lines.end_line();
  }
  add_counted_events(lines, source.anomalies, std::begin(lost_events), std::end(lost_events));
  const event_tally untracked =
      sum_over_spaces(source, [](const space_profile& in) { return in.anomalies.untracked_allocations; }).all;
  if (untracked.count != 0) {
    lines.add_count(untracked.count, "allocation", "allocations").add(" (").add_bytes(untracked.bytes);
    lines.add(") not tracked: the profiler ran out of memory").end_line();
  }
  for (const space_profile& space : source.spaces) {
    if (!space.stands_for_others) continue;
    lines.add(
        "memory spaces beyond the 254th share one, where blocks at equal addresses count as one: give blocks of the same kind "
        "one space");
    lines.end_line();
  }
  std::int64_t modules = 0;
  std::string first_module;
  for_each_fact<unrecorded_module>(source.facts, [&](unrecorded_module& module) {
    if (++modules == 1) first_module = std::move(module.path);
  });
  if (modules == 0) return;
  lines.add_count(modules, "library", "libraries").add(" not recorded (").add_name(first_module);
  lines.add(modules > 1 ? ", ...)" : ")").add(": link the executable with -rdynamic (CMake: ENABLE_EXPORTS ON)").end_line();
}

/// Anomalies that change no total on their own but that a careful reader should know of.
[[gnu::cold]] inline void add_anomalies(marked_text& lines, const profile& source) {
  for (const counted_in_space& counted : counted_in_spaces) {
    const tally_of_spaces sum = sum_over_spaces(source, counted.tally_in);
    if (sum.all.count == 0) continue;
    lines.add_count(sum.all.count, counted.one, counted.many);
    if (counted.has_bytes) lines.add(" (").add_bytes(sum.all.bytes).add(")");
    if (source.spaces.size() > 1) lines.add(" in ").add_name(sum.first_space);
    if (sum.spaces > 1) lines.add(" and ").add_count(sum.spaces - 1, "other space", "other spaces");
    lines.add(counted.what).end_line();
  }
  add_counted_events(lines, source.anomalies, std::begin(altered_events), std::end(altered_events));
  for_each_fact<incomplete_trace_file>(source.facts, [&](const incomplete_trace_file& file) {
    lines.add("trace file ").add_name(file.path).add(" incomplete: ").add_name(file.reason);
    if (file.missing_events != 0) lines.add(", ").add_count(file.missing_events, "event", "events").add(" missing");
    lines.end_line();
  });
}

/// How precise the source's bytes are.
[[nodiscard, gnu::cold]] inline std::string precision_text(const provenance& of) {
  if (of.planned) return "planned by the compiler, not measured";
  return of.rounding > 1 ? "rounded to about " + short_bytes(of.rounding) : "exact";
}

/// What is known of the numbers as a whole.
struct accuracy {
  bool is_lossy = false;
  bool has_losses = false;  ///< that are named
  bool is_estimated = false;
  bool has_anomalies = false;  ///< of any kind, these two included
};

[[gnu::cold]] inline void add_accuracy(marked_text& line, const profile& source, const accuracy& of, const assumptions& guessed) {
  const std::string events = source.cost.events == 0 ? "" : grouped(source.cost.events, "event", "events");
  const auto add_events = [&](const char* separator, const char* rest) {
    if (!events.empty()) line.add(separator).add(events).add(rest);
  };
  if (!source.exact && !of.has_losses && (source.provenance.assumed || guessed.decide())) {
    line.add("not exact", emphasis::alarm).add(": ");
    add_deciding_assumption(line, guessed);
    add_events("; ", ", none lost");
  } else if (!source.exact) {
    line.add("not exact", emphasis::alarm).add(": totals may be too small, live bytes and peaks too small or too large");
    if (!of.has_anomalies) line.add("; the profile does not say why");
  } else if (of.is_lossy) {
    line.add("incomplete", emphasis::alarm).add(": ").add(precision_text(source.provenance)).add(" for what was captured");
    add_events(", ", "");
  } else if (source.provenance.planned || source.provenance.rounding > 1) {
    line.add(precision_text(source.provenance), emphasis::caution);
    add_events("; ", ", none lost");
  } else if (of.is_estimated) {
    line.add("estimated in part", emphasis::caution);
    add_events("; ", ", none lost");
  } else if (source.anomalies.too_deep_scopes != 0) {
    line.add("exact in total, not by operation", emphasis::caution);
    add_events(": ", ", none lost");
  } else {
    line.add("exact", emphasis::strong).add(": ").add(events.empty() ? "no event" : events + ", none");
    line.add(of.has_anomalies ? " lost" : " lost or unmatched");
  }
  const profiler_cost& cost = source.cost;
  if (cost.memory_bytes == 0 && cost.events == 0) return;
  const double time_ns = cost.record_ns_per_event + cost.drain_ns_per_event;
  line.add("; profiler ").add_bytes(cost.memory_bytes).add(", ").add_time(std::llround(time_ns)).add(" an event");
}

/// One sentence on the numbers as a whole, then the anomalies, the worst first; those beyond the limit are only counted.
[[gnu::cold]] inline void check_section(summary_section& section, const answer_topic& topic) {
  const profile& source = topic.source;
  accuracy of;
  marked_text anomalies;
  add_losses(anomalies, source);
  of.has_losses = !anomalies.empty();
  of.is_lossy = !source.exact || of.has_losses;
  const assumptions guessed = assumptions_of(source);
  add_assumptions(anomalies, guessed);
  const std::size_t size_before_estimates = anomalies.text().size();
  add_estimates(anomalies, source);
  of.is_estimated = anomalies.text().size() != size_before_estimates;
  guessed.numbers.write_to(anomalies, "read of a number", "reads of numbers",
                           ": nothing changes if they are only printed; whether they decide anything is not seen");
  for (const std::string& remark : source.provenance.remarks) anomalies.add(on_one_line(remark)).end_line();
  add_anomalies(anomalies, source);
  of.has_anomalies = !anomalies.empty();
  add_accuracy(section.lines, source, of, guessed);
  section.lines.end_line();
  const std::string_view all = anomalies.text();
  const auto kinds = static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n'));
  const std::size_t most = topic.limits.anomalies;
  const std::size_t shown = kinds <= most + 1 ? kinds : most;
  section.lines.add_lines(first_lines(all, shown));
  if (shown != kinds)
    section.lines.add_count(static_cast<std::int64_t>(kinds - shown)).add(" more kinds of anomalies").end_line();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
