#pragma once

#include <memprof/toolkit/analysis/caching_allocator.hpp>

#include <cstdint>

/// @file
/// Why an allocator holds more of a device than the program's blocks: the three causes that "Study of HBM Fragmentation with
/// Memory Stashing" (meta-pytorch/torchrec, pull request 4584) distinguishes, in bytes.

namespace memprof::inline MEMPROF_ABI {

/// What was reserved at one moment, by what it was used for. `live` to `stream` add up to `reserved`.
///
/// What is free is divided as a request of one stream and pool sees it: that for which the device was asked for more.
struct fragmentation {
  std::int64_t reserved = 0;
  std::int64_t live = 0;      ///< requested, in blocks in use
  std::int64_t rounding = 0;  ///< what these blocks have beyond that
  std::int64_t pending = 0;   ///< in freed blocks that streams may still use
  std::int64_t hard = 0;  ///< free between two blocks of one segment: only moving a block would join it with other free memory
  /// Free segments, and free beginnings and ends of segments: it would be contiguous if they were one segment. Free segments can
  /// also be returned to the device.
  std::int64_t soft = 0;
  std::int64_t stream = 0;  ///< free in segments of other streams or pools, which cannot serve the request

  /// PyTorch's `allocated_bytes`.
  [[nodiscard]] std::int64_t allocated() const noexcept { return live + rounding; }
  /// Reserved and not allocated: `pending`, `hard`, `soft` and `stream`.
  [[nodiscard]] std::int64_t unused() const noexcept { return reserved - allocated(); }

  bool operator==(const fragmentation&) const = default;
};

/// Divides what the allocator has reserved, for a request of that stream and pool. Visits all blocks.
[[nodiscard]] fragmentation fragmentation_of(const caching_allocator& allocator, std::uint64_t stream = 0,
                                             caching_allocator::pool_id pool = 0);

namespace detail {

/// Adds the parts of segments to a `fragmentation`, in order of address.
class segment_division {
 public:
  /// A segment begins, or the next mapped stretch of one. `serves_request`: it is of the stream and the pool of the request.
  void begin(bool serves_request) noexcept {
    serves_request_ = serves_request;
    has_block_ = false;
    free_ = 0;
  }
  void add_free(std::int64_t bytes) noexcept { free_ += bytes; }
  /// A block of `bytes`, of which `requested` were asked for.
  void add_block(std::int64_t bytes, std::int64_t requested, bool is_pending) noexcept {
    add_gap(has_block_ ? sums_.hard : sums_.soft);
    has_block_ = true;
    sums_.reserved += bytes;
    (is_pending ? sums_.pending : sums_.live) += is_pending ? bytes : requested;
    if (!is_pending) sums_.rounding += bytes - requested;
  }
  void end() noexcept { add_gap(sums_.soft); }

  [[nodiscard]] const fragmentation& sums() const noexcept { return sums_; }

 private:
  void add_gap(std::int64_t& cause) noexcept {
    (serves_request_ ? cause : sums_.stream) += free_;
    sums_.reserved += free_;
    free_ = 0;
  }

  fragmentation sums_;
  std::int64_t free_ = 0;  ///< since the last block
  bool serves_request_ = true;
  bool has_block_ = false;
};

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
