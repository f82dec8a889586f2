#include <memprof/config.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/step_survey.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

void step_survey::end_segment(label name, const moment& begin, const moment& end, const std::vector<page_segment_usage>& changed,
                              const std::vector<std::uint64_t>& activity) {
  if (names_.contains(name)) close_step();
  if (segments_in_step_ == 0) step_begin_ = begin;
  names_.insert(name);
  step_end_ = end;
  for (const page_segment_usage& each : changed) {
    space_state& space = change(each.space);
    space.peak = std::max(space.peak, each.peak_live_bytes);
    space.live = each.live_at_end;
    space.activity = activity[each.space];
  }
  if (segments_in_step_++ < max_segments_of_step) segments_.push_back({name, begin, end, changed});
  ++segment_count_;
}

void step_survey::end_of_capture(const std::vector<page_segment_usage>& changed, const std::vector<std::uint64_t>& activity) {
  close_step();
  for (const page_segment_usage& each : changed) {
    space_state& space = change(each.space);
    space.peak = space.live = each.live_at_end;
    space.activity = space.activity_at_begin = activity[each.space];
  }
  ++segment_count_;
}

void step_survey::finish() {
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

step_survey::usage step_survey::usage_of(std::size_t index, std::size_t space) const noexcept {
  const std::vector<changed_row>& column = usage_[space];
  const auto behind = std::upper_bound(column.begin(), column.end(), index,
                                       [](std::size_t wanted, const changed_row& each) { return wanted < each.index; });
  if (behind == column.begin()) return {};
  const changed_row& newest = behind[-1];
  return newest.index == index ? newest.usage : usage{newest.usage.current, newest.usage.current};
}

step_survey::space_state& step_survey::change(std::size_t id) {
  space_state& space = spaces_[id];
  space_count_ = std::max(space_count_, id + 1);
  if (!space.has_changed) changed_.push_back(static_cast<std::uint8_t>(id));
  space.has_changed = true;
  return space;
}

void step_survey::close_step() {
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

single_step step_survey::step_as_single(std::uint64_t number) const {
  single_step step{step_begin_, step_end_, number, {}, {}};
  step.peaks.reserve(space_count_);
  step.activity.reserve(space_count_);
  for (std::size_t id = 0; id < space_count_; ++id) {
    step.peaks.push_back(spaces_[id].peak);
    step.activity.push_back(spaces_[id].activity - spaces_[id].activity_at_begin);
  }
  return step;
}

std::uint32_t step_survey::count_pattern(std::uint64_t number) {
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

void step_survey::add_row(std::uint32_t pattern) {
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

void step_survey::join_rows() {
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

}  // namespace memprof::inline MEMPROF_ABI::detail
