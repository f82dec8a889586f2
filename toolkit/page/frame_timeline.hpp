#pragma once

#include <memprof/ledger/operation_stats.hpp>
#include <memprof/toolkit/page/block_follower.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// Live bytes of one space over a stretch of a trace, in a bounded number of buckets. Each keeps one real moment: the first with
/// its greatest total, and what each owner had then, to the byte. The last bucket is the last event alone, so that the end of the
/// stretch is such a moment too.
///
/// The cost of an event does not depend on the number of owners: a new maximum only increments an epoch, as in the ledger
/// (`owner_stats`), and owners are only visited when a bucket ends.
class frame_timeline {
 public:
  struct bucket {
    moment begin;
    moment at;  ///< `total` was live after this event
    std::int64_t total = 0;
    std::int64_t blocks = 0;
    std::int64_t low = 0;       ///< least total, including that before its first event
    std::int64_t reserved = 0;  ///< greatest
    std::int64_t active = 0;    ///< greatest
  };
  /// What an allocator reported.
  struct of_allocator {
    std::int64_t reserved = 0;
    std::int64_t active = 0;
  };
  /// The bytes of an owner from a bucket on.
  struct part {
    std::uint32_t bucket;
    std::uint32_t slot;
    std::int64_t bytes;
    std::int64_t blocks;
  };

  /// For a stretch with that many events of the space and that much time, in at most `max_buckets` (4 or more).
  frame_timeline(std::size_t slots, std::uint64_t events, std::uint64_t stamps, std::size_t max_buckets)
      : stats_(slots), kept_(slots), max_buckets_(max_buckets) {
    // Buckets that end by event count are at most half as many as allowed, and so are those that end by time.
    const std::uint64_t half = max_buckets / 2 - 1;
    is_exact_ = events + 1 <= max_buckets;
    events_per_bucket_ = is_exact_ ? 1 : (events + half) / half;
    stamps_per_bucket_ = stamps / half + 1;
  }

  /// Sets what an owner had before the stretch.
  void start_with(std::size_t slot, const owner_stats& before) { stats_[slot].change(0, before.live, before.blocks); }
  void start_with_total(std::int64_t live, const of_allocator& held) {
    last_total_ = live;
    last_held_ = held;
  }

  /// Records that an owner gained or lost a block. `end_event` follows.
  void change(std::size_t slot, std::int64_t bytes, std::int64_t blocks) { stats_[slot].change(epoch_, bytes, blocks); }

  /// Records the result of an event.
  void end_event(const moment& now, std::int64_t total, std::int64_t blocks, const of_allocator& held) {
    const bool is_new = buckets_.empty() || is_full(now);
    if (is_new) {
      close();
      buckets_.push_back({now, now, total, blocks, std::min(last_total_, total), last_held_.reserved, last_held_.active});
      events_in_bucket_ = 0;
    }
    bucket& open = buckets_.back();
    ++events_in_bucket_;
    before_last_ = {open.low, {open.reserved, open.active}, last_total_, last_held_};
    if (is_new || total > open.total) {
      open.at = now;
      open.total = total;
      open.blocks = blocks;
      ++epoch_;
    }
    open.low = std::min(open.low, total);
    open.reserved = std::max(open.reserved, held.reserved);
    open.active = std::max(open.active, held.active);
    last_ = now;
    last_total_ = total;
    last_blocks_ = blocks;
    last_held_ = held;
  }

  /// Moves a block that began with event `born` to another owner, retroactively.
  void relabel(std::uint64_t born, std::size_t from, std::size_t to, std::int64_t bytes) {
    const bool is_in_moment = !buckets_.empty() && born <= buckets_.back().at.event;
    const auto move = is_in_moment ? &owner_stats::correct : &owner_stats::change;
    (stats_[from].*move)(epoch_, -bytes, -1);
    (stats_[to].*move)(epoch_, bytes, 1);
    const std::size_t closed = buckets_.empty() ? 0 : buckets_.size() - 1;
    const auto first = std::lower_bound(buckets_.begin(), buckets_.begin() + static_cast<std::ptrdiff_t>(closed), born,
                                        [](const bucket& each, std::uint64_t event) { return each.at.event < event; });
    const auto index = static_cast<std::size_t>(first - buckets_.begin());
    if (index == closed) return;
    const auto add = [&](std::size_t slot, std::int64_t sign) {
      for (owned* const values : {&gains_[index * stats_.size() + slot], &kept_[slot]}) {
        values->bytes += sign * bytes;
        values->blocks += sign;
      }
    };
    add(from, -1);
    add(to, 1);
  }

  /// Call after the last event.
  void finish() {
    if (!buckets_.empty() && buckets_.back().at.event != last_.event) {
      buckets_.back().low = before_last_.low;
      buckets_.back().reserved = before_last_.greatest.reserved;
      buckets_.back().active = before_last_.greatest.active;
      close();
      ++epoch_;
      buckets_.push_back({last_, last_, last_total_, last_blocks_, std::min(before_last_.total, last_total_),
                          std::max(before_last_.held.reserved, last_held_.reserved),
                          std::max(before_last_.held.active, last_held_.active)});
    }
    close();
  }

  [[nodiscard]] const owner_stats& stats(std::size_t slot) const noexcept { return stats_[slot]; }
  [[nodiscard]] const std::vector<bucket>& buckets() const noexcept { return buckets_; }
  /// What owners had by bucket, only where it differs from the bucket before. Call it after `finish`.
  [[nodiscard]] std::vector<part> parts() const {
    std::vector<part> rows;
    std::vector<owned> now(stats_.size());
    for (std::size_t index = 0; index < gains_.size(); ++index) {
      const owned& gain = gains_[index];
      if (gain.bytes == 0 && gain.blocks == 0) continue;
      const std::size_t slot = index % stats_.size();
      now[slot].bytes += gain.bytes;
      now[slot].blocks += gain.blocks;
      rows.push_back({static_cast<std::uint32_t>(index / stats_.size()), static_cast<std::uint32_t>(slot), now[slot].bytes,
                      now[slot].blocks});
    }
    return rows;
  }

 private:
  /// What the open bucket had, and what was live and held, before the last event.
  struct before_last {
    std::int64_t low = 0;
    of_allocator greatest;
    std::int64_t total = 0;
    of_allocator held;
  };
  struct owned {
    std::int64_t bytes = 0;
    std::int64_t blocks = 0;
  };

  [[nodiscard]] bool is_full(const moment& now) const noexcept {
    if (is_exact_) return true;
    if (buckets_.size() + 1 >= max_buckets_) return false;  // one is for the end
    return events_in_bucket_ >= events_per_bucket_ || now.stamp - buckets_.back().begin.stamp >= stamps_per_bucket_;
  }

  /// Keeps what owners had at the open bucket's moment.
  void close() {
    if (buckets_.empty()) return;
    for (std::size_t slot = 0; slot < stats_.size(); ++slot) {
      const owned at_moment{stats_[slot].live_at_peak(epoch_), stats_[slot].blocks_at_peak(epoch_)};
      gains_.push_back({at_moment.bytes - kept_[slot].bytes, at_moment.blocks - kept_[slot].blocks});
      kept_[slot] = at_moment;
    }
  }

  std::vector<owner_stats> stats_;  ///< by slot
  std::vector<owned> kept_;         ///< by slot: at the moment of the last closed bucket
  std::vector<owned> gains_;  ///< by closed bucket, then slot: the difference between its moment and that of the bucket before
  std::vector<bucket> buckets_;
  std::size_t max_buckets_;
  bool is_exact_ = false;  ///< every event has its own bucket
  std::uint64_t events_per_bucket_ = 1;
  std::uint64_t stamps_per_bucket_ = 1;
  std::uint64_t events_in_bucket_ = 0;
  std::uint64_t epoch_ = 1;
  moment last_;
  std::int64_t last_total_ = 0;
  std::int64_t last_blocks_ = 0;
  of_allocator last_held_;
  before_last before_last_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
