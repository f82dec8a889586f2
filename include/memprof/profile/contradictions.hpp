#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// Whether the numbers of a profile can come from one run: a file may have been edited by hand, merged or damaged.

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// Collects contradictions: for each rule, the first place that breaks it.
class contradiction_list {
 public:
  /// "`what``where` is `found`, but `rule` is `expected`".
  void expect_equal(std::string_view what, std::int64_t found, std::string_view rule, std::int64_t expected,
                    std::string_view where = {}) {
    if (found != expected) add(what, where, " is " + std::to_string(found) + ", but ", rule, " is " + std::to_string(expected));
  }
  /// "`what``where` is `found`, less than `rule`, `least`".
  void expect_at_least(std::string_view what, std::int64_t found, std::string_view rule, std::int64_t least,
                       std::string_view where = {}) {
    if (found < least) {
      add(what, where, " is " + std::to_string(found) + ", less than ", rule, ", " + std::to_string(least));
    }
  }
  void add(std::string_view what, std::string_view where, const std::string& relation, std::string_view rule,
           const std::string& rest) {
    std::string broken = std::string{what} + '\n' + std::string{rule};
    if (std::find(broken_.begin(), broken_.end(), broken) != broken_.end()) return;
    broken_.push_back(std::move(broken));
    sentences_.push_back(std::string{what} + std::string{where} + relation + std::string{rule} + rest);
  }

  [[nodiscard]] vector<std::string> take() && { return std::move(sentences_); }

 private:
  vector<std::string> broken_;
  vector<std::string> sentences_;
};

[[nodiscard]] inline std::int64_t bytes_of(const vector<owned_bytes>& rows) {
  std::int64_t sum = 0;
  for (const owned_bytes& row : rows) sum = add_saturating(sum, row.bytes);
  return sum;
}

/// `where` says which peak.
inline void check_live_set(const live_set& live, const std::string& where, contradiction_list& found) {
  if (!live.by_operation.empty()) {
    found.expect_equal("the sum of live_at_peak.by_operation and its rest",
                       add_saturating(bytes_of(live.by_operation), live.remaining_bytes), "live_at_peak.bytes", live.bytes,
                       where);
  }
  if (!live.by_category.empty()) {
    found.expect_equal("the sum of live_at_peak.by_category", bytes_of(live.by_category), "live_at_peak.bytes", live.bytes,
                       where);
  }
  std::int64_t largest = 0;
  for (const live_block& block : live.largest_blocks) largest = add_saturating(largest, block.bytes);
  found.expect_at_least("live_at_peak.bytes", live.bytes, "the sum of its largest_blocks", largest, where);
}

/// Each segment starts where the previous one ended; the first starts with nothing live. If `before` is not the direct
/// predecessor, what happened in between is unknown.
inline void check_segment(const segment_usage& before, bool follows, const segment_usage& usage, const std::string& where,
                          contradiction_list& found) {
  found.expect_equal("segment_change", usage.segment_change, "allocations - deallocations",
                     subtract_saturating(usage.allocations, usage.deallocations), where);
  found.expect_at_least("segment_peak", usage.segment_peak, "segment_change", usage.segment_change, where);
  const std::int64_t start =
      follows ? before.cumulative_current : subtract_saturating(usage.cumulative_current, usage.segment_change);
  const std::int64_t reached = std::max(before.cumulative_peak, add_saturating(start, usage.segment_peak));
  constexpr std::string_view so_far = "the greatest live bytes so far";
  if (follows) {
    found.expect_equal("cumulative_current", usage.cumulative_current, "that of the segment before and segment_change",
                       add_saturating(before.cumulative_current, usage.segment_change), where);
    found.expect_equal("cumulative_peak", usage.cumulative_peak, so_far, reached, where);
  } else {
    found.expect_at_least("cumulative_peak", usage.cumulative_peak, so_far, reached, where);
  }
  check_live_set(usage.live_at_peak, where, found);
}

/// The sums over all segments.
struct segment_sums {
  std::int64_t allocations = 0;
  std::int64_t deallocations = 0;
  std::int64_t allocation_count = 0;
  std::int64_t deallocation_count = 0;

  void add(std::int64_t allocated, std::int64_t freed, std::int64_t allocated_blocks, std::int64_t freed_blocks) {
    allocations = add_saturating(allocations, allocated);
    deallocations = add_saturating(deallocations, freed);
    allocation_count = add_saturating(allocation_count, allocated_blocks);
    deallocation_count = add_saturating(deallocation_count, freed_blocks);
  }
};

inline void check_sums(const space_profile& space, const segment_sums& sum, std::string_view total, contradiction_list& found) {
  found.expect_equal("allocations", space.allocations, total, sum.allocations);
  found.expect_equal("deallocations", space.deallocations, total, sum.deallocations);
  found.expect_equal("allocation_count", space.allocation_count, total, sum.allocation_count);
  found.expect_equal("deallocation_count", space.deallocation_count, total, sum.deallocation_count);
}

/// Whether the profile's segment with that index directly follows the previous one, or is the very first.
[[nodiscard]] inline bool follows_its_predecessor(const profile& of, std::size_t index) {
  if (index >= of.segments.size() || of.segments[index].number < 0) return true;  // the source has kept them all
  return of.segments[index].number == (index == 0 ? 0 : of.segments[index - 1].number + 1);
}

inline void check_segments(const profile& of, const space_profile& space, contradiction_list& found) {
  segment_usage before;
  segment_sums sum;
  bool are_all_kept = true;
  for (std::size_t index = 0; index < space.segments.size(); ++index) {
    const segment_usage& usage = space.segments[index];
    const std::string where =
        " of segment " + usage.segment + " (" + std::to_string(index + 1) + " of " + std::to_string(space.segments.size()) + ")";
    const bool follows = follows_its_predecessor(of, index);
    are_all_kept = are_all_kept && follows;
    check_segment(before, follows, usage, where, found);
    if (index < of.segments.size() && usage.segment != of.segments[index].name) {
      found.add("the name", where, " is not ", "that in the list of segments", ", " + of.segments[index].name);
    }
    sum.add(usage.allocations, usage.deallocations, usage.allocation_count, usage.deallocation_count);
    before = usage;
  }
  if (space.segments.empty()) return;
  constexpr std::string_view last = "that of the last segment";
  found.expect_equal("cumulative_peak", space.cumulative_peak, last, before.cumulative_peak);
  found.expect_equal("cumulative_current", space.cumulative_current, last, before.cumulative_current);
  if (are_all_kept) check_sums(space, sum, "the sum over the segments", found);
  if (space.segments_by_name.empty()) return;
  segment_sums by_name;
  for (const segment_summary& row : space.segments_by_name) {
    by_name.add(row.allocations.sum, row.deallocations.sum, row.allocation_count.sum, row.deallocation_count.sum);
  }
  check_sums(space, by_name, "the sum over segments_by_name", found);
}

inline void check_totals(const space_profile& space, contradiction_list& found) {
  found.expect_equal("cumulative_current", space.cumulative_current, "allocations - deallocations",
                     subtract_saturating(space.allocations, space.deallocations));
  found.expect_at_least("cumulative_peak", space.cumulative_peak, "cumulative_current", space.cumulative_current);
  found.expect_equal("live_at_peak.bytes", space.live_at_peak.bytes, "cumulative_peak", space.cumulative_peak);
  check_live_set(space.live_at_peak, " of the space", found);
  if (!space.current_by_category.empty()) {
    found.expect_equal("the sum of current_by_category", bytes_of(space.current_by_category), "cumulative_current",
                       space.cumulative_current);
  }
  const auto index = static_cast<std::size_t>(space.peak_segment);
  if (space.peak_segment >= 0 && index < space.segments.size()) {
    found.expect_equal("cumulative_peak of the segment that peak_segment names", space.segments[index].cumulative_peak,
                       "that of the space", space.cumulative_peak);
  }
  std::int64_t highest = 0;
  for (const timeline_point& point : space.timeline.points) highest = std::max(highest, point.peak);
  if (!space.timeline.points.empty()) {
    found.expect_equal("the greatest peak of the timeline", highest, "cumulative_peak", space.cumulative_peak);
  }
}

/// A memory holds what its spaces hold, and at the memory's peak no space exceeds its own peak.
inline void check_memory(const profile& of, const memory_profile& memory, contradiction_list& found) {
  const std::string where = " of the memory " + memory.name;
  std::int64_t current = 0;
  std::int64_t highest = 0;
  std::int64_t peaks = 0;
  bool has_peak_space = memory.peak_space.empty();
  for (const owned_bytes& part : memory.spaces) {
    has_peak_space = has_peak_space || part.owner == memory.peak_space;
    const space_profile* const space = of.find_space(part.owner);
    if (space == nullptr) {
      found.add("the space '" + part.owner + '\'', where, " is not ", "in the list of spaces", "");
      continue;
    }
    current = add_saturating(current, space->cumulative_current);
    highest = std::max(highest, space->cumulative_peak);
    peaks = add_saturating(peaks, space->cumulative_peak);
    found.expect_at_least("cumulative_peak of the space " + part.owner, space->cumulative_peak, "what it held at the peak",
                          part.bytes, where);
  }
  found.expect_equal("cumulative_current", memory.cumulative_current, "the sum of its spaces", current, where);
  found.expect_equal("cumulative_peak", memory.cumulative_peak, "the sum of what its spaces held", bytes_of(memory.spaces),
                     where);
  found.expect_at_least("cumulative_peak", memory.cumulative_peak, "cumulative_current", memory.cumulative_current, where);
  found.expect_at_least("cumulative_peak", memory.cumulative_peak, "that of one of its spaces", highest, where);
  found.expect_at_least("the sum of the peaks of the spaces", peaks, "cumulative_peak", memory.cumulative_peak, where);
  found.expect_equal("live_at_peak.bytes", memory.live_at_peak.bytes, "cumulative_peak", memory.cumulative_peak, where);
  check_live_set(memory.live_at_peak, where, found);
  if (!has_peak_space) found.add("peak_space", where, " is not ", "one of its spaces", ": " + memory.peak_space);
}

}  // namespace detail

/// Where the numbers of a memory space in a profile contradict each other: one sentence for each broken rule, with the first
/// place that breaks it. Empty for every profile that a capture made, and for profiles with rounded numbers: the reader of their
/// format checks those and adds remarks to the provenance. `space` must belong to the profile.
[[nodiscard]] inline vector<std::string> contradictions(const profile& of, const space_profile& space) {
  if (of.provenance.rounding != 1) return {};
  detail::contradiction_list found;
  detail::check_totals(space, found);
  detail::check_segments(of, space, found);
  return std::move(found).take();
}

/// The same for a memory that several spaces share; `memory` must belong to the profile.
[[nodiscard]] inline vector<std::string> contradictions(const profile& of, const memory_profile& memory) {
  if (of.provenance.rounding != 1) return {};
  detail::contradiction_list found;
  detail::check_memory(of, memory, found);
  return std::move(found).take();
}

}  // namespace memprof::inline MEMPROF_ABI
