#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_blocks.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_facts.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_records.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_walk.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The most fragmented states of one kind of memory over time, at most 512: stretches grow as states are added.
class fragmentation_line {
 public:
  static constexpr std::size_t max_points = 512;

  void add(tt_fragmentation_fact&& point) {
    if (in_last_ == 0) {
      if (points_.size() == max_points) halve();
      points_.push_back(std::move(point));
    } else if (point.fragmentation > points_.back().fragmentation) {
      points_.back() = std::move(point);
    }
    in_last_ = (in_last_ + 1) % stretch_;
  }

  [[nodiscard]] const std::vector<tt_fragmentation_fact>& points() const noexcept { return points_; }

 private:
  void halve() {
    for (std::size_t index = 0; index < points_.size() / 2; ++index) {
      tt_fragmentation_fact& left = points_[2 * index];
      tt_fragmentation_fact& right = points_[2 * index + 1];
      points_[index] = std::move(right.fragmentation > left.fragmentation ? right : left);
    }
    points_.resize(points_.size() / 2);
    stretch_ *= 2;
  }

  std::vector<tt_fragmentation_fact> points_;
  std::size_t stretch_ = 1;  ///< states per point
  std::size_t in_last_ = 0;  ///< states in the last point so far; 0: it is full
};

/// The result of the first pass over a log: peaks, fragmentation, failures, and the parts in which blocks are freed.
class tt_log_survey {
 public:
  void on_rank(const tt_rank&) {}
  void enter(std::string_view) {}
  void leave() {}
  void end_segment(std::string_view) {}
  void next_state() { ++states_; }

  void state(const tt_rank& rank, std::size_t memory, const tt_memory_view& view, std::string_view before, std::uint64_t line) {
    memory_survey& self = memories_[{rank.index, memory}];
    const std::int64_t allocated = bytes_of_mebibytes(view.allocated);
    const std::int64_t free = bytes_of_mebibytes(view.free);
    const std::int64_t largest = bytes_of_mebibytes(view.largest_free);
    const double share = fragmentation(view.largest_free, view.free);
    tt_memory_fact& fact = self.fact;
    rounding = std::max(rounding, bytes_of_mebibytes(static_cast<double>(view.banks) * view.step));
    if (fact.states++ == 0) {
      fact.space = tt_space_name(rank, memory);
      fact.banks = view.banks;
      fact.bank_bytes = bytes_of_mebibytes(view.total);
    }
    if (fact.states == 1 || allocated > fact.peak_bytes) {
      fact.peak_bytes = allocated;
      fact.peak_free_bytes = free;
      fact.peak_largest_free_bytes = largest;
      fact.peak_fragmentation = share;
      fact.peak_before = before;
      fact.peak_line = static_cast<std::int64_t>(line);
    }
    if (fact.states == 1 || share > fact.greatest_fragmentation) {
      fact.greatest_fragmentation = share;
      fact.greatest_before = before;
      fact.greatest_line = static_cast<std::int64_t>(line);
    }
    self.line.add({fact.space, states_ * 1000, static_cast<std::int64_t>(line), allocated, free, largest, share});
  }

  void allocate(const tt_rank&, std::size_t, const tt_blocks::block&, const tt_executed_operation*) {}
  void deallocate(const tt_rank&, std::size_t, const tt_blocks::block& from, std::int64_t part) {
    if (part < from.bytes) splits.add({from.number, part});
  }

  void out_of_memory(const tt_rank& rank, const tt_out_of_memory& failure, std::uint64_t line) {
    constexpr std::size_t max_failures = 32;
    if (failures.size() == max_failures) return;
    const double share = fragmentation(static_cast<double>(failure.largest_free), static_cast<double>(failure.free));
    failures.push_back({tt_space_name(rank, failure.memory), static_cast<std::int64_t>(line), failure.requested, failure.banks,
                        failure.per_bank, failure.bank_size, failure.allocated, failure.free, failure.largest_free, share});
  }

  void unseen(const tt_rank& rank, const tt_executed_operation& last) {
    std::string source = last.name();
    if (!rank.number.empty()) source += " of rank " + rank.number;
    missing.push_back({source, "line " + std::to_string(last.line) + " has the log's last state, from before the operation"});
  }

  /// One row for each space, in the order of ranks.
  [[nodiscard]] std::vector<tt_memory_fact> memories() const {
    std::vector<tt_memory_fact> rows;
    for (const auto& [key, self] : memories_) rows.push_back(self.fact);
    return rows;
  }
  [[nodiscard]] std::vector<tt_fragmentation_fact> fragmentation_over_time() const {
    std::vector<tt_fragmentation_fact> rows;
    for (const auto& [key, self] : memories_) rows.insert(rows.end(), self.line.points().begin(), self.line.points().end());
    return rows;
  }

  std::vector<tt_out_of_memory_fact> failures;
  std::vector<missing_source> missing;
  tt_splits splits;
  std::int64_t rounding = 1;  ///< the coarsest precision of any memory, in bytes

 private:
  struct memory_survey {
    tt_memory_fact fact;
    fragmentation_line line;
  };

  std::int64_t states_ = 0;
  std::map<std::pair<std::size_t, std::size_t>, memory_survey> memories_;  ///< by rank and kind of memory
};

}  // namespace memprof::inline MEMPROF_ABI::detail
