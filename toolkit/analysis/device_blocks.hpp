#pragma once

#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>

#include <cstdint>
#include <functional>
#include <utility>

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
  device_blocks(const caching_allocator_options& options, segment_observer observer)
      : options_(options), allowed_(options.allowed()), observer_(std::move(observer)) {}

  [[nodiscard]] const caching_allocator_options& options() const noexcept { return options_; }
  [[nodiscard]] const caching_allocator_stats& stats() const noexcept { return stats_; }
  [[nodiscard]] caching_allocator_stats& stats() noexcept { return stats_; }
  [[nodiscard]] const block_store& blocks() const noexcept { return blocks_; }

  /// Whether the process may reserve that many more bytes.
  [[nodiscard]] bool allows(std::int64_t bytes) const noexcept { return bytes <= allowed_ - stats_.reserved_bytes.current; }

  /// Allocates a new segment as one block that is in no pool: cudaMalloc. Null if the device has too little left.
  [[nodiscard]] cached_block* allocate_segment(block_pool& pool, std::uint64_t stream, std::int64_t bytes) {
    if (!has_room_for(bytes)) return nullptr;
    cached_block* const segment = take_addresses(pool, stream, bytes);
    if (segment != nullptr) count_reserved(segment->address, bytes);
    return segment;
  }

  /// Returns a free segment that is one block: cudaFree.
  void free_segment(cached_block& block) {
    remove_free(block);
    count_released(block.address, block.bytes);
    blocks_.give_back(block);
  }

  /// Reserves a block of addresses without memory, in no pool: cuMemAddressReserve. Null if none are left.
  [[nodiscard]] cached_block* take_addresses(block_pool& pool, std::uint64_t stream, std::int64_t bytes) {
    constexpr std::uint64_t alignment = std::uint64_t{2} << 20;
    constexpr std::uint64_t end = std::uint64_t{1} << 63;
    const auto size = static_cast<std::uint64_t>(bytes);
    if (size >= end - next_address_) return nullptr;
    cached_block& block = blocks_.take();
    block.address = next_address_;
    block.bytes = bytes;
    block.stream = stream;
    block.pool = &pool;
    next_address_ += (size + alignment - 1) / alignment * alignment + alignment;
    return &block;
  }
  /// Returns the addresses of an unmapped block that is in no pool.
  void give_back_addresses(cached_block& block) noexcept { blocks_.give_back(block); }

  /// Whether the device has that many bytes left.
  [[nodiscard]] bool has_room_for(std::int64_t bytes) const noexcept {
    return options_.capacity == 0 ? allows(bytes) : bytes <= options_.capacity - stats_.reserved_bytes.current;
  }
  /// Records that addresses are now backed by device memory.
  void count_reserved(std::uint64_t address, std::int64_t bytes) {
    stats_.reserved_bytes.increase(bytes);
    ++stats_.num_device_alloc;
    if (observer_) observer_(segment_action::reserve, address, bytes);
  }
  void count_released(std::uint64_t address, std::int64_t bytes) {
    stats_.reserved_bytes.decrease(bytes);
    ++stats_.num_device_free;
    if (observer_) observer_(segment_action::release, address, bytes);
  }

  void add_free(cached_block& block) {
    if (counts_as_inactive_split(block)) stats_.inactive_split_bytes.increase(block.bytes);
    block.pool->add(block);
  }
  void remove_free(cached_block& block) {
    if (counts_as_inactive_split(block)) stats_.inactive_split_bytes.decrease(block.bytes);
    block.pool->remove(block);
  }

  /// Cuts a block that is in no pool after its first `bytes`. The rest has the same properties and is in no pool either.
  [[nodiscard]] cached_block& split(cached_block& block, std::int64_t bytes) {
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

  /// Merges a block that is in no pool with its neighbours if they are free and mapped, or unmapped, as it is.
  void merge_with_neighbours(cached_block& block) {
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

 private:
  [[nodiscard]] static bool is_mergeable(const cached_block& block, const cached_block* neighbour) noexcept {
    return neighbour != nullptr && !neighbour->is_active() && neighbour->is_mapped == block.is_mapped;
  }

  /// PyTorch excludes expandable segments, since their free pages can be returned.
  [[nodiscard]] static bool counts_as_inactive_split(const cached_block& block) noexcept {
    return block.is_split() && !block.is_expandable();
  }

  caching_allocator_options options_;
  std::int64_t allowed_;
  segment_observer observer_;
  caching_allocator_stats stats_;
  block_store blocks_;
  std::uint64_t next_address_ = std::uint64_t{1} << 45;  // ascending, never reused
};

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
