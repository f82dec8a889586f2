#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/incomplete_trace_file.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/profile/fact/unknown_read.hpp>
#include <memprof/profile/fact/unrecorded_module.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/process_section.hpp>
#include <memprof/report/text/quantity.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// The answer to "can the numbers be trusted": a line for each kind of fault with its count, the worst first.

namespace memprof::inline MEMPROF_ABI::detail {

/// What was not captured at all or lost on the way: totals and peaks are not those of the program.
[[nodiscard, gnu::cold]] std::vector<page_line> losses(const auto& source) {
  std::vector<page_line> lines;
  for_each_fact<missing_source>(source.facts, [&](const missing_source& missing) {
    lines.push_back(page_line{}.add_name(missing.source).add(" not captured: ").add_name(missing.reason));
  });
  if (const std::optional<process_account> process = process_account_of(source);
      process && (has_unrecorded_heap(*process) || process->is_incomplete))
    lines.push_back(unrecorded_heap_line(*process));
  const auto add = [&](std::int64_t count, std::string_view what, std::string_view them, const char* why) {
    if (count != 0) lines.emplace_back(grouped(count, what, them) + " " + why);
  };
  const event_anomalies& found = source.anomalies;
  add(found.dropped_events, "event", "events",
      "dropped from full rings (overflow::drop): use overflow::drain or a larger ring_capacity");
  add(found.reentrant_events, "event", "events", "lost in signal handlers that interrupted the recording of another event");
  add(found.missing_events, "or more event", "or more events", "missing from the trace");
  add(found.rejected_events, "event", "events", "rejected: impossible values, or no memory to keep them");
  add(found.missing_fact_rows, "row", "rows", "of the tables of facts missing from the trace, or beyond what fits into memory");
  event_tally untracked;
  for (const space_profile& space : source.spaces) {
    untracked.count = add_saturating(untracked.count, space.anomalies.untracked_allocations.count);
    untracked.bytes = add_saturating(untracked.bytes, space.anomalies.untracked_allocations.bytes);
  }
  if (untracked.count != 0) {
    lines.emplace_back(grouped(untracked.count, "allocation", "allocations") + " (" + short_bytes(untracked.bytes) +
                       ") not tracked: the profiler ran out of memory");
  }
  for (const space_profile& space : source.spaces) {
    if (!space.stands_for_others) continue;
    lines.emplace_back(
        "memory spaces beyond the 254th share one, where blocks at equal addresses count as one: give blocks of the same kind "
        "one space");
  }
  std::int64_t modules = 0;
  std::string first_module;
  for_each_fact<unrecorded_module>(source.facts, [&](unrecorded_module& module) {
    if (++modules == 1) first_module = std::move(module.path);
  });
  if (modules != 0) {
    page_line line{grouped(modules, "library", "libraries") + " not recorded ("};
    line.add_name(first_module).add(modules > 1 ? ", ...)" : ")");
    lines.push_back(line.add(": link the executable with -rdynamic (CMake: ENABLE_EXPORTS ON)"));
  }
  return lines;
}

/// What a simulated run had to guess.
[[nodiscard, gnu::cold]] std::vector<page_line> estimates(const auto& source) {
  std::vector<page_line> lines;
  std::int64_t operators = 0;
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
  approximated_operation most;
  for_each_fact<approximated_operation>(source.facts, [&](approximated_operation& row) {
    calls = add_saturating(calls, row.count);
    bytes = add_saturating(bytes, row.bytes);
    if (++operators == 1 || row.bytes > most.bytes) most = std::move(row);
  });
  if (operators != 0) {
    page_line line{grouped(calls, "call", "calls") + " of " + grouped(operators, "operator", "operators") + " estimated (" +
                   short_bytes(bytes) + (operators > 1 ? "), most by " : "): ")};
    lines.push_back(line.add_name(most.name).add(" (").add_name(most.cause).add(")"));
  }
  std::int64_t kinds_of_reads = 0;
  std::int64_t reads = 0;
  unknown_read most_read;
  for_each_fact<unknown_read>(source.facts, [&](unknown_read& row) {
    reads = add_saturating(reads, row.count);
    if (++kinds_of_reads == 1 || row.count > most_read.count) most_read = std::move(row);
  });
  if (kinds_of_reads != 0) {
    page_line line{grouped(reads, "read", "reads") + " of values unknown to the simulation (read as zeros"};
    if (!most_read.name.empty()) line.add(", by ").add_name(most_read.name);
    if (!most_read.operation.empty()) line.add(" in ").add_name(most_read.operation);
    lines.push_back(line.add(")"));
  }
  return lines;
}

/// How often something happened across all spaces, and in which of them.
struct tally_of_spaces {
  event_tally all;
  std::vector<std::string_view> spaces;
};

/// A number that each space counts, and the words for it.
struct counted_anomaly {
  event_tally (*tally_in)(const space_profile&);
  const char* one;
  const char* many;
  bool has_bytes;
  const char* rest;
};

[[nodiscard, gnu::cold]] tally_of_spaces sum_over_spaces(const auto& source, const counted_anomaly& counted) {
  tally_of_spaces sum;
  for (const space_profile& space : source.spaces) {
    const event_tally tally = counted.tally_in(space);
    if (tally.count == 0) continue;
    sum.all.count = add_saturating(sum.all.count, tally.count);
    sum.all.bytes = add_saturating(sum.all.bytes, tally.bytes);
    sum.spaces.push_back(space.name);
  }
  return sum;
}

/// Anomalies that change no total on their own but that a careful reader should know of.
[[nodiscard, gnu::cold]] std::vector<page_line> anomalies(const auto& source) {
  using space = space_profile;
  constexpr std::array<counted_anomaly, 10> counted_in_spaces{{
      {[](const space& in) { return in.anomalies.unmatched_frees; }, "unmatched free", "unmatched frees", true,
       "of untracked blocks, not counted as deallocations"},
      {[](const space& in) { return in.anomalies.mismatched_sizes; }, "free", "frees", true,
       "with a mismatched size; the allocated size counts"},
      {[](const space& in) { return in.anomalies.overlapping_blocks; }, "overlapping block", "overlapping blocks", true,
       "live within another live block, counted twice"},
      {[](const space& in) { return in.anomalies.replaced_allocations; }, "allocation", "allocations", true,
       "at the address of a live block, which counts as deallocated"},
      {[](const space& in) { return in.anomalies.null_allocations; }, "allocation", "allocations", true,
       "at a null address: failed, not counted"},
      {[](const space& in) { return in.anomalies.unknown_annotations; }, "annotation", "annotations", false,
       "for an address that was not live"},
      {[](const space& in) { return in.reserved.unmatched_releases; }, "unmatched release", "unmatched releases", true,
       "of memory never seen reserved"},
      {[](const space& in) { return in.reserved.replaced_reservations; }, "reservation", "reservations", true,
       "of memory already reserved; the older reservation counts as released"},
      {[](const space& in) { return in.active.unmatched_completions; }, "completed deallocation", "completed deallocations", true,
       "of blocks never seen freed"},
      {[](const space& in) { return in.active.missing_completions; }, "freed block", "freed blocks", true,
       "no completion seen; counted as active until the address was reused"},
  }};
  std::vector<page_line> lines;
  for (const counted_anomaly& counted : counted_in_spaces) {
    const tally_of_spaces sum = sum_over_spaces(source, counted);
    if (sum.all.count == 0) continue;
    page_line line{grouped(sum.all.count, counted.one, counted.many) +
                   (counted.has_bytes ? " (" + short_bytes(sum.all.bytes) + ")" : "")};
    if (source.spaces.size() > 1) {
      line.add(" in ").add_name(sum.spaces.front());
      if (sum.spaces.size() > 1)
        line.add(" and " + grouped(static_cast<std::int64_t>(sum.spaces.size() - 1), "other space", "other spaces"));
    }
    lines.push_back(line.add(std::string{": "} + counted.rest));
  }
  const auto add_count = [&](std::int64_t count, const char* one, const char* many, const char* rest) {
    if (count != 0) lines.emplace_back(grouped(count, one, many) + " " + rest);
  };
  add_count(source.anomalies.unbalanced_scopes, "operation", "operations", "without a begin or end");
  add_count(source.anomalies.too_deep_scopes, "operation", "operations", "nested deeper than 256: counted as part of the 256th");
  // What shares a row because the program generates names without bound, and the remedy.
  add_count(source.anomalies.other_segments, "segment", "segments",
            "without a row of their own: give the phases of each step the same names");
  add_count(source.anomalies.other_operations, "operation", "operations",
            "without a row of their own: keep growing numbers out of their names, or set a higher limit");
  add_count(source.anomalies.other_names, "event", "events",
            "with names beyond the limit of 65,536 per process: keep growing numbers out of names");
  for_each_fact<incomplete_trace_file>(source.facts, [&](const incomplete_trace_file& file) {
    page_line line{"trace file "};
    line.add_name(file.path).add(" incomplete: ").add_name(file.reason);
    if (file.missing_events != 0) line.add(", " + grouped(file.missing_events, "event", "events") + " missing");
    lines.push_back(std::move(line));
  });
  return lines;
}

/// How precise the source's bytes are.
[[nodiscard, gnu::cold]] inline std::string precision_text(const provenance& of) {
  if (of.planned) return "planned by the compiler, not measured";
  return of.rounding > 1 ? "rounded to about " + short_bytes(of.rounding) : "exact";
}

/// One sentence on the numbers as a whole, then the faults, the worst first; those beyond `most` are only counted.
[[nodiscard, gnu::cold]] page_section check_section(const auto& source, std::size_t most) {
  page_section section;
  section.heading = "Numbers";
  std::vector<page_line> faults = losses(source);
  const bool is_lossy = !source.exact || !faults.empty();
  std::vector<page_line> further = estimates(source);
  const bool is_estimated = !further.empty();
  faults.insert(faults.end(), further.begin(), further.end());
  for (const std::string& remark : source.provenance.remarks) faults.emplace_back(on_one_line(remark));
  further = anomalies(source);
  faults.insert(faults.end(), further.begin(), further.end());

  page_line line;
  const std::string events = source.cost.events == 0 ? "" : grouped(source.cost.events, "event", "events");
  if (!source.exact) {
    line.add("not exact", emphasis::alarm).add(": totals may be too small, live bytes and peaks too small or too large");
    if (faults.empty()) line.add("; the profile does not say why");
  } else if (is_lossy) {
    line.add("incomplete", emphasis::alarm)
        .add(": " + precision_text(source.provenance) + " for what was captured")
        .add(events.empty() ? "" : ", " + events);
  } else if (source.provenance.planned || source.provenance.rounding > 1) {
    line.add(precision_text(source.provenance), emphasis::caution).add(events.empty() ? "" : "; " + events + ", none lost");
  } else if (is_estimated) {
    line.add("estimated in part", emphasis::caution).add(events.empty() ? "" : "; " + events + ", none lost");
  } else if (source.anomalies.too_deep_scopes != 0) {
    line.add("exact in total, not by operation", emphasis::caution).add(events.empty() ? "" : ": " + events + ", none lost");
  } else {
    line.add("exact", emphasis::strong)
        .add(": " + (events.empty() ? "no event" : events + ", none") + (faults.empty() ? " lost or unmatched" : " lost"));
  }
  const auto& cost = source.cost;
  if (cost.memory_bytes != 0 || cost.events != 0) {
    const double time_ns = cost.record_ns_per_event + cost.drain_ns_per_event;
    line.add("; profiler " + short_bytes(cost.memory_bytes) + ", " + short_time(std::llround(time_ns)) + " an event");
  }
  section.lines.push_back(line);
  const std::size_t shown = faults.size() <= most + 1 ? faults.size() : most;
  for (std::size_t index = 0; index < shown; ++index) section.lines.push_back(faults[index]);
  if (shown < faults.size())
    section.lines.emplace_back(grouped(static_cast<std::int64_t>(faults.size() - shown)) + " more kinds of faults");
  return section;
}

/// The tables of facts: what sources know that is not memory over time. Every capture has `process_memory`, so it says nothing.
[[nodiscard, gnu::cold]] page_section fact_section(const auto& source) {
  page_section section;
  section.heading = "Facts";
  page_line line;
  for (const fact_table& table : source.facts) {
    if (table.rows.empty() || table.name == process_memory::table) continue;
    if (!line.empty()) line.add(", ");
    line.add_name(table.name).add(" (" + grouped(static_cast<std::int64_t>(table.rows.size()), "row", "rows") + ")");
  }
  if (!line.empty()) section.lines.push_back(line.add("; memprof show --facts NAME prints a table"));
  return section;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
