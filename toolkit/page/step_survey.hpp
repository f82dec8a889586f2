#pragma once

#include <memprof/toolkit/page/block_follower.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// What one segment did in one memory space, in bytes.
struct page_segment_usage {
  std::uint8_t space = 0;  ///< its id
  std::int64_t segment_peak = 0;
  std::int64_t allocations = 0;
  std::int64_t deallocations = 0;
  std::int64_t segment_change = 0;
  std::int64_t live_at_peak = 0;
  std::int64_t live_at_end = 0;
};

/// A kind of step: the same segments with the same bytes.
struct step_pattern {
  struct part {
    label name = 0;
    double begin = 0;  ///< sums, over its steps, of where the segment began and ended as a share of the step
    double end = 0;
    std::vector<page_segment_usage> usage;
  };
  std::uint64_t steps = 0;
  std::vector<part> parts;
};

/// A step that may get a frame of its own.
struct single_step {
  moment begin;
  moment end;
  std::uint64_t number = 0;             ///< from 0
  std::vector<std::int64_t> peaks;      ///< live bytes, by id of the space
  std::vector<std::uint64_t> activity;  ///< events that concern it, by id of the space
};

/// Finds the steps in the segments of a trace: rounds of repeating names. A step ends before a name that it already contains, and
/// the last one before the segment that ends with the capture.
///
/// Costs a step for each space that a segment changed, however many there are. Memory is bounded: neighbouring steps share a row
/// if there are too many, and the number of patterns is limited.
class step_survey {
 public:
  static constexpr std::uint32_t no_pattern = 0;

  struct row {
    moment begin;
    moment end;
    std::uint32_t pattern = no_pattern;  ///< index into `patterns` plus 1
    std::uint64_t steps = 0;
    std::uint64_t first_segment = 0;
  };
  struct usage {
    std::int64_t peak = 0;
    std::int64_t current = 0;
  };

  explicit step_survey(std::size_t max_rows = 131072) : max_rows_{max_rows} {}

  /// Records the end of a segment. `changed` has the spaces with events in it, ascending by id; `activity` is the number of
  /// events so far by id.
  void end_segment(label name, const moment& begin, const moment& end, const std::vector<page_segment_usage>& changed,
                   const std::vector<std::uint64_t>& activity) {
    if (names_.contains(name)) close_step();
    if (segments_in_step_ == 0) step_begin_ = begin;
    names_.insert(name);
    step_end_ = end;
    for (const page_segment_usage& each : changed) {
      space_state& space = change(each.space);
      space.peak = std::max(space.peak, each.live_at_peak);
      space.live = each.live_at_end;
      space.activity = activity[each.space];
    }
    if (segments_in_step_++ < max_segments_of_step) segments_.push_back({name, begin, end, changed});
    ++segment_count_;
  }

  /// Records the end of the segment that ends with the capture: it follows the last step and belongs to none.
  void end_of_capture(const std::vector<page_segment_usage>& changed, const std::vector<std::uint64_t>& activity) {
    close_step();
    for (const page_segment_usage& each : changed) {
      space_state& space = change(each.space);
      space.peak = space.live = each.live_at_end;
      space.activity = space.activity_at_begin = activity[each.space];
    }
    ++segment_count_;
  }

  /// Call after the last segment.
  void finish() {
    close_step();
    if (step_count_ != 0) {
      last_ = {last_begin_, last_end_, step_count_ - 1, {}, {}};
      for (std::size_t id = 0; id < space_count_; ++id) {
        last_.peaks.push_back(spaces_[id].last_peak);
        last_.activity.push_back(spaces_[id].last_activity);
      }
    }
    if (step_count_ < 2) rows_.clear();
    const auto shown = static_cast<std::size_t>(
        std::count_if(usage_.begin(), usage_.end(), [](const std::vector<changed_row>& column) { return !column.empty(); }));
    while (rows_.size() > 1 && rows_.size() * shown > max_cells) join_rows();
  }

  [[nodiscard]] const std::vector<row>& rows() const noexcept { return rows_; }
  /// The usage of a row by id of the space.
  [[nodiscard]] usage usage_of(std::size_t index, std::size_t space) const noexcept {
    const std::vector<changed_row>& column = usage_[space];
    const auto behind = std::upper_bound(column.begin(), column.end(), index,
                                         [](std::size_t wanted, const changed_row& each) { return wanted < each.index; });
    if (behind == column.begin()) return {};
    const changed_row& newest = behind[-1];
    return newest.index == index ? newest.usage : usage{newest.usage.current, newest.usage.current};
  }
  [[nodiscard]] const std::vector<step_pattern>& patterns() const noexcept { return patterns_; }
  /// The first step of each pattern, in the order of the patterns.
  [[nodiscard]] const std::vector<single_step>& first_of_pattern() const noexcept { return first_of_pattern_; }
  [[nodiscard]] const single_step& first() const noexcept { return first_; }
  [[nodiscard]] const single_step& last() const noexcept { return last_; }
  /// The first step in which a space, given by id, had its peak.
  [[nodiscard]] const single_step& highest(std::size_t space) const noexcept { return highest_[space]; }
  [[nodiscard]] std::size_t row_of(const single_step& step) const noexcept { return step.number / steps_per_row_; }
  [[nodiscard]] std::uint64_t step_count() const noexcept { return step_count_; }
  [[nodiscard]] std::uint64_t segment_count() const noexcept { return segment_count_; }

 private:
  static constexpr std::size_t max_spaces = 256;
  static constexpr std::size_t max_patterns = 1024;
  static constexpr std::size_t max_pattern_words = std::size_t{1} << 20;
  /// Beyond this many segments it is not a step but a run whose segments all have different names.
  static constexpr std::size_t max_segments_of_step = 4096;
  /// Of all rows, for all spaces: a page has numbers for each.
  static constexpr std::size_t max_cells = std::size_t{1} << 20;

  struct segment {
    label name;
    moment begin;
    moment end;
    std::vector<page_segment_usage> used;
  };

  /// A space in the open step and in the last one that has ended.
  struct space_state {
    std::int64_t live = 0;                ///< at the end of its last segment
    std::int64_t peak = 0;                ///< in the open step; `live` unless it has changed there
    std::uint64_t activity = 0;           ///< at the end of its last segment
    std::uint64_t activity_at_begin = 0;  ///< where the open step began
    std::int64_t last_peak = 0;
    std::uint64_t last_activity = 0;
    bool has_changed = false;  ///< in the open step
  };
  /// A row in which a space changed. In those between, it stayed as at the end of the one before.
  struct changed_row {
    std::size_t index;
    step_survey::usage usage;
  };

  space_state& change(std::size_t id) {
    space_state& space = spaces_[id];
    space_count_ = std::max(space_count_, id + 1);
    if (!space.has_changed) changed_.push_back(static_cast<std::uint8_t>(id));
    space.has_changed = true;
    return space;
  }

  void close_step() {
    if (segments_in_step_ == 0) return;
    const std::uint64_t number = step_count_++;
    const std::uint32_t pattern = count_pattern(number);
    if (number == 0) first_ = step_as_single(number);
    for (const std::uint8_t id : changed_) {
      const std::vector<std::int64_t>& best = highest_[id].peaks;
      if (spaces_[id].peak > (id < best.size() ? best[id] : 0)) highest_[id] = step_as_single(number);
    }
    add_row(pattern);
    for (const std::vector<std::uint8_t>* ids : {&changed_in_last_, &changed_}) {
      for (const std::uint8_t id : *ids) {
        space_state& space = spaces_[id];
        space.last_peak = space.peak;
        space.last_activity = space.activity - space.activity_at_begin;
      }
    }
    for (const std::uint8_t id : changed_) {
      space_state& space = spaces_[id];
      space.peak = space.live;
      space.activity_at_begin = space.activity;
      space.has_changed = false;
    }
    changed_in_last_.swap(changed_);
    changed_.clear();
    last_begin_ = step_begin_;
    last_end_ = step_end_;
    segments_in_step_ = 0;
    segments_.clear();
    names_.clear();
  }

  /// The step that is about to close.
  [[nodiscard]] single_step step_as_single(std::uint64_t number) const {
    single_step step{step_begin_, step_end_, number, {}, {}};
    step.peaks.reserve(space_count_);
    step.activity.reserve(space_count_);
    for (std::size_t id = 0; id < space_count_; ++id) {
      step.peaks.push_back(spaces_[id].peak);
      step.activity.push_back(spaces_[id].activity - spaces_[id].activity_at_begin);
    }
    return step;
  }

  [[nodiscard]] std::uint32_t count_pattern(std::uint64_t number) {
    if (segments_in_step_ > max_segments_of_step) return no_pattern;
    signature_.clear();
    for (const segment& each : segments_) {
      signature_.push_back(-1 - std::int64_t{each.name});
      for (const page_segment_usage& in : each.used) {
        if (in.allocations == 0 && in.deallocations == 0) continue;
        signature_.insert(signature_.end(), {in.space, in.segment_peak, in.allocations, in.deallocations});
      }
    }
    auto found = index_.find(signature_);
    if (found == index_.end()) {
      pattern_words_ += signature_.size();
      if (patterns_.size() == max_patterns || pattern_words_ > max_pattern_words) return no_pattern;
      found = index_.emplace(signature_, patterns_.size()).first;
      step_pattern& added = patterns_.emplace_back();
      for (const segment& each : segments_) added.parts.push_back({each.name, 0, 0, each.used});
      first_of_pattern_.push_back(step_as_single(number));
    }
    step_pattern& pattern = patterns_[found->second];
    ++pattern.steps;
    const auto duration = static_cast<double>(step_end_.stamp - step_begin_.stamp);
    const auto part_until = [&](const moment& when, std::size_t index) {
      if (duration == 0) return static_cast<double>(index) / static_cast<double>(segments_.size());
      return static_cast<double>(when.stamp - step_begin_.stamp) / duration;
    };
    for (std::size_t index = 0; index < segments_.size(); ++index) {
      pattern.parts[index].begin += part_until(segments_[index].begin, index);
      pattern.parts[index].end += part_until(segments_[index].end, index + 1);
    }
    return static_cast<std::uint32_t>(found->second + 1);
  }

  void add_row(std::uint32_t pattern) {
    const bool goes_on = !rows_.empty() && rows_.back().steps < steps_per_row_;
    if (!goes_on && rows_.size() == max_rows_) {
      join_rows();
      return add_row(pattern);
    }
    const std::uint64_t first_segment = segment_count_ - segments_in_step_;
    if (goes_on) {
      row& open = rows_.back();
      open.end = step_end_;
      ++open.steps;
      if (open.pattern != pattern) open.pattern = no_pattern;
    } else {
      rows_.push_back({step_begin_, step_end_, pattern, 1, first_segment});
    }
    const std::size_t index = rows_.size() - 1;
    for (const std::uint8_t id : changed_) {
      const space_state& space = spaces_[id];
      std::vector<changed_row>& column = usage_[id];
      if (column.empty() && space.peak == 0 && space.live == 0) continue;
      if (column.empty() || column.back().index != index) {
        const std::int64_t before = goes_on && !column.empty() ? column.back().usage.current : 0;
        column.push_back({index, {before, 0}});
      }
      usage& open = column.back().usage;
      open = {std::max(open.peak, space.peak), space.live};
    }
  }

  /// From now on, twice as many steps share a row.
  void join_rows() {
    steps_per_row_ *= 2;
    const std::size_t half = (rows_.size() + 1) / 2;
    for (std::size_t index = 0; index < half; ++index) {
      const row& left = rows_[2 * index];
      const row& right = rows_[std::min(2 * index + 1, rows_.size() - 1)];
      const bool is_alone = &left == &right;
      rows_[index] = {left.begin, right.end, left.pattern == right.pattern ? left.pattern : no_pattern,
                      is_alone ? left.steps : left.steps + right.steps, left.first_segment};
    }
    rows_.resize(half);
    for (std::vector<changed_row>& column : usage_) {
      std::size_t kept = 0;
      for (const changed_row& each : column) {
        const std::size_t index = each.index / 2;
        if (kept != 0 && column[kept - 1].index == index) {
          usage& open = column[kept - 1].usage;
          open = {std::max(open.peak, each.usage.peak), each.usage.current};
          continue;
        }
        // Of a pair, the left row may be one in which nothing changed.
        const std::int64_t before = each.index % 2 != 0 && kept != 0 ? column[kept - 1].usage.current : 0;
        column[kept++] = {index, {std::max(before, each.usage.peak), each.usage.current}};
      }
      column.resize(kept);
    }
  }

  std::size_t max_rows_;
  std::uint64_t steps_per_row_ = 1;
  std::uint64_t step_count_ = 0;
  std::uint64_t segment_count_ = 0;
  std::vector<row> rows_;
  std::array<std::vector<changed_row>, max_spaces> usage_;  ///< ascending
  std::map<std::vector<std::int64_t>, std::size_t> index_;  ///< keyed by what the pattern's segments did
  std::size_t pattern_words_ = 0;
  std::vector<step_pattern> patterns_;
  std::vector<single_step> first_of_pattern_;
  single_step first_;
  single_step last_;
  std::array<single_step, max_spaces> highest_;

  std::array<space_state, max_spaces> spaces_;
  std::size_t space_count_ = 0;  ///< the greatest id that has changed, plus one
  std::vector<std::uint8_t> changed_in_last_;
  moment last_begin_;
  moment last_end_;

  // The open step.
  moment step_begin_;
  moment step_end_;
  std::vector<segment> segments_;  ///< the first `max_segments_of_step`
  std::size_t segments_in_step_ = 0;
  std::unordered_set<label> names_;
  std::vector<std::uint8_t> changed_;
  std::vector<std::int64_t> signature_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
