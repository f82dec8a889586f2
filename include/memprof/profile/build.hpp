#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/ledger/facet/capacity.hpp>
#include <memprof/ledger/facet/cores.hpp>
#include <memprof/ledger/facet/out_of_memory.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/profile/joint_peaks.hpp>
#include <memprof/profile/live_sets.hpp>
#include <memprof/profile/operation_path.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/provenance_of_facts.hpp>
#include <memprof/profile/segment_rows.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/version.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// The meaning of a ledger's ids, and whether more events may come.
struct ledger_names {
  name_view labels;
  const label* space_names;  ///< by memory space id
  const clock_readings& time;
  bool is_complete = true;  ///< false adds the segment that is still open, under the name `open_segment_name`
};

/// The name that a profile gives to operations beyond the limit.
inline constexpr std::string_view other_operations_name = "other operations";

/// The name that a profile gives to memory spaces beyond the limit.
inline constexpr std::string_view other_spaces_name = "other spaces";

namespace detail {

template <class Tree>
[[nodiscard, gnu::cold]] std::vector<std::string> operation_paths(const Tree& tree, name_view labels) {
  std::vector<std::string> paths(tree.size());
  for (std::size_t node = 1; node < tree.size(); ++node) {
    paths[node] = paths[tree[node].parent];
    if (tree[node].name == other_names) {
      append_other_operations(paths[node]);
    } else {
      append_operation(paths[node], labels.text(tree[node].name));
    }
  }
  return paths;
}

[[nodiscard, gnu::cold]] inline operation_invocation to_invocation(const invocation_record& run, const clock_readings& time) {
  return {run.thread, time.to_ns(run.begin_stamp), time.to_ns(run.end_stamp), run.delta, run.peak};
}

/// Sums a space's self values along the tree; entry 0 is "no operation".
template <class Tree, class Space>
[[nodiscard, gnu::cold]] std::vector<operation_usage> usage_of_space(const Tree& tree, const Space& space,
                                                                     std::string_view space_name, const clock_readings& time) {
  std::vector<operation_usage> all(tree.size());
  for (std::size_t node = tree.size(); node-- > 0;) {
    operation_usage& usage = all[node];
    usage.space = space_name;
    if (node < space.operation_count()) {
      const operation_stats& stats = space.operation(node);
      usage.self_allocated = stats.allocated;
      usage.self_freed = stats.freed;
      usage.allocated += stats.allocated;
      usage.freed += stats.freed;
      usage.allocation_count = stats.allocation_count;
      usage.deallocation_count = stats.deallocation_count;
      // Invocations that ended before an operation of their thread first used the space are not in `stats`; they changed nothing
      // in it.
      usage.max_delta = stats.finished < tree[node].finished ? std::max(stats.max_delta, std::int64_t{0}) : stats.max_delta;
      usage.peak = stats.peak;
      usage.self_peak = stats.self_peak;
      usage.live = stats.owned.live;
      if (stats.changing != 0) {
        usage.first_invocation = to_invocation(stats.first, time);
        usage.last_invocation = to_invocation(stats.last, time);
        usage.largest_invocation = to_invocation(stats.largest, time);
      }
    }
    usage.self_delta = usage.self_allocated - usage.self_freed;
    usage.total_delta = usage.allocated - usage.freed;
    if (node == 0) break;
    all[tree[node].parent].allocated += usage.allocated;
    all[tree[node].parent].freed += usage.freed;
  }
  return all;
}

/// Which operations allocated or freed in a space, directly or through a nested operation.
template <class Tree, class Space>
[[nodiscard, gnu::cold]] std::vector<char> active_operations(const Tree& tree, const Space& space) {
  std::vector<char> is_active(tree.size());
  for (std::size_t node = tree.size(); --node > 0;) {
    if (node < space.operation_count()) {
      const operation_stats& stats = space.operation(node);
      if (stats.allocation_count != 0 || stats.deallocation_count != 0) is_active[node] = 1;
    }
    if (is_active[node] != 0) is_active[tree[node].parent] = 1;
  }
  return is_active;
}

template <class Ledger>
[[nodiscard, gnu::cold]] std::vector<operation_profile> build_operations(const Ledger& events, const ledger_names& names,
                                                                         const std::vector<std::string>& paths) {
  const operation_tree& tree = events.operations();
  std::vector<operation_profile> operations(tree.size() - 1);
  for (std::size_t node = 1; node < tree.size(); ++node) {
    operation_profile& operation = operations[node - 1];
    operation.path = paths[node];
    operation.stands_for_others = tree[node].name == other_names;
    operation.name = operation.stands_for_others ? other_operations_name : names.labels.text(tree[node].name);
    operation.parent = static_cast<std::int64_t>(tree[node].parent) - 1;
    operation.invocations = tree[node].invocations;
  }
  // Rows are counted before they are filled, here and below: growing vectors would cost every user of the header compile time.
  std::vector<std::size_t> rows(tree.size());
  const auto for_each_space = [&](auto&& visit) {
    for (std::size_t id = 0; id < ledger::max_spaces; ++id) {
      if (events.space(id) == nullptr) continue;
      const std::vector<char> is_active = active_operations(tree, *events.space(id));
      for (std::size_t node = 1; node < tree.size(); ++node) {
        if (is_active[node] != 0) visit(id, node);
      }
    }
  };
  for_each_space([&](std::size_t, std::size_t node) { ++rows[node]; });
  for (std::size_t node = 1; node < tree.size(); ++node) operations[node - 1].usage = std::vector<operation_usage>(rows[node]);
  std::size_t filled_space = ledger::max_spaces;
  std::vector<operation_usage> usage;
  for (std::size_t& row : rows) row = 0;
  for_each_space([&](std::size_t id, std::size_t node) {
    if (id != filled_space) usage = usage_of_space(tree, *events.space(id), names.labels.text(names.space_names[id]), names.time);
    filled_space = id;
    operations[node - 1].usage[rows[node]++] = std::move(usage[node]);
  });
  return operations;
}

/// What was live at each of the kept checkpoints.
template <class Checkpoints>
[[nodiscard, gnu::cold]] std::vector<checkpoint> build_checkpoints(const Checkpoints& kept, const ledger_names& names,
                                                                   const std::vector<std::string>& paths) {
  std::vector<checkpoint> result(kept.marks().size());
  for (std::size_t index = 0; index < result.size(); ++index) {
    const checkpoint_mark& mark = kept.marks()[index];
    checkpoint& point = result[index];
    point.name = names.labels.text(mark.name);
    point.number = static_cast<std::int64_t>(mark.number);
    point.time_ns = std::max(names.time.to_ns(mark.stamp), std::int64_t{0});
    point.live_bytes = mark.bytes;
    point.live_blocks = mark.blocks;
    point.spaces = std::vector<checkpoint_usage>(mark.row_count);
    for (std::size_t row = 0; row < mark.row_count; ++row) {
      const checkpoint_row& held = kept.rows(mark)[row];
      checkpoint_usage& usage = point.spaces[row];
      const label space = names.space_names[held.space];
      usage.space = space == other_names ? other_spaces_name : names.labels.text(space);
      usage.live_bytes = held.bytes;
      usage.live_blocks = held.blocks;
      std::vector<block> largest(kept.largest_blocks(held), kept.largest_blocks(held) + held.block_count);
      sort_rows(largest.data(), largest.size(), is_larger);
      usage.largest_blocks = std::vector<live_block>(largest.size());
      for (std::size_t each = 0; each < largest.size(); ++each)
        usage.largest_blocks[each] = describe_block(largest[each], paths, names.labels);
    }
  }
  return result;
}

template <class Timeline>
[[nodiscard, gnu::cold]] memory_timeline build_timeline(const Timeline& line, const clock_readings& time, std::int64_t live) {
  memory_timeline result;
  result.events_per_point = static_cast<std::int64_t>(line.events_per_point());
  const auto& finished = line.finished();
  result.points = std::vector<timeline_point>(finished.size() + (line.has_open() ? 1 : 0));
  for (std::size_t index = 0; index < finished.size(); ++index) {
    result.points[index] = {time.to_ns(finished[index].stamp), finished[index].peak, finished[index].current};
  }
  if (line.has_open()) result.points[finished.size()] = {time.to_ns(line.open().stamp), line.open().peak, live};
  return result;
}

/// The live blocks that begin inside another one. Blocks on cores lie side by side and are left out.
template <class Blocks>
[[nodiscard, gnu::cold]] event_tally overlapping(const Blocks& live) {
  struct range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  std::vector<range> ranges(live.size());
  std::size_t count = 0;
  live.for_each([&](const block& held) {
    const bool is_on_cores = held.address >> 48 != 0;
    if (held.bytes != 0 && !is_on_cores) ranges[count++] = {held.address, held.address + held.bytes};  // both below 2^63
  });
  sort_rows(ranges.data(), count, [](const range& left, const range& right) {
    return left.begin != right.begin ? left.begin < right.begin : left.end < right.end;
  });
  event_tally found;
  std::uint64_t reached = 0;
  for (std::size_t index = 0; index < count; ++index) {
    if (ranges[index].begin < reached) found.add(std::min(reached, ranges[index].end) - ranges[index].begin);
    reached = std::max(reached, ranges[index].end);
  }
  return found;
}

/// Fills one space from its ledger: every segment of the profile, then the totals, then the overall peak.
template <class Space, class Rows>
class space_builder {
 public:
  space_builder(const Space& space, const Rows& rows, const ledger_names& names, const std::vector<std::string>& paths)
      : space_(space), rows_(rows), names_(names), paths_(paths), live_sets_(space, paths, names.labels) {}

  [[nodiscard, gnu::cold]] space_profile build(std::string_view name, bool stands_for_others,
                                               const std::vector<segment>& segments,
                                               const std::vector<named_segments>& segment_names) {
    result_.name = name;
    result_.stands_for_others = stands_for_others;
    result_.segments = std::vector<segment_usage>(segments.size());
    for (std::size_t index = 0; index < segments.size(); ++index)
      fill_segment(result_.segments[index], segments[index].name, index);
    add_names(segment_names);
    result_.cumulative_current = space_.live();
    result_.allocations = space_.allocated();
    result_.deallocations = result_.allocations - result_.cumulative_current;
    result_.allocation_count = static_cast<std::int64_t>(space_.allocation_count());
    result_.deallocation_count = result_.allocation_count - static_cast<std::int64_t>(space_.blocks().size());
    add_overall_peak();
    result_.current_by_category = rows_of_categories(space_.live_by_category());
    result_.capacity = space_.capacity();
    result_.capacity_is_per_core = space_.capacity_is_per_core();
    if (space_.first_shortfall().has_happened()) {
      result_.first_shortfall = build_first_shortfall(space_, names_.time, paths_, live_sets_.at_first_shortfall(), rows_);
    }
    result_.timeline = build_timeline(space_.line(), names_.time, space_.live());
    result_.anomalies = {space_.unmatched_frees,    space_.replaced_allocations, space_.mismatched_sizes,
                         space_.cross_thread_frees, space_.unknown_annotations,  space_.untracked_allocations,
                         space_.null_allocations,   overlapping(space_.blocks())};
    result_.cores = build_cores(space_.cores(), rows_, segment_names);
    result_.reserved = build_reserved(space_.reserved(), rows_, segment_names);
    result_.active = build_active(space_.active(), rows_, segment_names);
    result_.streams = build_streams(space_.streams(), names_.labels);
    result_.out_of_memory = build_out_of_memory(space_.out_of_memory(), names_.time, paths_, rows_);
    result_.further_out_of_memory = space_.out_of_memory().further();
    return std::move(result_);
  }

 private:
  [[gnu::cold]] void fill_segment(segment_usage& usage, const std::string& name, std::size_t index) {
    usage.segment = name;
    const bool is_open = index == rows_.finished();
    if (!is_open && rows_.position(index) >= space_.segments().size()) return;  // there was no memory for its record
    const segment_record record = is_open ? space_.open_segment() : space_.segments()[rows_.position(index)];
    fill(usage, record);
    usage.live_at_peak = is_open ? live_sets_.at_open() : live_sets_.at_finished(rows_.position(index));
    usage.cumulative_peak = is_open ? std::max(space_.overall_peak(), record.live_at_peak) : record.cumulative_peak;
    result_.cumulative_peak = usage.cumulative_peak;
  }

  /// Adds the sums over all segments of each name.
  [[gnu::cold]] void add_names(const std::vector<named_segments>& names) {
    const segment_record open = space_.open_segment();
    const std::int64_t change = open.live_at_end - open.live_at_start;
    const std::array numbers{open.live_at_peak - open.live_at_start,
                             open.live_at_peak,
                             open.allocated,
                             open.allocated - change,
                             change,
                             open.live_at_end,
                             open.allocation_count,
                             open.allocation_count - (open.blocks_at_end - open.blocks_at_start)};
    result_.segments_by_name = std::vector<named_segments_usage>(names.size());
    for_each_name(rows_, space_.by_name(), numbers, [&](std::size_t row, const auto& of) {
      const bool is_open = row == rows_.history().rows().size();
      const linear_fit line = is_open ? linear_fit{0, 1} : space_.growth(rows_.history(), row);
      result_.segments_by_name[row] = {names[row].name, of[0], of[1], of[2], of[3], of[4], of[5], of[6], of[7], line};
    });
  }

  [[gnu::cold]] void fill(segment_usage& usage, const segment_record& record) const {
    usage.segment_peak = record.live_at_peak - record.live_at_start;
    usage.segment_change = record.live_at_end - record.live_at_start;
    usage.allocations = record.allocated;
    usage.deallocations = record.allocated - usage.segment_change;
    usage.cumulative_current = record.live_at_end;
    usage.allocation_count = record.allocation_count;
    usage.deallocation_count = record.allocation_count - (record.blocks_at_end - record.blocks_at_start);
    usage.peak_time_ns = names_.time.to_ns(record.peak_stamp);
    if (record.peak_operation != 0) usage.peak_operation = paths_[record.peak_operation];
  }

  [[gnu::cold]] void add_overall_peak() {
    if (result_.cumulative_peak == 0) return;
    const bool is_finished = result_.cumulative_peak == space_.overall_peak();
    result_.peak_segment = rows_.index_of(is_finished ? space_.overall_segment() : rows_.history().count());
    if (result_.peak_segment < 0) return;
    const segment_usage& usage = result_.segments[static_cast<std::size_t>(result_.peak_segment)];
    result_.peak_time_ns = usage.peak_time_ns;
    result_.peak_operation = usage.peak_operation;
    result_.live_at_peak = is_finished ? live_sets_.with_all_owners(usage.live_at_peak) : usage.live_at_peak;
  }

  const Space& space_;
  const Rows& rows_;
  const ledger_names& names_;
  const std::vector<std::string>& paths_;
  live_set_builder<Space> live_sets_;
  space_profile result_;
};

}  // namespace detail

/// The profile of what a ledger saw. Fields that it cannot know (wall clock, run mode, process, cost, facts) keep their defaults.
///
/// Costs a pass over live blocks, operations and segments. Throws `std::bad_alloc` if there is no memory for the result.
/// Not inlined, here and below: code that always calls its cold parts is cold itself.
template <class Ledger>
[[nodiscard, gnu::noinline]] profile build_profile(Ledger& events, const ledger_names& names) {
  events.settle();
  profile result;
  result.library_version = version_string;
  result.exact = true;
  result.complete = names.is_complete;
  const detail::segment_rows rows{events.segments(), !names.is_complete};
  result.segments = detail::build_segments(rows, names.labels, names.time, events.segment_begin(), events.last_stamp());
  result.segments_by_name = detail::build_names(rows, names.labels, names.time, events.begin_stamp(), result.segments);
  result.segment_count = static_cast<std::int64_t>(events.segments().count()) + (names.is_complete ? 0 : 1);
  result.step_count = result.segment_count == 0 ? 0 : static_cast<std::int64_t>(events.segments().step()) + 1;
  const std::vector<std::string> paths = detail::operation_paths(events.operations(), names.labels);
  result.operations = detail::build_operations(events, names, paths);
  result.checkpoints = detail::build_checkpoints(events.checkpoints(), names, paths);
  result.checkpoint_count = static_cast<std::int64_t>(events.checkpoints().count());
  std::size_t space_count = 0;
  for (std::size_t id = 0; id < ledger::max_spaces; ++id) space_count += events.space(id) != nullptr ? 1U : 0U;
  result.spaces = std::vector<space_profile>(space_count);
  for (std::size_t id = 0, index = 0; id < ledger::max_spaces; ++id) {
    const detail::space_ledger* const space = events.space(id);
    if (space == nullptr) continue;
    const label name = names.space_names[id];
    const bool is_shared = name == other_names;
    result.spaces[index++] = detail::space_builder{*space, rows, names, paths}.build(
        is_shared ? other_spaces_name : names.labels.text(name), is_shared, result.segments, result.segments_by_name);
    if (is_shared || space->untracked_allocations.count != 0) result.exact = false;
  }
  result.memories = detail::build_memories(events, names.labels, names.time, paths, rows, result.spaces);
  result.anomalies.rejected_events = static_cast<std::int64_t>(events.rejected_events());
  result.anomalies.unbalanced_scopes = static_cast<std::int64_t>(events.unbalanced_scopes());
  result.anomalies.too_deep_scopes = static_cast<std::int64_t>(events.too_deep_scopes());
  for (const named_segments& row : result.segments_by_name) {
    if (row.stands_for_others) result.anomalies.other_segments = row.count;
  }
  for (const operation_profile& operation : result.operations) {
    if (operation.stands_for_others) result.anomalies.other_operations += operation.invocations;
  }
  result.anomalies.other_names = static_cast<std::int64_t>(events.other_names());
  // A trace from a file may claim any number.
  const auto count = [](std::uint64_t events_of_kind) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(events_of_kind, INT64_MAX));
  };
  result.anomalies.dropped_events = count(events.dropped_events());
  result.anomalies.reentrant_events = count(events.reentrant_events());
  result.anomalies.missing_events = count(events.missing_events());
  if ((events.rejected_events() | events.dropped_events() | events.reentrant_events() | events.missing_events()) != 0 ||
      events.are_more_missing()) {
    result.exact = false;
  }
  return result;
}

/// The profile of a trace so far, with its facts. The cost of recording, which only the capture knows, keeps its default.
///
/// Costs a pass over live blocks, operations and segments. Throws `std::bad_alloc` if there is no memory for the result.
template <class Fold, class Facts>
[[nodiscard, gnu::noinline]] profile build_profile_of(Fold& fold, Facts&& facts) {
  auto& events = fold.events();
  profile result = build_profile(events, {fold.names(), fold.space_names(), events.clock(), events.has_ended()});
  const capture_info info = fold.info();
  result.library_version = info.library_version;
  result.mode = info.mode;
  result.device = info.device;
  result.begin_unix_ns = info.begin_unix_ns;
  result.duration_ns = std::max(events.clock().last_ns(), events.clock().to_ns(events.last_stamp()));
  result.process = info.process;
  result.facts = std::forward<Facts>(facts);
  result.provenance = detail::provenance_of(result.facts);
  result.anomalies.missing_fact_rows = static_cast<std::int64_t>(std::min<std::uint64_t>(fold.missing_fact_rows(), INT64_MAX));
  if (fold.missing_fact_rows() != 0) result.exact = false;
  return result;
}
/// The same of a trace of which more will come.
template <class Fold>
[[nodiscard, gnu::noinline]] profile build_profile_of(Fold& fold) {
  return build_profile_of(fold, fold.facts());
}

}  // namespace memprof::inline MEMPROF_ABI
