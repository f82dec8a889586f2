#pragma once

#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>
#include <memprof/toolkit/analysis/device_blocks.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// A model of PyTorch's CUDA caching allocator for one device: what it would reserve for a sequence of requests, and which of
/// them would fail. It uses no device memory; its addresses refer to nothing.
///
/// Follows c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.6 to 2.15; docs/caching_allocator.md has the rules and what is left
/// out. Not synchronised. It allocates from the heap, so a backend must call it where its own hooks do not see that. A request or
/// a free takes logarithmic time in the number of cached blocks of its pool; a retry visits all of them.
class caching_allocator {
 public:
  /// A private pool for the memory of a CUDA graph or a `torch.cuda.MemPool`; 0 is the shared pool.
  using pool_id = std::size_t;

  /// Raises an error if the options are invalid.
  explicit caching_allocator(const caching_allocator_options& options = {}, segment_observer observer = {});
  caching_allocator(const caching_allocator&) = delete;
  caching_allocator& operator=(const caching_allocator&) = delete;

  /// Allocates a block for `bytes`, used at first only on `stream`; null, with nothing allocated, if the device is full. `pool`
  /// is 0 or a result of `make_pool`. PyTorch itself never requests 0 bytes; here they take the smallest block. More than 2^60
  /// bytes count as 2^60.
  [[nodiscard]] const cached_block* allocate(std::uint64_t bytes, std::uint64_t stream = 0, pool_id pool = 0);

  /// Frees a block that `allocate` returned, once.
  void deallocate(const cached_block* allocated);

  /// Deallocates a block that was only asked for to see whether there is room: the sums are as if it had not been.
  void withdraw(const cached_block* allocated);

  /// Marks the block as used on another stream too. When deallocated, it stays active until `synchronize`: a model does not know
  /// when that work ends, so what it reserves is an upper bound.
  void record_stream(const cached_block* allocated, std::uint64_t stream) noexcept;

  /// Marks all work on all streams as finished. The allocator also does this itself before it returns cached blocks to the
  /// device.
  void synchronize();

  /// Marks the work of other streams on one freed block as finished. Does nothing if it does not await any.
  void complete(const cached_block* freed);

  /// Returns all segments without an active block to the device: `torch.cuda.empty_cache()`.
  void empty_cache();

  /// Makes a new pool. Its cached blocks serve no other pool and are not returned to the device before `release_pool`. If a
  /// request in it finds the device full, other pools keep their blocks, as during the capture of a graph. Of a pool that is kept
  /// `whole`, each block is a segment.
  [[nodiscard]] pool_id make_pool(bool whole = false);
  /// Marks the pool's graph as destroyed: its cached blocks may be returned from now on.
  void release_pool(pool_id pool) noexcept { pools_[pool].is_released = pool != 0; }
  /// Returns the pool's segments without an active block, whether or not it is released.
  void empty_pool(pool_id pool);
  /// While requests anywhere go to a private pool, a full device gets nothing back from the shared one.
  void keep_shared_pool(bool keeps) noexcept { keeps_shared_pool_ = keeps; }
  /// Changes `per_process_memory_fraction`, from 0 to 1, for requests from now on: torch.cuda.set_per_process_memory_fraction.
  void set_memory_fraction(double fraction) noexcept { device_.set_memory_fraction(fraction); }

  [[nodiscard]] const caching_allocator_stats& stats() const noexcept { return device_.stats(); }
  /// Of small blocks (at most 1 MiB) or of large ones alone. Failures and retries are not divided.
  [[nodiscard]] const caching_allocator_stats& stats_of_pools(bool are_small) const noexcept {
    return device_.stats_of_pools(are_small);
  }
  void reset_peak_stats() noexcept { device_.reset_peak_stats(); }
  void reset_accumulated_stats() noexcept { device_.reset_accumulated_stats(); }
  [[nodiscard]] const caching_allocator_options& options() const noexcept { return device_.options(); }

  /// Whether a request on that stream and in that pool may use the block's segment.
  [[nodiscard]] bool serves(const cached_block& block, std::uint64_t stream, pool_id pool) const noexcept {
    return block.stream == stream && (block.pool == &pools_[pool].small || block.pool == &pools_[pool].large);
  }

  /// Calls `visit(const cached_block&)` for each block, allocated, cached or unmapped, in no particular order.
  template <class Visitor>
  void for_each_block(Visitor&& visit) const {
    device_.blocks().for_each(visit);
  }

 private:
  struct pool_pair {
    explicit pool_pair(pool_id id, bool whole = false) : small(true, id, whole), large(false, id, whole) {}

    block_pool small;
    block_pool large;
    bool is_released = false;
  };

  [[nodiscard]] static const caching_allocator_options& checked(const caching_allocator_options& options);

  /// Removes the best fit from the pool; null if there is none.
  [[nodiscard]] cached_block* take_free(block_pool& pool, std::uint64_t stream, std::int64_t size);

  /// A block at the end of the mapped pages counts together with the addresses after it: a larger one that cannot grow as far
  /// fits better.
  [[nodiscard]] static free_block_map::const_iterator least_expandable(const block_pool& pool,
                                                                       free_block_map::const_iterator place) noexcept;

  /// Allocates new device memory for a block; if the device is full, cached blocks are returned first.
  [[nodiscard]] cached_block* take_new(block_pool& pool, std::uint64_t stream, std::int64_t size, pool_id id);
  [[nodiscard]] cached_block* reserve(block_pool& pool, std::uint64_t stream, std::int64_t size);

  /// Whether the rest of a block beyond a request becomes a block of its own.
  [[nodiscard]] bool leaves_rest(const cached_block& block, std::int64_t size) const noexcept;
  void activate(cached_block& block, std::int64_t requested) noexcept;
  void make_free(cached_block& block);

  /// Returns the oldest whole segments of the pool until less than the threshold is reserved; those of at least average age go
  /// together, even beyond it.
  void collect_garbage(block_pool& pool);

  /// Returns cached blocks that are too large to be split: one that is large enough, or else the largest ones until together they
  /// are. Returns whether that sufficed.
  [[nodiscard]] bool release_oversize(block_pool& pool, std::uint64_t stream, std::int64_t size);
  void release_free(block_pool& pool);

  detail::device_blocks device_;
  std::deque<pool_pair> pools_;
  bool keeps_shared_pool_ = false;
  std::vector<cached_block*> awaiting_;  // deallocated, but possibly in use on other streams
};

}  // namespace memprof::inline MEMPROF_ABI
