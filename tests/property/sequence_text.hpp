#pragma once

#include <memprof/profile/profile.hpp>
#include <property/random_sequence.hpp>

#include <cstddef>
#include <iomanip>
#include <sstream>
#include <string>
#include <vector>

namespace memprof::property {

using namespace extend;

/// A sequence as lines that can be pasted into a test.
[[nodiscard]] inline std::string to_code(const sequence& shown) {
  std::ostringstream out;
  out << "sequence failing{\"" << shown.personality << "\", {.timeline_points = " << shown.options.timeline_points
      << ", .largest_blocks = " << shown.options.largest_blocks << ", .owners_per_segment = " << shown.options.owners_per_segment
      << ", .full_segments = " << shown.options.full_segments << ", .segment_names = " << shown.options.segment_names
      << ", .operations = " << shown.options.operations << "}, {";
  for (const std::int64_t capacity : shown.capacities) out << capacity << ", ";
  out << "}, {" << std::boolalpha;
  for (const bool is_per_core : shown.are_per_core) out << is_per_core << ", ";
  out << "}, {";
  for (const label memory : shown.memories) out << memory << ", ";
  out << "}, " << (shown.is_complete ? "true" : "false") << ", {\n";
  for (const step& each : shown.steps) {
    const event& recorded = each.recorded;
    const char* const kinds[] = {"unknown",
                                 "allocate",
                                 "deallocate",
                                 "annotate",
                                 "scope_begin",
                                 "scope_end",
                                 "thread_begin",
                                 "allocate_on_cores",
                                 "deallocate_on_cores",
                                 "deallocate_circular_buffers",
                                 "reserve",
                                 "release",
                                 "allocate_on_stream",
                                 "deallocate_on_stream",
                                 "out_of_memory"};
    const auto kind = static_cast<unsigned>(recorded.kind);
    out << "    {" << (each.is_segment_end ? "true" : "false") << ", " << each.thread << ", {.stamp = " << recorded.stamp
        << "U, .address = " << recorded.address << "U, .bytes = " << recorded.bytes << "U, .label = " << recorded.label
        << ", .kind = ";
    if (recorded.kind == event_kind::deallocate_range) {
      out << "event_kind::deallocate_range";
    } else if (recorded.kind == event_kind::complete_deallocation) {
      out << "event_kind::complete_deallocation";
    } else if (kind < std::size(kinds) && kind != 0) {
      out << "event_kind::" << kinds[kind];
    } else {
      out << "static_cast<event_kind>(" << kind << ")";
    }
    out << ", .space = " << unsigned{recorded.space} << ", .tag = " << recorded.tag << "}},\n";
  }
  out << "}};\n";
  return out.str();
}

/// Every field of a profile on a line of its own, so that two profiles can be compared line by line.
class profile_lines {
 public:
  [[nodiscard]] static std::vector<std::string> of(const profile& shown) {
    profile_lines writer;
    writer.write(shown);
    return std::move(writer.lines_);
  }

 private:
  template <class... Values>
  void line(const std::string& where, const Values&... values) {
    std::ostringstream out;
    out << std::setprecision(17) << where;
    ((out << ' ' << values), ...);
    lines_.push_back(out.str());
  }

  void write(const std::string& where, const live_set& set) {
    line(where + " bytes, blocks", set.bytes, set.blocks);
    for (const owned_bytes& row : set.by_operation) line(where + " by_operation", row.owner, row.bytes, row.blocks, row.category);
    line(where + " remaining bytes, operations", set.remaining_bytes, set.remaining_operations);
    for (const owned_bytes& row : set.by_category) line(where + " by_category", row.owner, row.bytes, row.blocks);
    for (const live_block& row : set.largest_blocks) {
      line(where + " largest_blocks", row.address, row.bytes, row.operation, to_string(row.category), row.name, row.shape,
           row.dtype, to_string(row.requires_grad));
    }
  }

  void write(const std::string& where, const segment_usage& usage) {
    line(where + " name", usage.segment);
    line(where + " peak, change, cumulative peak, current", usage.segment_peak, usage.segment_change, usage.cumulative_peak,
         usage.cumulative_current);
    line(where + " allocations, deallocations, counts", usage.allocations, usage.deallocations, usage.allocation_count,
         usage.deallocation_count);
    line(where + " peak time, operation", usage.peak_time_ns, usage.peak_operation);
    write(where + " live_at_peak", usage.live_at_peak);
  }

  void write(const std::string& where, const value_summary& of) {
    line(where, of.first, of.last, of.least, of.greatest, of.sum, of.least_segment, of.greatest_segment);
  }

  void write(const std::string& where, const segment_summary& of) {
    write(where + " segment_peak", of.segment_peak);
    write(where + " live_at_peak", of.peak_live_bytes);
    write(where + " allocations", of.allocations);
    write(where + " deallocations", of.deallocations);
    write(where + " segment_change", of.segment_change);
    write(where + " cumulative_current", of.cumulative_current);
    write(where + " allocation_count", of.allocation_count);
    write(where + " deallocation_count", of.deallocation_count);
    line(where + " growth", of.growth.per_step, of.growth.r_squared);
  }

  void write(const std::string& where, const operation_invocation& run) {
    line(where, run.thread, run.begin_ns, run.end_ns, run.delta, run.peak);
  }

  void write(const std::string& where, const capacity_shortfall& shown) {
    line(where + " requested, core, free, shortfall", shown.requested, shown.core, shown.free, shown.shortfall);
    line(where + " operation, category, segment, time", shown.operation, to_string(shown.category), shown.segment, shown.time_ns);
    line(where + " holders_known", shown.holders_known);
    write(where + " held", shown.held);
    for (const owned_bytes& row : shown.remedy) line(where + " remedy", row.owner, row.bytes, row.blocks);
  }

  void write(const std::string& where, const space_profile& space) {
    line(where + " name", space.name);
    line(where + " cumulative peak, current", space.cumulative_peak, space.cumulative_current);
    line(where + " allocations, deallocations, counts", space.allocations, space.deallocations, space.allocation_count,
         space.deallocation_count);
    line(where + " peak segment, time, operation", space.peak_segment, space.peak_time_ns, space.peak_operation);
    write(where + " live_at_peak", space.live_at_peak);
    for (const owned_bytes& row : space.current_by_category) line(where + " live at the end", row.owner, row.bytes, row.blocks);
    for (const owner_growth& row : space.growing)
      line(where + " grows", row.owner, row.per_step, row.since_step, row.within_steps, row.steps);
    line(where + " capacity, of each core", space.capacity, space.capacity_is_per_core);
    write(where + " first_shortfall", space.first_shortfall);
    for (std::size_t index = 0; index < space.segments.size(); ++index) {
      write(where + " segment " + std::to_string(index), space.segments[index]);
    }
    for (const segment_summary& row : space.segments_by_name) write(where + " all of " + row.segment, row);
    for (const named_core_peaks& row : space.cores.segments_by_name) {
      write(where + " circular buffers of " + row.segment, row.circular_buffers);
      write(where + " buffers of " + row.segment, row.buffers);
      write(where + " total of " + row.segment, row.total);
    }
    for (const named_reserved_usage& row : space.reserved.segments_by_name) {
      write(where + " reserved peak of " + row.segment, row.peak);
      write(where + " reserved current of " + row.segment, row.current);
    }
    for (const named_active_usage& row : space.active.segments_by_name) {
      write(where + " active peak of " + row.segment, row.peak);
      write(where + " active current of " + row.segment, row.current);
    }
    line(where + " events_per_point", space.timeline.events_per_point);
    for (const timeline_point& point : space.timeline.points) {
      line(where + " point time, peak, current", point.time_ns, point.peak, point.current);
    }
    const space_anomalies& odd = space.anomalies;
    for (const event_tally* tally :
         {&odd.unmatched_frees, &odd.replaced_allocations, &odd.mismatched_sizes, &odd.cross_thread_frees,
          &odd.unknown_annotations, &odd.untracked_allocations, &odd.null_allocations, &odd.overlapping_blocks}) {
      line(where + " anomaly", tally->count, tally->bytes);
    }
    write(where + " cores", space.cores.peaks);
    for (const core_peaks& peaks : space.cores.segments) write(where + " cores in a segment", peaks);
    for (const core_range_peaks& row : space.cores.ranges) write(where + " cores " + row.range, row.peaks);
    line(where + " reserved peak, current", space.reserved.peak, space.reserved.current);
    for (const reserved_usage& usage : space.reserved.segments) {
      line(where + " reserved in a segment", usage.peak, usage.current);
    }
    for (const event_tally* tally : {&space.reserved.unmatched_releases, &space.reserved.replaced_reservations}) {
      line(where + " reserved anomaly", tally->count, tally->bytes);
    }
    line(where + " active peak, current", space.active.peak, space.active.current);
    for (const active_usage& usage : space.active.segments) line(where + " active in a segment", usage.peak, usage.current);
    for (const event_tally* tally : {&space.active.unmatched_completions, &space.active.missing_completions}) {
      line(where + " active anomaly", tally->count, tally->bytes);
    }
    for (const stream_usage& row : space.streams) {
      line(where + " stream, pool, peak, current, count, reserved", row.stream, row.pool, row.cumulative_peak,
           row.cumulative_current, row.allocation_count, row.reserved_peak, row.reserved_current);
    }
    for (const out_of_memory_failure& row : space.out_of_memory) {
      line(where + " failed", row.requested, row.device_free, row.live_bytes, row.reserved_bytes, row.operation, row.segment,
           row.time_ns, row.segment_number);
    }
    line(where + " further failed", space.further_out_of_memory.count, space.further_out_of_memory.bytes);
  }

  void write(const std::string& where, const memory_profile& memory) {
    line(where + " peak, current, segment, time", memory.cumulative_peak, memory.cumulative_current, memory.peak_segment,
         memory.peak_time_ns);
    line(where + " peak space, operation", memory.peak_space, memory.peak_operation);
    for (const owned_bytes& row : memory.spaces) line(where + " space", row.owner, row.bytes, row.blocks);
    write(where + " live_at_peak", memory.live_at_peak);
  }

  void write(const std::string& where, const core_peaks& peaks) {
    line(where + " circular buffers, buffers, total, busiest", peaks.circular_buffers, peaks.buffers, peaks.total,
         peaks.busiest_core);
  }

  void write(const std::string& where, const operation_profile& operation) {
    line(where + " path, name, parent, invocations", operation.path, operation.name, operation.parent, operation.invocations,
         operation.stands_for_others);
    for (const operation_usage& usage : operation.usage) {
      line(where + " in " + usage.space + ": total, self, max delta", usage.total_delta, usage.self_delta, usage.max_delta);
      line(where + " in " + usage.space + ": allocated, freed, self", usage.allocated, usage.freed, usage.self_allocated,
           usage.self_freed);
      line(where + " in " + usage.space + ": counts, inferred", usage.allocation_count, usage.deallocation_count, usage.inferred);
      line(where + " in " + usage.space + ": peak, self peak, live", usage.peak, usage.self_peak, usage.live);
      write(where + " first in " + usage.space, usage.first_invocation);
      write(where + " last in " + usage.space, usage.last_invocation);
      write(where + " largest in " + usage.space, usage.largest_invocation);
    }
  }

  void write(const profile& shown) {
    line("version, exact, complete", shown.library_version, shown.exact, shown.complete);
    line("segments, steps", shown.segment_count, shown.step_count);
    for (const segment& each : shown.segments) {
      line("segment name, begin, end, number, step", each.name, each.begin_ns, each.end_ns, each.number, each.step);
    }
    for (const named_segments& row : shown.segments_by_name) {
      line("all of " + row.name, row.stands_for_others, row.count, row.kept, row.first_number, row.last_number);
      write("duration of " + row.name, row.duration_ns);
    }
    for (const space_profile& space : shown.spaces) write("space " + space.name, space);
    for (const memory_profile& memory : shown.memories) write("memory " + memory.name, memory);
    for (const operation_profile& operation : shown.operations) write("operation " + operation.path, operation);
    line("rejected, unbalanced, too deep", shown.anomalies.rejected_events, shown.anomalies.unbalanced_scopes,
         shown.anomalies.too_deep_scopes, shown.anomalies.other_segments, shown.anomalies.other_operations,
         shown.anomalies.other_names);
  }

  std::vector<std::string> lines_;
};

/// The first lines in which two profiles differ; empty if they are equal.
[[nodiscard]] inline std::string difference(const profile& found, const profile& expected) {
  if (found == expected) return {};
  const std::vector<std::string> left = profile_lines::of(found);
  const std::vector<std::string> right = profile_lines::of(expected);
  std::string text;
  int shown = 0;
  for (std::size_t index = 0; index < std::max(left.size(), right.size()) && shown < 5; ++index) {
    const std::string is = index < left.size() ? left[index] : "(nothing)";
    const std::string should_be = index < right.size() ? right[index] : "(nothing)";
    if (is == should_be) continue;
    text += "  is        " + is + "\n  should be " + should_be + "\n";
    ++shown;
  }
  return text.empty() ? "  they differ in a field that profile_lines does not write\n" : text;
}

}  // namespace memprof::property
