#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/fragmentation.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// Adds a segment, from its first block on. Unmapped pages end a stretch.
void add_segment(detail::segment_division& parts, const cached_block* block, bool serves_request) {
  bool is_open = false;
  for (; block != nullptr; block = block->next) {
    if (is_open != block->is_mapped) block->is_mapped ? parts.begin(serves_request) : parts.end();
    is_open = block->is_mapped;
    if (!is_open) continue;
    if (block->is_active()) {
      parts.add_block(block->bytes, block->requested, !block->is_allocated);
    } else {
      parts.add_free(block->bytes);
    }
  }
  if (is_open) parts.end();
}

}  // namespace

fragmentation fragmentation_of(const caching_allocator& allocator, std::uint64_t stream, caching_allocator::pool_id pool) {
  detail::segment_division parts;
  allocator.for_each_block([&](const cached_block& block) {
    if (block.previous == nullptr) add_segment(parts, &block, allocator.serves(block, stream, pool));
  });
  return parts.sums();
}

}  // namespace memprof::inline MEMPROF_ABI
