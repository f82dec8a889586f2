#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>
#include <memprof/toolkit/analysis/device_blocks.hpp>

#include <cstdint>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

device_blocks::device_blocks(const caching_allocator_options& options, segment_observer observer)
    : options_(options), allowed_(options.allowed()), observer_(std::move(observer)) {}

cached_block* device_blocks::allocate_segment(block_pool& pool, std::uint64_t stream, std::int64_t bytes) {
  if (!has_room_for(bytes)) return nullptr;
  cached_block* const segment = take_addresses(pool, stream, bytes, options_.descending_addresses && bytes > small_segment_size);
  if (segment == nullptr) return nullptr;
  count(pool, [](caching_allocator_stats& stats) { stats.segment.increase(1); });
  count_reserved(pool, segment->address, bytes);
  return segment;
}

void device_blocks::free_segment(cached_block& block) {
  remove_free(block);
  count(*block.pool, [](caching_allocator_stats& stats) { stats.segment.decrease(1); });
  count_released(*block.pool, block.address, block.bytes);
  blocks_.give_back(block);
}

cached_block* device_blocks::take_addresses(block_pool& pool, std::uint64_t stream, std::int64_t bytes, bool descend) {
  constexpr std::uint64_t alignment = std::uint64_t{2} << 20;
  constexpr std::uint64_t end = std::uint64_t{1} << 63;
  const auto size = static_cast<std::uint64_t>(bytes);
  const std::uint64_t room = (size + alignment - 1) / alignment * alignment + alignment;
  descend = descend && size < first_address - alignment && room < last_address_;  // else there are none below
  if (!descend && size >= end - next_address_) return nullptr;
  cached_block& block = blocks_.take();
  if (descend) last_address_ -= room;
  block.address = descend ? last_address_ : next_address_;
  block.bytes = bytes;
  block.stream = stream;
  block.pool = &pool;
  if (!descend) next_address_ += room;
  return &block;
}

void device_blocks::set_memory_fraction(double fraction) noexcept {
  options_.per_process_memory_fraction = fraction;
  allowed_ = options_.allowed();
}

bool device_blocks::has_room_for(std::int64_t bytes) const noexcept {
  return options_.capacity == 0 ? allows(bytes) : bytes <= options_.available() - stats_.reserved_bytes.current;
}

void device_blocks::reset_peak_stats() noexcept {
  stats_.reset_peaks();
  for (caching_allocator_stats& each : pool_stats_) each.reset_peaks();
}

void device_blocks::reset_accumulated_stats() noexcept {
  stats_.reset_accumulated();
  for (caching_allocator_stats& each : pool_stats_) each.reset_accumulated();
}

void device_blocks::count_reserved(const block_pool& pool, std::uint64_t address, std::int64_t bytes) {
  count(pool, [bytes](caching_allocator_stats& stats) {
    stats.reserved_bytes.increase(bytes);
    ++stats.num_device_alloc;
  });
  if (observer_) observer_(segment_action::reserve, address, bytes);
}

void device_blocks::count_released(const block_pool& pool, std::uint64_t address, std::int64_t bytes) {
  count(pool, [bytes](caching_allocator_stats& stats) {
    stats.reserved_bytes.decrease(bytes);
    ++stats.num_device_free;
  });
  if (observer_) observer_(segment_action::release, address, bytes);
}

void device_blocks::add_free(cached_block& block) {
  if (counts_as_inactive_split(block)) {
    count(*block.pool, [&](caching_allocator_stats& stats) { stats.inactive_split_bytes.increase(block.bytes); });
  }
  block.pool->add(block);
}

void device_blocks::remove_free(cached_block& block) {
  if (counts_as_inactive_split(block)) {
    count(*block.pool, [&](caching_allocator_stats& stats) { stats.inactive_split_bytes.decrease(block.bytes); });
  }
  block.pool->remove(block);
}

cached_block& device_blocks::split(cached_block& block, std::int64_t bytes) {
  cached_block& rest = blocks_.take();
  rest.address = block.address + static_cast<std::uint64_t>(bytes);
  rest.bytes = block.bytes - bytes;
  rest.stream = block.stream;
  rest.pool = block.pool;
  rest.expandable_base = block.expandable_base;
  rest.is_mapped = block.is_mapped;
  rest.previous = &block;
  rest.next = block.next;
  if (rest.next != nullptr) rest.next->previous = &rest;
  block.next = &rest;
  block.bytes = bytes;
  return rest;
}

void device_blocks::merge_with_neighbours(cached_block& block) {
  if (cached_block* const before = block.previous; is_mergeable(block, before)) {
    remove_free(*before);
    block.address = before->address;
    block.bytes += before->bytes;
    block.previous = before->previous;
    if (block.previous != nullptr) block.previous->next = &block;
    blocks_.give_back(*before);
  }
  if (cached_block* const after = block.next; is_mergeable(block, after)) {
    remove_free(*after);
    block.bytes += after->bytes;
    block.next = after->next;
    if (block.next != nullptr) block.next->previous = &block;
    blocks_.give_back(*after);
  }
}

bool device_blocks::is_mergeable(const cached_block& block, const cached_block* neighbour) noexcept {
  return neighbour != nullptr && !neighbour->is_active() && neighbour->is_mapped == block.is_mapped;
}

bool device_blocks::counts_as_inactive_split(const cached_block& block) noexcept {
  return block.is_split() && !block.is_expandable();
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
