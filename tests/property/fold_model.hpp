#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/detail/wide_integer.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/profile/profile.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace memprof::property {

using namespace extend;

/// Folds the segments of a profile that has all of them, from the definitions: what is kept is found anew for every segment by
/// looking at all that came before, and numbers are summed up in vectors.
class fold_model {
 public:
  /// `durations` are those of the finished segments, in stamps; `joint_peaks` has the greatest sum of each segment for each
  /// memory.
  fold_model(profile full, const ledger_options& options, std::vector<std::int64_t> durations,
             std::vector<std::vector<detail::int128>> joint_peaks, double ns_per_stamp)
      : full_(std::move(full)),
        options_(options),
        durations_(std::move(durations)),
        joint_peaks_(std::move(joint_peaks)),
        ns_per_stamp_(ns_per_stamp) {}

  [[nodiscard]] profile build() {
    finished_ = full_.segments.size() - (full_.complete ? 0 : 1);
    find_names();
    find_steps();
    find_kept();
    profile result = full_;
    result.segment_count = static_cast<std::int64_t>(full_.segments.size());
    result.step_count = steps_.empty() ? 0 : steps_.back() + 1;
    for (std::size_t number = 0; number < full_.segments.size(); ++number) {
      result.segments[number].number = static_cast<std::int64_t>(number);
      result.segments[number].step = steps_[number];
    }
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      result.segments_by_name.push_back(summed_up(row));
      if (rows_[row].stands_for_others) result.anomalies.other_segments = result.segments_by_name.back().count;
    }
    leave_kept(result.segments);
    for (space_profile& space : result.spaces) fold(space);
    for (memory_profile& memory : result.memories) to_index(memory.peak_segment);
    return result;
  }

 private:
  /// Gives every segment a row.
  void find_names() {
    std::size_t named = 0;
    for (std::size_t number = 0; number < full_.segments.size(); ++number) {
      const std::string& name = full_.segments[number].name;
      const bool is_open = number == finished_;
      const auto known = std::find_if(rows_.begin(), rows_.end(), [&](const named_segments& row) {
        return row.name == name && !row.stands_for_others && !is_open;
      });
      const auto others =
          std::find_if(rows_.begin(), rows_.end(), [](const named_segments& row) { return row.stands_for_others; });
      std::size_t row = static_cast<std::size_t>(known - rows_.begin());
      if (known == rows_.end() && !is_open && named >= options_.segment_names) {
        row = static_cast<std::size_t>(others - rows_.begin());
        if (others == rows_.end()) rows_.push_back({"other segments", true, 0, 0, -1, -1, {}});
      } else if (known == rows_.end()) {
        if (!is_open) ++named;
        rows_.push_back({name, false, 0, 0, -1, -1, {}});
      }
      members_.resize(rows_.size());
      members_[row].push_back(number);
      row_of_.push_back(row);
    }
  }

  void find_steps() {
    std::set<std::size_t> seen;
    std::int64_t step = 0;
    for (std::size_t number = 0; number < full_.segments.size(); ++number) {
      const std::size_t row = row_of_[number];
      if (number != finished_ && !rows_[row].stands_for_others && !seen.insert(row).second) {
        ++step;
        seen = {row};
      }
      steps_.push_back(step);
    }
  }

  /// Lets the segments end one after the other.
  void find_kept() {
    for (std::size_t last = 0; last < finished_; ++last) {
      kept_.insert(last);
      const std::set<std::size_t> pinned = pinned_until(last);
      const std::set<std::size_t> held = held_until(last);
      while (kept_.size() > options_.full_segments) {
        std::vector<std::pair<int, std::size_t>> candidates;
        for (const std::size_t number : kept_) {
          if (number + options_.full_segments / 4 > last || pinned.count(number) != 0) continue;
          const bool is_first = members_[row_of_[number]].front() == number;
          candidates.push_back({is_first ? 2 : held.count(number) != 0 ? 1 : 0, number});
        }
        if (candidates.empty()) break;
        kept_.erase(std::min_element(candidates.begin(), candidates.end())->second);
      }
    }
    if (finished_ < full_.segments.size()) kept_.insert(finished_);
  }

  /// The segments with the overall peak and the first shortfall of a space, and the joint peak of a memory.
  [[nodiscard]] std::set<std::size_t> pinned_until(std::size_t last) const {
    std::set<std::size_t> pinned;
    for (const std::vector<detail::int128>& peaks : joint_peaks_) {
      const auto end = peaks.begin() + static_cast<std::ptrdiff_t>(last) + 1;
      const auto greatest = std::max_element(peaks.begin(), end);
      if (*greatest != 0) pinned.insert(static_cast<std::size_t>(greatest - peaks.begin()));
    }
    for (const space_profile& space : full_.spaces) {
      std::int64_t peak = 0;
      std::size_t where = 0;
      for (std::size_t number = 0; number <= last; ++number) {
        if (space.segments[number].live_at_peak.bytes <= peak) continue;
        peak = space.segments[number].live_at_peak.bytes;
        where = number;
      }
      if (peak != 0) pinned.insert(where);
      if (space.first_shortfall.segment >= 0) pinned.insert(static_cast<std::size_t>(space.first_shortfall.segment));
    }
    return pinned;
  }

  /// The segments with an extreme of their name, and those in which an allocation failed.
  [[nodiscard]] std::set<std::size_t> held_until(std::size_t last) const {
    std::set<std::size_t> held;
    for (const space_profile& space : full_.spaces) {
      for (const std::vector<std::size_t>& members : members_) {
        for (const auto value : {&of_peak, &of_live_at_peak, &of_current}) {
          std::int64_t greatest = 0;
          std::size_t where = 0;
          for (const std::size_t number : members) {
            if (number > last || value(space.segments[number]) <= greatest) continue;
            greatest = value(space.segments[number]);
            where = number;
          }
          if (greatest != 0) held.insert(where);
        }
      }
      for (const out_of_memory_failure& failed : space.out_of_memory) {
        if (failed.segment >= 0) held.insert(static_cast<std::size_t>(failed.segment));
      }
    }
    return held;
  }

  static std::int64_t of_peak(const segment_usage& usage) { return usage.segment_peak; }
  static std::int64_t of_live_at_peak(const segment_usage& usage) { return usage.live_at_peak.bytes; }
  static std::int64_t of_current(const segment_usage& usage) { return usage.cumulative_current; }

  template <class Value>
  [[nodiscard]] value_summary summary(std::size_t row, Value&& value) const {
    const std::vector<std::size_t>& members = members_[row];
    value_summary result;
    std::vector<std::int64_t> values;
    for (const std::size_t number : members) {
      values.push_back(value(number));
      // Saturates; random sequences are too short for a sum of positive and negative numbers to leave the range and come back.
      if (__builtin_add_overflow(result.sum, values.back(), &result.sum)) {
        result.sum = values.back() > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
      }
    }
    const auto least = std::min_element(values.begin(), values.end());
    const auto greatest = std::max_element(values.begin(), values.end());
    result.first = values.front();
    result.last = values.back();
    result.least = *least;
    result.greatest = *greatest;
    result.least_segment = static_cast<std::int64_t>(members[static_cast<std::size_t>(least - values.begin())]);
    result.greatest_segment = static_cast<std::int64_t>(members[static_cast<std::size_t>(greatest - values.begin())]);
    return result;
  }

  [[nodiscard]] named_segments summed_up(std::size_t index) const {
    named_segments row = rows_[index];
    const std::vector<std::size_t>& members = members_[index];
    row.count = static_cast<std::int64_t>(members.size());
    for (const std::size_t number : members) row.kept += kept_.count(number) != 0;
    row.first_number = static_cast<std::int64_t>(members.front());
    row.last_number = static_cast<std::int64_t>(members.back());
    if (members.front() == finished_) {
      const std::int64_t took = full_.segments[finished_].end_ns - full_.segments[finished_].begin_ns;
      row.duration_ns = summary(index, [&](std::size_t) { return took; });
      return row;
    }
    row.duration_ns = summary(index, [&](std::size_t number) { return durations_[number]; });
    for (auto value :
         {&value_summary::first, &value_summary::last, &value_summary::least, &value_summary::greatest, &value_summary::sum}) {
      row.duration_ns.*value = static_cast<std::int64_t>(static_cast<double>(row.duration_ns.*value) * ns_per_stamp_);
    }
    return row;
  }

  /// Least squares in two passes, around the means.
  [[nodiscard]] linear_fit growth(const space_profile& space, std::size_t row) const {
    const std::vector<std::size_t>& members = members_[row];
    const auto count = static_cast<long double>(members.size());
    // Beside the first, so that a small variation of great numbers is not rounded away.
    const auto rise_of = [&](std::size_t number) {
      return static_cast<long double>(space.segments[number].cumulative_current -
                                      space.segments[members.front()].cumulative_current);
    };
    long double mean_step = 0, mean_bytes = 0;
    for (const std::size_t number : members) {
      mean_step += static_cast<long double>(steps_[number]) / count;
      mean_bytes += rise_of(number) / count;
    }
    long double steps = 0, bytes = 0, both = 0;
    for (const std::size_t number : members) {
      const long double step = static_cast<long double>(steps_[number]) - mean_step;
      const long double rise = rise_of(number) - mean_bytes;
      steps += step * step;
      bytes += rise * rise;
      both += step * rise;
    }
    const auto current = [&](std::size_t number) { return space.segments[number].cumulative_current; };
    const bool is_level = std::all_of(members.begin(), members.end(),
                                      [&](std::size_t number) { return current(number) == current(members.front()); });
    const bool is_one_step = std::all_of(members.begin(), members.end(),
                                         [&](std::size_t number) { return steps_[number] == steps_[members.front()]; });
    if (is_level) return {0, 1};
    if (is_one_step) return {0, 0};
    return {static_cast<double>(both / steps), static_cast<double>(both * both / steps / bytes)};
  }

  template <class Row>
  void leave_kept(memprof::vector<Row>& rows) const {
    if (rows.empty()) return;
    memprof::vector<Row> left;
    for (const std::size_t number : kept_) left.push_back(rows[number]);
    rows = left;
  }

  void to_index(std::int64_t& segment) const {
    if (segment < 0) return;
    const auto found = kept_.find(static_cast<std::size_t>(segment));
    segment = found == kept_.end() ? -1 : std::distance(kept_.begin(), found);
  }

  void fold(space_profile& space) const {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const auto of = [&](auto value) { return summary(row, [&](std::size_t number) { return space.segments[number].*value; }); };
      const auto live = [&](std::size_t number) { return space.segments[number].live_at_peak.bytes; };
      space.segments_by_name.push_back(
          {rows_[row].name, of(&segment_usage::segment_peak), summary(row, live), of(&segment_usage::allocations),
           of(&segment_usage::deallocations), of(&segment_usage::segment_change), of(&segment_usage::cumulative_current),
           of(&segment_usage::allocation_count), of(&segment_usage::deallocation_count), growth(space, row)});
      if (!space.reserved.segments.empty()) {
        const memprof::vector<reserved_usage>& held = space.reserved.segments;
        space.reserved.segments_by_name.push_back({rows_[row].name, summary(row, [&](std::size_t at) { return held[at].peak; }),
                                                   summary(row, [&](std::size_t at) { return held[at].current; })});
      }
      if (!space.active.segments.empty()) {
        const memprof::vector<active_usage>& used = space.active.segments;
        space.active.segments_by_name.push_back({rows_[row].name, summary(row, [&](std::size_t at) { return used[at].peak; }),
                                                 summary(row, [&](std::size_t at) { return used[at].current; })});
      }
      if (!space.cores.segments.empty()) {
        const memprof::vector<core_peaks>& peaks = space.cores.segments;
        space.cores.segments_by_name.push_back({rows_[row].name,
                                                summary(row, [&](std::size_t at) { return peaks[at].circular_buffers; }),
                                                summary(row, [&](std::size_t at) { return peaks[at].buffers; }),
                                                summary(row, [&](std::size_t at) { return peaks[at].total; })});
      }
    }
    leave_kept(space.segments);
    leave_kept(space.reserved.segments);
    leave_kept(space.active.segments);
    leave_kept(space.cores.segments);
    to_index(space.peak_segment);
    to_index(space.first_shortfall.segment);
    for (out_of_memory_failure& failed : space.out_of_memory) to_index(failed.segment);
  }

  profile full_;
  const ledger_options& options_;
  std::vector<std::int64_t> durations_;
  std::vector<std::vector<detail::int128>> joint_peaks_;
  double ns_per_stamp_;
  std::size_t finished_ = 0;
  memprof::vector<named_segments> rows_;
  std::vector<std::vector<std::size_t>> members_;  // by row
  std::vector<std::size_t> row_of_;
  std::vector<std::int64_t> steps_;
  std::set<std::size_t> kept_;
};

/// Takes over the lines of `found` that are as near to those of `expected` as floating-point numbers let them be.
inline void accept_rounding(profile& expected, const profile& found) {
  for (std::size_t at = 0; at < std::min(expected.spaces.size(), found.spaces.size()); ++at) {
    auto& rows = expected.spaces[at].segments_by_name;
    const auto& others = found.spaces[at].segments_by_name;
    for (std::size_t row = 0; row < std::min(rows.size(), others.size()); ++row) {
      linear_fit& line = rows[row].growth;
      const linear_fit& other = others[row].growth;
      const auto range =
          static_cast<double>(rows[row].cumulative_current.greatest) - static_cast<double>(rows[row].cumulative_current.least);
      if (std::abs(line.per_step - other.per_step) <= 1e-12 * range && std::abs(line.r_squared - other.r_squared) <= 1e-9) {
        line = other;
      }
    }
  }
}

}  // namespace memprof::property
