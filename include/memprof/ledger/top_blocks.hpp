#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/ledger/live_blocks.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_spaces;

/// Whether `left` comes before `right` among the largest blocks: more bytes, or allocated earlier.
[[nodiscard]] inline bool is_larger(const block& left, const block& right) noexcept {
  return left.bytes != right.bytes ? left.bytes > right.bytes : left.born_thread < right.born_thread;
}

/// The `limit` largest of the blocks offered to it, in storage owned by the caller: a heap with the smallest on top.
struct top_blocks_view {
  block* blocks;
  std::uint32_t& count;
  std::uint32_t limit;

  void offer(const block& candidate) const noexcept {
    if (count < limit) {
      blocks[count] = candidate;
      push_into_heap(blocks, count++, is_larger);
    } else if (limit != 0 && is_larger(candidate, blocks[0])) {
      blocks[0] = candidate;
      sift_into_heap(blocks, count, 0, is_larger);
    }
  }
};

/// The largest blocks that were live at the peak of each segment in a growing sequence.
///
/// A freed block was live at the peaks of a run of finished segments. It is offered to the aligned groups of 1, 2, 4, ...
/// segments that make up the run (at most 2 log2 n), and a segment's largest blocks are among those of the aligned groups that
/// contain it. So a free never walks segments, a snapshot never walks blocks, and memory is 2 * limit blocks per segment.
class top_blocks_of_segments {
 public:
  explicit top_blocks_of_segments(std::uint32_t limit) noexcept : limit_(limit) {}

  /// Offers a block to the segments [first, last). False if the system has no memory.
  bool offer(std::size_t first, std::size_t last, const block& candidate) noexcept {
    for (std::size_t level = 0; first < last; ++level) {
      if ((first & 1) != 0 && !offer_to(level, first++, candidate)) return false;
      if ((last & 1) != 0 && first < last && !offer_to(level, --last, candidate)) return false;
      first >>= 1;
      last >>= 1;
    }
    return true;
  }

  /// Offers the known blocks of one segment to `best`.
  void collect(std::size_t segment, top_blocks_view best) const noexcept {
    for (std::size_t level = 0; level < max_levels; ++level, segment >>= 1) {
      if (segment >= counts_[level].size()) continue;
      const block* const known = blocks_[level].data() + segment * limit_;
      for (std::uint32_t index = 0; index < counts_[level][segment]; ++index) best.offer(known[index]);
    }
  }

  /// Keeps only those of the first `count` segments for which `is_kept(segment)`; `scratch` has room for `limit` blocks.
  template <class IsKept>
  void compact(std::size_t count, IsKept&& is_kept, block* scratch) noexcept {
    // A segment's blocks move to its own entry, at or before its old position, where nothing still needed is stored.
    std::size_t kept = 0;
    for (std::size_t segment = 0; segment < count; ++segment) {
      if (!is_kept(segment)) continue;
      std::uint32_t found = 0;
      collect(segment, {scratch, found, limit_});
      set(kept++, scratch, found);
    }
    counts_[0].truncate(kept);
    blocks_[0].truncate(kept * limit_);
    for (std::size_t level = 1; level < max_levels; ++level) {
      counts_[level].clear();
      blocks_[level].clear();
    }
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t total = 0;
    for (std::size_t level = 0; level < max_levels; ++level) total += counts_[level].bytes() + blocks_[level].bytes();
    return total;
  }

 private:
  friend struct saved_spaces;

  static constexpr std::size_t max_levels = 32;

  /// Sets the blocks of a single segment. Without memory for them, it has none.
  void set(std::size_t segment, const block* best, std::uint32_t count) noexcept {
    if (segment >= counts_[0].size() &&
        (count == 0 || !blocks_[0].resize((segment + 1) * limit_) || !counts_[0].resize(segment + 1))) {
      return;
    }
    counts_[0][segment] = count;
    for (std::uint32_t index = 0; index < count; ++index) blocks_[0][segment * limit_ + index] = best[index];
  }

  bool offer_to(std::size_t level, std::size_t index, const block& candidate) noexcept {
    auto& counts = counts_[level];
    auto& blocks = blocks_[level];
    if (index >= counts.size()) {
      if (!blocks.resize((index + 1) * limit_) || !counts.resize(index + 1)) return false;
    }
    top_blocks_view{blocks.data() + index * limit_, counts[index], limit_}.offer(candidate);
    return true;
  }

  std::uint32_t limit_;
  page_array<std::uint32_t> counts_[max_levels];
  page_array<block> blocks_[max_levels];
};

}  // namespace memprof::inline MEMPROF_ABI::detail
