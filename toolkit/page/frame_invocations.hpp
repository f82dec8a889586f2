#pragma once

#include <memprof/toolkit/page/block_visitor.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// Invocations of operations over a stretch of a trace, in a bounded number of rows: the longest have their own row, and the
/// others share one with their neighbours on the same thread and depth.
class frame_invocations {
 public:
  struct row {
    std::uint32_t thread;
    std::uint32_t depth;
    std::uint32_t operation;  ///< node of the ledger's tree; 0: several different ones
    moment begin;
    moment end;
    std::uint64_t count;
    std::size_t deltas;  ///< index of its first delta
  };

  /// `spaces`: the number of deltas per row.
  frame_invocations(std::size_t max_rows, std::size_t spaces) : max_rows_(max_rows), spaces_(spaces) {}

  /// Adds an invocation that has ended, with a `count` of 1; `delta(space)` is its change.
  template <class Delta>
  void add(row ended, Delta&& delta) {
    ended.count = 1;
    ended.deltas = deltas_.size();
    for (std::size_t space = 0; space < spaces_; ++space) deltas_.push_back(delta(space));
    rows_.push_back(ended);
    ++count_;
    if (rows_.size() >= 4 * max_rows_ + shared_) share_rows();
  }

  /// Call after the last one.
  void finish();

  [[nodiscard]] const std::vector<row>& rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t delta(const row& of, std::size_t space) const noexcept { return deltas_[of.deltas + space]; }
  /// All invocations, including those that share a row.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  /// Longer ones first, among equals those with more events, then the earlier.
  struct is_longer {
    bool operator()(const row& left, const row& right) const noexcept {
      const std::uint64_t of_left = left.end.stamp - left.begin.stamp;
      const std::uint64_t of_right = right.end.stamp - right.begin.stamp;
      if (of_left != of_right) return of_left > of_right;
      const std::uint64_t events_of_left = left.end.event - left.begin.event;
      const std::uint64_t events_of_right = right.end.event - right.begin.event;
      if (events_of_left != events_of_right) return events_of_left > events_of_right;
      return std::tie(left.begin.event, left.thread, left.depth) < std::tie(right.begin.event, right.thread, right.depth);
    }
  };

  /// Makes all but the `max_rows_` longest share rows. The result is the same as when done once at the end: what is not among the
  /// longest now never will be.
  void share_rows();

  std::size_t max_rows_;
  std::size_t spaces_;
  std::size_t shared_ = 0;  ///< rows that stand for several invocations
  std::uint64_t count_ = 0;
  std::vector<row> rows_;
  std::vector<std::int64_t> deltas_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
