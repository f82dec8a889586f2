#pragma once

#include <memprof/report/html/block_follower.hpp>
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
/// Memory is bounded: neighbouring steps share a row if there are too many, and the number of patterns is limited.
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

  /// Records the end of a segment. `used` has the spaces with events so far; `activity` is the number of events by id.
  void end_segment(label name, const moment& begin, const moment& end, const std::vector<page_segment_usage>& used,
                   const std::vector<std::uint64_t>& activity) {
    if (names_.contains(name)) close_step();
    if (segments_.empty()) {
      step_.begin = begin;
      activity_at_begin_ = activity_;  // where the last step ended
    }
    names_.insert(name);
    step_.end = end;
    activity_ = activity;
    step_.peaks.resize(activity.size());
    for (const page_segment_usage& each : used) {
      step_.peaks[each.space] = std::max(step_.peaks[each.space], each.live_at_peak);
      live_at_end_[each.space] = each.live_at_end;
    }
    segments_.push_back({name, begin, end, used});
    ++segment_count_;
  }

  /// Records the end of the segment that ends with the capture: it follows the last step and belongs to none.
  void end_of_capture(const std::vector<std::uint64_t>& activity) {
    close_step();
    activity_ = activity;
    ++segment_count_;
  }

  /// Call after the last segment.
  void finish() {
    close_step();
    if (step_count_ < 2) rows_.clear();
  }

  [[nodiscard]] const std::vector<row>& rows() const noexcept { return rows_; }
  /// The usage of a row by id of the space; if the row is too short for a space, nothing was live in it.
  [[nodiscard]] usage usage_of(std::size_t index, std::size_t space) const noexcept {
    return index < usage_[space].size() ? usage_[space][index] : usage{};
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

  struct segment {
    label name;
    moment begin;
    moment end;
    std::vector<page_segment_usage> used;
  };

  void close_step() {
    if (segments_.empty()) return;
    step_.number = step_count_++;
    activity_at_begin_.resize(activity_.size());
    step_.activity = activity_;
    for (std::size_t space = 0; space < activity_.size(); ++space) step_.activity[space] -= activity_at_begin_[space];
    const std::uint32_t pattern = count_pattern();
    if (step_.number == 0) first_ = step_;
    last_ = step_;
    for (std::size_t space = 0; space < step_.peaks.size(); ++space) {
      const std::vector<std::int64_t>& best = highest_[space].peaks;
      if (step_.peaks[space] > (space < best.size() ? best[space] : 0)) highest_[space] = step_;
    }
    add_row(pattern);
    step_.peaks.clear();
    segments_.clear();
    names_.clear();
  }

  [[nodiscard]] std::uint32_t count_pattern() {
    if (segments_.size() > max_segments_of_step) return no_pattern;
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
      first_of_pattern_.push_back(step_);
    }
    step_pattern& pattern = patterns_[found->second];
    ++pattern.steps;
    const auto duration = static_cast<double>(step_.end.stamp - step_.begin.stamp);
    const auto part_until = [&](const moment& when, std::size_t index) {
      if (duration == 0) return static_cast<double>(index) / static_cast<double>(segments_.size());
      return static_cast<double>(when.stamp - step_.begin.stamp) / duration;
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
    const std::uint64_t first_segment = segment_count_ - segments_.size();
    if (goes_on) {
      row& open = rows_.back();
      open.end = step_.end;
      ++open.steps;
      if (open.pattern != pattern) open.pattern = no_pattern;
    } else {
      rows_.push_back({step_.begin, step_.end, pattern, 1, first_segment});
    }
    for (std::size_t space = 0; space < step_.peaks.size(); ++space) {
      std::vector<usage>& column = usage_[space];
      if (step_.peaks[space] == 0 && live_at_end_[space] == 0 && column.empty()) continue;
      const bool is_new = column.size() < rows_.size();
      column.resize(rows_.size());
      usage& open = column.back();
      open = {is_new ? step_.peaks[space] : std::max(open.peak, step_.peaks[space]), live_at_end_[space]};
    }
  }

  /// From now on, twice as many steps share a row.
  void join_rows() {
    steps_per_row_ *= 2;
    const std::size_t half = rows_.size() / 2;
    for (std::size_t index = 0; index < half; ++index) {
      const row& left = rows_[2 * index];
      const row& right = rows_[2 * index + 1];
      rows_[index] = {left.begin, right.end, left.pattern == right.pattern ? left.pattern : no_pattern, left.steps + right.steps,
                      left.first_segment};
    }
    rows_.resize(half);
    for (std::vector<usage>& column : usage_) {
      if (column.empty()) continue;
      for (std::size_t index = 0; index < half; ++index) {
        column[index] = {std::max(column[2 * index].peak, column[2 * index + 1].peak), column[2 * index + 1].current};
      }
      column.resize(half);
    }
  }

  std::size_t max_rows_;  ///< even
  std::uint64_t steps_per_row_ = 1;
  std::uint64_t step_count_ = 0;
  std::uint64_t segment_count_ = 0;
  std::vector<row> rows_;
  std::array<std::vector<usage>, max_spaces> usage_;
  std::map<std::vector<std::int64_t>, std::size_t> index_;  ///< keyed by what the pattern's segments did
  std::size_t pattern_words_ = 0;
  std::vector<step_pattern> patterns_;
  std::vector<single_step> first_of_pattern_;
  single_step first_;
  single_step last_;
  std::array<single_step, max_spaces> highest_;

  // The open step.
  single_step step_;
  std::vector<segment> segments_;
  std::unordered_set<label> names_;
  std::vector<std::uint64_t> activity_;  ///< up to the end of its last segment, by id of the space
  std::vector<std::uint64_t> activity_at_begin_;
  std::array<std::int64_t, max_spaces> live_at_end_{};
  std::vector<std::int64_t> signature_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
