#pragma once

#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/device_blocks.hpp>

#include <cstdint>

/// @file
/// Expandable segments: a long address range for each pool and stream, backed by memory page by page.

namespace memprof::inline MEMPROF_ABI::detail {

/// Allocates a block of at least `bytes` in an expandable segment, in no pool; null if the device has too little left. As in
/// PyTorch, pages mapped before that turned out stay mapped.
[[nodiscard]] cached_block* allocate_expandable(device_blocks& device, block_pool& pool, std::uint64_t stream,
                                                std::int64_t bytes);

/// Unmaps the pages that lie entirely within a free block of an expandable segment. A segment without memory returns its
/// addresses.
void unmap_pages_of(device_blocks& device, cached_block& block);

}  // namespace memprof::inline MEMPROF_ABI::detail
