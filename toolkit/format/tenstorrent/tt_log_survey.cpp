#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_blocks.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_facts.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_records.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_survey.hpp>
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

void fragmentation_line::add(tt_fragmentation_fact&& point) {
  if (in_last_ == 0) {
    if (points_.size() == max_points) halve();
    points_.push_back(std::move(point));
  } else if (point.fragmentation > points_.back().fragmentation) {
    points_.back() = std::move(point);
  }
  in_last_ = (in_last_ + 1) % stretch_;
}

void fragmentation_line::halve() {
  for (std::size_t index = 0; index < points_.size() / 2; ++index) {
    tt_fragmentation_fact& left = points_[2 * index];
    tt_fragmentation_fact& right = points_[2 * index + 1];
    points_[index] = std::move(right.fragmentation > left.fragmentation ? right : left);
  }
  points_.resize(points_.size() / 2);
  stretch_ *= 2;
}

void tt_log_survey::state(const tt_rank& rank, std::size_t memory, const tt_memory_view& view, std::string_view before,
                          std::uint64_t line) {
  memory_survey& self = memories_[{rank.index, memory}];
  const std::int64_t allocated = bytes_of_mebibytes(view.allocated);
  const std::int64_t free = bytes_of_mebibytes(view.free);
  const std::int64_t largest = bytes_of_mebibytes(view.largest_free);
  const double share = tt_fragmentation(view.largest_free, view.free);
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

void tt_log_survey::deallocate(const tt_rank&, std::size_t, const tt_blocks::block& from, std::int64_t part) {
  if (part < from.bytes) splits.add({from.number, part});
}

void tt_log_survey::out_of_memory(const tt_rank& rank, const tt_out_of_memory& failure, std::uint64_t line) {
  constexpr std::size_t max_failures = 32;
  if (failures.size() == max_failures) return;
  const double share = tt_fragmentation(static_cast<double>(failure.largest_free), static_cast<double>(failure.free));
  failures.push_back({tt_space_name(rank, failure.memory), static_cast<std::int64_t>(line), failure.requested, failure.banks,
                      failure.per_bank, failure.bank_size, failure.allocated, failure.free, failure.largest_free, share});
}

void tt_log_survey::unseen(const tt_rank& rank, const tt_executed_operation& last) {
  std::string source = last.name();
  if (!rank.number.empty()) source += " of rank " + rank.number;
  missing.push_back({source, "line " + std::to_string(last.line) + " has the log's last state, from before the operation"});
}

std::vector<tt_memory_fact> tt_log_survey::memories() const {
  std::vector<tt_memory_fact> rows;
  for (const auto& [key, self] : memories_) rows.push_back(self.fact);
  return rows;
}

std::vector<tt_fragmentation_fact> tt_log_survey::fragmentation_over_time() const {
  std::vector<tt_fragmentation_fact> rows;
  for (const auto& [key, self] : memories_) rows.insert(rows.end(), self.line.points().begin(), self.line.points().end());
  return rows;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
