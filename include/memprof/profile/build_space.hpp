#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/ledger/facet/capacity.hpp>
#include <memprof/ledger/facet/cores.hpp>
#include <memprof/ledger/facet/out_of_memory.hpp>
#include <memprof/ledger/facet/reserved.hpp>
#include <memprof/ledger/facet/streams.hpp>
#include <memprof/ledger/linear_fit.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/profile/build_growing.hpp>
#include <memprof/profile/ledger_names.hpp>
#include <memprof/profile/live_sets.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segment_rows.hpp>
#include <memprof/trace/clock_readings.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

template <class Timeline>
[[nodiscard, gnu::cold]] memory_timeline build_timeline(const Timeline& line, const clock_readings& time, std::int64_t live) {
  memory_timeline result;
  result.events_per_point = static_cast<std::int64_t>(line.events_per_point());
  const auto& finished = line.finished();
  result.points = vector<timeline_point>(finished.size() + (line.has_open() ? 1 : 0));
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
  vector<range> ranges(live.size());
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
  space_builder(const Space& space, const Rows& rows, const ledger_names& names, const vector<std::string>& paths)
      : space_(space), rows_(rows), names_(names), paths_(paths), live_sets_(space, paths, names.labels) {}

  [[nodiscard, gnu::cold]] space_profile build(std::string_view name, bool stands_for_others, const vector<segment>& segments,
                                               const vector<named_segments>& segment_names) {
    result_.name = name;
    result_.stands_for_others = stands_for_others;
    result_.segments = vector<segment_usage>(segments.size());
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
    result_.growing = build_growing(space_.ends_of_steps(), paths_);
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
    usage.cumulative_peak = is_open ? std::max(space_.overall_peak(), record.peak_live_bytes) : record.cumulative_peak;
    result_.cumulative_peak = usage.cumulative_peak;
  }

  /// Adds the sums over all segments of each name.
  [[gnu::cold]] void add_names(const vector<named_segments>& names) {
    const segment_record open = space_.open_segment();
    const std::int64_t change = open.live_at_end - open.live_at_start;
    const std::array numbers{open.peak_live_bytes - open.live_at_start,
                             open.peak_live_bytes,
                             open.allocated,
                             open.allocated - change,
                             change,
                             open.live_at_end,
                             open.allocation_count,
                             open.allocation_count - (open.blocks_at_end - open.blocks_at_start)};
    result_.segments_by_name = vector<segment_summary>(names.size());
    for_each_name(rows_, space_.by_name(), numbers, [&](std::size_t row, const auto& of) {
      const bool is_open = row == rows_.history().rows().size();
      const linear_fit line = is_open ? linear_fit{0, 1} : space_.growth(rows_.history(), row);
      result_.segments_by_name[row] = {names[row].name, of[0], of[1], of[2], of[3], of[4], of[5], of[6], of[7], line};
    });
  }

  [[gnu::cold]] void fill(segment_usage& usage, const segment_record& record) const {
    usage.segment_peak = record.peak_live_bytes - record.live_at_start;
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
    result_.live_at_peak =
        is_finished ? live_sets_.at_overall(usage.live_at_peak, rows_.position(static_cast<std::size_t>(result_.peak_segment)))
                    : live_sets_.at_overall(usage.live_at_peak);
  }

  const Space& space_;
  const Rows& rows_;
  const ledger_names& names_;
  const vector<std::string>& paths_;
  live_set_builder<Space> live_sets_;
  space_profile result_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
