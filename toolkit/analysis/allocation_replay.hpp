#pragma once

#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

/// @file
/// The steps of a capture in the model of the caching allocator, each on its stream and in its pool.

namespace memprof::inline MEMPROF_ABI::detail {

/// Replays a sequence step by step. Takes 16 bytes of heap per block number besides the model.
class allocation_replay {
 public:
  /// Both must outlive it. Raises an error if the options are invalid.
  allocation_replay(const allocation_sequence& sequence, const caching_allocator_options& options);

  /// Replays on until a step fails or `end` steps are done. Returns the index of the one that failed, or `end`.
  std::size_t run_to(std::size_t end);
  /// All steps. Returns the index of the one that failed, or their number.
  std::size_t run() { return run_to(sequence_.steps().size()); }

  /// A request on the stream and in the pool of a step's allocation.
  [[nodiscard]] const cached_block* request(std::uint64_t bytes, std::uint16_t stream);

  [[nodiscard]] caching_allocator& allocator() noexcept { return allocator_; }
  /// The step for which the peak of what is reserved was last raised.
  [[nodiscard]] std::size_t peak_step() const noexcept { return peak_step_; }
  /// The number that the model knows one of `allocation_sequence::streams` by, and its pool.
  [[nodiscard]] std::uint64_t stream_number(std::uint16_t stream) const noexcept { return places_[stream].stream; }
  [[nodiscard]] caching_allocator::pool_id pool(std::uint16_t stream) const noexcept { return places_[stream].pool; }
  [[nodiscard]] bool has_private_pools() const noexcept {
    return std::any_of(places_.begin(), places_.end(), [](const place& each) { return each.pool != 0; });
  }

 private:
  struct place {
    std::uint64_t stream = 0;
    caching_allocator::pool_id pool = 0;
  };

  void free(const allocation_step& step);
  void empty_cache(caching_allocator::pool_id pool);
  /// Cached blocks were given back, so the allocator has waited for all streams.
  void forget_awaited();

  const allocation_sequence& sequence_;
  caching_allocator allocator_;
  std::vector<place> places_;  ///< by index into `allocation_sequence::streams`
  std::vector<const cached_block*> blocks_;
  std::vector<std::uint32_t> awaited_;  ///< numbers of freed blocks that streams may still use
  std::int64_t retries_ = 0;
  std::int64_t peak_ = 0;
  std::size_t peak_step_ = 0;
  std::size_t done_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
