#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/device_blocks.hpp>
#include <memprof/toolkit/analysis/expandable_segments.hpp>

#include <algorithm>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// The first block of a run of free and unmapped blocks in an expandable segment with at least that many bytes: the lowest on the
/// stream. Null if there is none.
cached_block* find_expandable_run(const block_pool& pool, std::uint64_t stream, std::int64_t bytes) {
  const auto is_available = [](const cached_block* block) { return block != nullptr && !block->is_active(); };
  const free_block_map& unmapped = pool.unmapped();
  for (auto place = unmapped.lower_bound({stream, 0, 0}); place != unmapped.end() && place->first.stream == stream; ++place) {
    cached_block* const first = is_available(place->second->previous) ? place->second->previous : place->second;
    std::int64_t available = 0;
    for (const cached_block* block = first; available < bytes && is_available(block); block = block->next) {
      available += block->bytes;
    }
    if (available >= bytes) return first;
  }
  return nullptr;
}

/// A new expandable segment without memory; null if a request of that many bytes exceeds any segment.
cached_block* make_expandable_segment(device_blocks& device, block_pool& pool, std::uint64_t stream, std::int64_t bytes) {
  const std::int64_t range = expandable_range(device.options(), page_size(device.options(), pool.is_small()));
  if (bytes > range) return nullptr;
  cached_block* const segment = device.take_addresses(pool, stream, range);
  if (segment == nullptr) return nullptr;
  segment->expandable_base = segment->address;
  segment->is_mapped = false;
  device.add_free(*segment);
  return segment;
}

/// Maps the pages under the first `bytes` of an unmapped block, which becomes a free block merged with its neighbours. False,
/// with nothing changed, if the device has too little left.
bool map_pages_of(device_blocks& device, cached_block& block, std::int64_t bytes) {
  // An unmapped block begins and ends at page boundaries.
  const std::int64_t mapped = rounded_up(bytes, page_size(device.options(), block.pool->is_small()));
  if (!device.has_room_for(mapped)) return false;
  const std::uint64_t address = block.address;
  device.remove_free(block);
  if (mapped < block.bytes) device.add_free(device.split(block, mapped));
  block.is_mapped = true;
  device.merge_with_neighbours(block);
  device.add_free(block);
  device.count_reserved(*block.pool, address, mapped);
  return true;
}

}  // namespace

cached_block* allocate_expandable(device_blocks& device, block_pool& pool, std::uint64_t stream, std::int64_t bytes) {
  cached_block* block = find_expandable_run(pool, stream, bytes);
  if (block == nullptr) block = make_expandable_segment(device, pool, stream, bytes);
  if (block == nullptr) return nullptr;
  if (!block->is_mapped && !map_pages_of(device, *block, std::min(block->bytes, bytes))) return nullptr;
  while (block->bytes < bytes) {
    cached_block& unmapped = *block->next;
    if (!map_pages_of(device, unmapped, std::min(unmapped.bytes, bytes - block->bytes))) return nullptr;
    block = &unmapped;  // it absorbed the free block before it
  }
  device.remove_free(*block);
  return block;
}

void unmap_pages_of(device_blocks& device, cached_block& block) {
  const std::int64_t page = page_size(device.options(), block.pool->is_small());
  const auto offset = static_cast<std::int64_t>(block.address - block.expandable_base);
  const std::int64_t begin = rounded_up(offset, page) - offset;
  const std::int64_t end = (offset + block.bytes) / page * page - offset;
  if (begin >= end) return;
  device.remove_free(block);
  cached_block* unmapped = &block;
  if (begin > 0) {
    unmapped = &device.split(block, begin);
    device.add_free(block);
  }
  if (end - begin < unmapped->bytes) device.add_free(device.split(*unmapped, end - begin));
  const std::uint64_t address = unmapped->address;
  const block_pool& pool = *unmapped->pool;
  unmapped->is_mapped = false;
  device.merge_with_neighbours(*unmapped);
  if (unmapped->is_split()) {
    device.add_free(*unmapped);
  } else {
    device.give_back_addresses(*unmapped);
  }
  device.count_released(pool, address, end - begin);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
