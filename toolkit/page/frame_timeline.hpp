#pragma once

#include <memprof/ledger/operation_stats.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>

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
  frame_timeline(std::size_t slots, std::uint64_t events, std::uint64_t stamps, std::size_t max_buckets);

  /// Sets what an owner had before the stretch.
  void start_with(std::size_t slot, const owner_stats& before) { stats_[slot].change(0, before.live, before.blocks); }
  void start_with_total(std::int64_t live, const of_allocator& held) {
    last_total_ = live;
    last_held_ = held;
  }

  /// Records that an owner gained or lost a block. `end_event` follows.
  void change(std::size_t slot, std::int64_t bytes, std::int64_t blocks) { stats_[slot].change(epoch_, bytes, blocks); }

  /// Records the result of an event.
  void end_event(const moment& now, std::int64_t total, std::int64_t blocks, const of_allocator& held);

  /// Moves a block that began with event `born` to another owner, retroactively.
  void relabel(std::uint64_t born, std::size_t from, std::size_t to, std::int64_t bytes);

  /// Call after the last event.
  void finish();

  [[nodiscard]] const owner_stats& stats(std::size_t slot) const noexcept { return stats_[slot]; }
  [[nodiscard]] const std::vector<bucket>& buckets() const noexcept { return buckets_; }
  /// What owners had by bucket, only where it differs from the bucket before. Call it after `finish`.
  [[nodiscard]] std::vector<part> parts() const;

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

  [[nodiscard]] bool is_full(const moment& now) const noexcept;

  /// Keeps what owners had at the open bucket's moment.
  void close();

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
