#pragma once

#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>

#include <array>
#include <cstdint>
#include <functional>

namespace memprof::inline MEMPROF_ABI {

/// What happened to device memory.
enum class segment_action : std::uint8_t { reserve, release };

/// Called with address and bytes for each segment, or run of an expandable segment's pages, that is taken from the device or
/// returned. A release may cover several reservations or part of one. It must neither call the allocator nor throw.
using segment_observer = std::function<void(segment_action action, std::uint64_t address, std::int64_t bytes)>;

namespace detail {

/// The memory that an allocator has taken from the device, and its division into blocks. Keeps the statistics up to date; what to
/// take, split or free is decided elsewhere.
class device_blocks {
 public:
  device_blocks(const caching_allocator_options& options, segment_observer observer);

  [[nodiscard]] const caching_allocator_options& options() const noexcept { return options_; }
  [[nodiscard]] const caching_allocator_stats& stats() const noexcept { return stats_; }
  [[nodiscard]] caching_allocator_stats& stats() noexcept { return stats_; }
  /// Of the pools of small or of large blocks alone. Failures and retries are not divided.
  [[nodiscard]] const caching_allocator_stats& stats_of_pools(bool are_small) const noexcept { return pool_stats_[are_small]; }

  /// Calls `change(stats)` for all blocks and for those of the pool's size class.
  template <class Change>
  void count(const block_pool& pool, Change change) {
    change(stats_);
    change(pool_stats_[pool.is_small()]);
  }
  void reset_peak_stats() noexcept;
  void reset_accumulated_stats() noexcept;
  [[nodiscard]] const block_store& blocks() const noexcept { return blocks_; }

  void set_memory_fraction(double fraction) noexcept;
  /// Whether the process may reserve that many more bytes.
  [[nodiscard]] bool allows(std::int64_t bytes) const noexcept { return bytes <= allowed_ - stats_.reserved_bytes.current; }

  /// Allocates a new segment as one block that is in no pool: cudaMalloc. Null if the device has too little left.
  [[nodiscard]] cached_block* allocate_segment(block_pool& pool, std::uint64_t stream, std::int64_t bytes);

  /// Returns a free segment that is one block: cudaFree.
  void free_segment(cached_block& block);

  /// Reserves a block of addresses without memory, in no pool: cuMemAddressReserve. Null if none are left. Addresses ascend, or
  /// descend as long as there are any below.
  [[nodiscard]] cached_block* take_addresses(block_pool& pool, std::uint64_t stream, std::int64_t bytes, bool descend = false);
  /// Returns the addresses of an unmapped block that is in no pool.
  void give_back_addresses(cached_block& block) noexcept { blocks_.give_back(block); }

  /// Whether the device has that many bytes left.
  [[nodiscard]] bool has_room_for(std::int64_t bytes) const noexcept;
  /// Records that addresses are now backed by device memory.
  void count_reserved(const block_pool& pool, std::uint64_t address, std::int64_t bytes);
  void count_released(const block_pool& pool, std::uint64_t address, std::int64_t bytes);

  void add_free(cached_block& block);
  void remove_free(cached_block& block);

  /// Cuts a block that is in no pool after its first `bytes`. The rest has the same properties and is in no pool either.
  [[nodiscard]] cached_block& split(cached_block& block, std::int64_t bytes);

  /// Merges a block that is in no pool with its neighbours if they are free and mapped, or unmapped, as it is.
  void merge_with_neighbours(cached_block& block);

 private:
  [[nodiscard]] static bool is_mergeable(const cached_block& block, const cached_block* neighbour) noexcept;

  /// PyTorch excludes expandable segments, since their free pages can be returned.
  [[nodiscard]] static bool counts_as_inactive_split(const cached_block& block) noexcept;

  caching_allocator_options options_;
  std::int64_t allowed_;
  segment_observer observer_;
  caching_allocator_stats stats_;
  std::array<caching_allocator_stats, 2> pool_stats_;  ///< of large blocks, of small ones
  block_store blocks_;
  static constexpr std::uint64_t first_address = std::uint64_t{1} << 45;
  // Never reused.
  std::uint64_t next_address_ = first_address;
  std::uint64_t last_address_ = first_address;
};

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
