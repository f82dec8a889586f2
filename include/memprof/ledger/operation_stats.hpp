#pragma once

#include <memprof/config.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// An owner's live bytes and blocks, and their values at the space's last peak.
///
/// A new peak only increments the space's `epoch`. An owner that changes afterwards first saves its present values as those at
/// the peak; one that has not changed since still has them. So a peak costs nothing per owner.
struct owner_stats {
  // Bytes and blocks are not adjacent: compilers would move them as one vector, which is slower than two additions.
  std::int64_t live;
  std::int64_t live_before_change;
  std::uint64_t changed_epoch;
  std::int64_t blocks;
  std::int64_t blocks_before_change;

  void change(std::uint64_t epoch, std::int64_t bytes, std::int64_t count) noexcept {
    if (changed_epoch != epoch) {
      live_before_change = live;
      blocks_before_change = blocks;
      changed_epoch = epoch;
    }
    live += bytes;
    blocks += count;
  }
  /// Corrects a value that was wrong all along: the values at the peak change as well.
  void correct(std::uint64_t epoch, std::int64_t bytes, std::int64_t count) noexcept {
    change(epoch, bytes, count);
    live_before_change += bytes;
    blocks_before_change += count;
  }
  [[nodiscard]] std::int64_t bytes_at_peak(std::uint64_t epoch) const noexcept {
    return changed_epoch == epoch ? live_before_change : live;
  }
  [[nodiscard]] std::int64_t blocks_at_peak(std::uint64_t epoch) const noexcept {
    return changed_epoch == epoch ? blocks_before_change : blocks;
  }
};

/// One finished invocation of an operation in one memory space.
struct invocation_record {
  std::uint64_t begin_stamp;
  std::uint64_t end_stamp;
  std::int64_t delta;  ///< inclusive, like the peak
  std::int64_t peak;
  std::uint32_t thread;
};

/// One operation in one memory space. Self values; the tree sums them to inclusive ones.
struct operation_stats {
  owner_stats owned;
  std::int64_t allocated;
  std::int64_t freed;
  std::int64_t allocation_count;
  std::int64_t deallocation_count;
  std::int64_t max_delta;  ///< inclusive; meaningful if `finished` is not 0
  std::int64_t finished;   ///< invocations that ended after an operation of their thread had first used this space
  std::int64_t peak;       ///< inclusive
  std::int64_t self_peak;
  std::int64_t inferred;  ///< the part of `allocated` by threads for which this operation was only inferred
  std::int64_t changing;  ///< finished invocations with a nonzero delta or peak; the next three are meaningful if not 0
  invocation_record first;
  invocation_record last;
  invocation_record largest;  ///< the first with the greatest peak

  void finish(const invocation_record& run, std::int64_t self_max) noexcept {
    if (finished++ == 0 || run.delta > max_delta) max_delta = run.delta;
    note_peak(run.peak, self_max);
    if ((run.delta | run.peak) == 0) return;
    if (changing++ == 0) first = largest = run;
    last = run;
    if (run.peak > largest.peak) largest = run;
  }
  void note_peak(std::int64_t inclusive, std::int64_t self) noexcept {
    if (inclusive > peak) peak = inclusive;
    if (self > self_peak) self_peak = self;
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
