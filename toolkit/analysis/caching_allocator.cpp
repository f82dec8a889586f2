#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>
#include <memprof/toolkit/analysis/device_blocks.hpp>
#include <memprof/toolkit/analysis/expandable_segments.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// Raises an error for options that the model cannot use.
void check_options(const caching_allocator_options& options) {
  const auto demand = [](bool holds, const char* rule) {
    if (!holds) raise(std::string{"caching_allocator_options: "} + rule);
  };
  demand(options.capacity >= 0, "capacity must be in bytes, or 0 for no limit");
  demand(options.context >= 0 && (options.capacity == 0 || options.context <= options.capacity),
         "context must not be negative, nor more than the capacity");
  demand(options.per_process_memory_fraction > 0 && options.per_process_memory_fraction <= 1,
         "per_process_memory_fraction must be above 0 and at most 1");
  demand(options.garbage_collection_threshold >= 0 && options.garbage_collection_threshold < 1,
         "garbage_collection_threshold must be at least 0 and below 1");
  demand(options.large_segment_size >= smallest_large_segment && options.large_segment_size <= std::int64_t{1} << 48,
         "large_segment_size must be from 10 MiB to 2^48 bytes");
  // Otherwise a part of a new segment could be too large to be split again, and would be returned to the device as if it were a
  // whole segment.
  demand(options.max_split_size >= options.large_segment_size, "max_split_size must be at least large_segment_size");
  demand(options.max_non_split_rounding >= 0 && options.expandable_segment_range >= 0,
         "max_non_split_rounding and expandable_segment_range must not be negative");
  for (const std::int64_t divisions : options.roundup_power2_divisions) {
    demand(divisions >= 0 && std::popcount(static_cast<std::uint64_t>(divisions)) <= 1,
           "roundup_power2_divisions must be powers of two, or 0");
  }
}

}  // namespace
}  // namespace detail

caching_allocator::caching_allocator(const caching_allocator_options& options, segment_observer observer)
    : device_(checked(options), std::move(observer)) {
  pools_.emplace_back(0);
}

const cached_block* caching_allocator::allocate(std::uint64_t bytes, std::uint64_t stream, pool_id pool) {
  const auto requested = static_cast<std::int64_t>(std::min(bytes, detail::largest_request));
  const std::int64_t size = detail::block_size(device_.options(), requested);
  const bool is_small = size <= detail::largest_small_block;
  block_pool& blocks = is_small ? pools_[pool].small : pools_[pool].large;
  cached_block* block = take_free(blocks, stream, size);
  if (block == nullptr) block = take_new(blocks, stream, size, pool);
  if (block == nullptr) {
    ++device_.stats().num_ooms;
    return nullptr;
  }
  if (leaves_rest(*block, size)) device_.add_free(device_.split(*block, size));
  activate(*block, requested);
  return block;
}

void caching_allocator::deallocate(const cached_block* allocated) {
  cached_block& block = *const_cast<cached_block*>(allocated);  // our own, handed out const so that nobody else changes it
  block.is_allocated = false;
  device_.count(*block.pool, [&](caching_allocator_stats& stats) {
    stats.allocation.decrease(1);
    stats.allocated_bytes.decrease(block.bytes);
  });
  if (block.awaits_streams) {
    awaiting_.push_back(&block);
  } else {
    make_free(block);
  }
}

void caching_allocator::withdraw(const cached_block* allocated) {
  const block_pool& pool = *allocated->pool;
  const std::int64_t requested = allocated->requested;
  const std::int64_t bytes = allocated->bytes;
  deallocate(allocated);
  device_.count(pool, [&](caching_allocator_stats& stats) {
    stats.allocation.withdraw(1);
    stats.requested_bytes.withdraw(requested);
    stats.allocated_bytes.withdraw(bytes);
    stats.active_bytes.withdraw(bytes);
  });
}

void caching_allocator::record_stream(const cached_block* allocated, std::uint64_t stream) noexcept {
  if (stream != allocated->stream) const_cast<cached_block*>(allocated)->awaits_streams = true;
}

void caching_allocator::synchronize() {
  for (cached_block* const block : awaiting_) {
    block->awaits_streams = false;
    make_free(*block);
  }
  awaiting_.clear();
}

void caching_allocator::complete(const cached_block* freed) {
  const auto found = std::find(awaiting_.begin(), awaiting_.end(), freed);
  if (found == awaiting_.end()) return;
  cached_block& block = **found;
  awaiting_.erase(found);
  block.awaits_streams = false;
  make_free(block);
}

void caching_allocator::empty_cache() {
  synchronize();
  release_free(pools_.front().large);
  release_free(pools_.front().small);
  for (const pool_pair& pair : pools_) {
    if (pair.is_released) empty_pool(pair.small.id());
  }
}

caching_allocator::pool_id caching_allocator::make_pool(bool whole) {
  pools_.emplace_back(pools_.size(), whole);
  return pools_.size() - 1;
}

void caching_allocator::empty_pool(pool_id pool) {
  release_free(pools_[pool].small);
  release_free(pools_[pool].large);
}

const caching_allocator_options& caching_allocator::checked(const caching_allocator_options& options) {
  detail::check_options(options);
  return options;
}

cached_block* caching_allocator::take_free(block_pool& pool, std::uint64_t stream, std::int64_t size) {
  const caching_allocator_options& options = device_.options();
  if (options.collects_garbage()) pool.count_search();
  auto place = pool.free().lower_bound({stream, size, 0});
  if (place == pool.free().end() || place->first.stream != stream) return nullptr;
  if (place->second->is_expandable()) place = least_expandable(pool, place);
  cached_block& block = *place->second;
  if (size < options.max_split_size && block.bytes >= options.max_split_size) return nullptr;
  if (size >= options.max_split_size && block.bytes - size >= options.max_non_split_rounding) return nullptr;
  device_.remove_free(block);
  return &block;
}

free_block_map::const_iterator caching_allocator::least_expandable(const block_pool& pool,
                                                                   free_block_map::const_iterator place) noexcept {
  const auto reach = [](const cached_block& block) {
    return block.next != nullptr && !block.next->is_mapped ? block.bytes + block.next->bytes : block.bytes;
  };
  auto next = std::next(place);
  while (place->second->is_expandable() && next != pool.free().end() && next->first.stream == place->first.stream &&
         reach(*next->second) < reach(*place->second)) {
    place = next++;
  }
  return place;
}

cached_block* caching_allocator::take_new(block_pool& pool, std::uint64_t stream, std::int64_t size, pool_id id) {
  if (device_.options().collects_garbage()) collect_garbage(pools_.front().large);
  cached_block* block = reserve(pool, stream, size);
  if (block == nullptr && release_oversize(pool, stream, size)) block = reserve(pool, stream, size);
  if (block == nullptr && id == 0 && !keeps_shared_pool_) {
    empty_cache();
    ++device_.stats().num_alloc_retries;
    block = reserve(pool, stream, size);
  }
  return block;
}

cached_block* caching_allocator::reserve(block_pool& pool, std::uint64_t stream, std::int64_t size) {
  const std::int64_t segment = detail::segment_size(device_.options(), size);
  // PyTorch checks the fraction before it knows how few pages an expandable segment would need.
  if (device_.options().has_fraction() && !device_.allows(segment)) return nullptr;
  if (device_.options().expandable_segments) return detail::allocate_expandable(device_, pool, stream, size);
  return device_.allocate_segment(pool, stream, segment);
}

bool caching_allocator::leaves_rest(const cached_block& block, std::int64_t size) const noexcept {
  const std::int64_t rest = block.bytes - size;
  if (block.pool->is_whole()) return false;
  if (block.pool->is_small() || device_.options().expandable_segments) return rest >= detail::smallest_block;
  return size < device_.options().max_split_size && rest > detail::largest_small_block;
}

void caching_allocator::activate(cached_block& block, std::int64_t requested) noexcept {
  block.is_allocated = true;
  block.requested = requested;
  device_.count(*block.pool, [&](caching_allocator_stats& stats) {
    stats.allocation.increase(1);
    stats.requested_bytes.increase(requested);
    stats.allocated_bytes.increase(block.bytes);
    stats.active_bytes.increase(block.bytes);
  });
}

void caching_allocator::make_free(cached_block& block) {
  device_.count(*block.pool, [&](caching_allocator_stats& stats) {
    stats.requested_bytes.decrease(block.requested);
    stats.active_bytes.decrease(block.bytes);
  });
  block.requested = 0;
  device_.merge_with_neighbours(block);
  device_.add_free(block);
}

void caching_allocator::collect_garbage(block_pool& pool) {
  const caching_allocator_options& options = device_.options();
  const auto threshold = static_cast<std::int64_t>(options.garbage_collection_threshold * static_cast<double>(options.allowed()));
  std::vector<cached_block*> whole;
  std::int64_t total_age = 0;
  for (const auto& [key, block] : pool.free()) {
    if (block->is_split() || block->is_expandable()) continue;
    whole.push_back(block);
    total_age += pool.age(*block);
  }
  while (device_.stats().reserved_bytes.current > threshold && !whole.empty()) {
    const double average = static_cast<double>(total_age) / static_cast<double>(whole.size());
    std::erase_if(whole, [&](cached_block* block) {
      const std::int64_t age = pool.age(*block);
      if (static_cast<double>(age) < average) return false;
      total_age -= age;
      device_.free_segment(*block);
      return true;
    });
  }
}

bool caching_allocator::release_oversize(block_pool& pool, std::uint64_t stream, std::int64_t size) {
  const std::int64_t max_split_size = device_.options().max_split_size;
  if (max_split_size == caching_allocator_options::unlimited) return false;
  const std::int64_t wanted = std::max(size, max_split_size);
  auto place = pool.free().lower_bound({stream, wanted, 0});
  if (place != pool.free().end() && place->first.stream == stream && !place->second->is_expandable()) {
    device_.free_segment(*place->second);
    return true;
  }
  std::int64_t released = 0;
  while (released < wanted && place != pool.free().begin()) {
    const auto largest = std::prev(place);
    if (largest->first.stream != stream || largest->first.bytes < max_split_size) break;
    if (largest->second->is_expandable()) {
      place = largest;
    } else {
      released += largest->first.bytes;
      device_.free_segment(*largest->second);
    }
  }
  return released >= wanted;
}

void caching_allocator::release_free(block_pool& pool) {
  std::vector<cached_block*> expandable;  // to be unmapped later, since that changes the pool
  for (auto place = pool.free().begin(); place != pool.free().end();) {
    cached_block& block = *(place++)->second;
    if (block.is_expandable()) {
      expandable.push_back(&block);
    } else if (!block.is_split()) {
      device_.free_segment(block);
    }
  }
  for (cached_block* const block : expandable) detail::unmap_pages_of(device_, *block);
}

}  // namespace memprof::inline MEMPROF_ABI
