#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/ledger/top_blocks.hpp>
#include <memprof/trace/core_range.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

/// What a space's ledger keeps of the first allocation that made its live bytes exceed its capacity: the block that was asked
/// for, and who held the rest at that moment. Categories and annotations are those known then.
///
/// If the capacity is that of a core, all bytes and holders are those on the core that was full.
struct shortfall_record {
  block asked{};                             ///< of no bytes as long as nothing has exceeded the capacity
  std::uint64_t segment = 0;                 ///< number of the one in which it was asked for
  segment_record moment{};                   ///< the segment then, as if its peak had been just before: without `asked`
  std::uint64_t stamp = 0;                   ///< when it was asked for
  bool is_on_core = false;                   ///< the capacity is that of a core
  core_range core{};                         ///< the one that was full, if `is_on_core`
  bool has_holders = false;                  ///< false: the system had no memory for `owners` and `largest`, which are then empty
  detail::page_array<owner_at_peak> owners;  ///< all that held something, greatest first, without `asked`
  detail::page_array<block> largest;         ///< of the blocks that were live beside `asked`, a heap

  [[nodiscard]] bool has_happened() const noexcept { return asked.bytes != 0; }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return owners.bytes() + largest.bytes(); }

  /// Takes `asked`, which made the peak that `moment` and `owners` tell of, out of both.
  [[gnu::cold]] void take_out_asked() noexcept {
    stamp = moment.peak_stamp;
    const auto bytes = static_cast<std::int64_t>(asked.bytes);
    moment.live_at_peak -= bytes;
    --moment.blocks_at_peak;
    moment.categories[asked.category()].bytes -= bytes;
    --moment.categories[asked.category()].blocks;
    for (owner_at_peak& row : owners) {
      if (row.operation != asked.operation()) continue;
      row.bytes -= bytes;
      if (--row.blocks != 0) break;
      row = owners.back();
      owners.pop_back();
      break;
    }
    detail::sort_rows(owners.data(), owners.size(), holds_more);
  }

  /// Keeps the largest `limit` of the blocks but `asked`. Costs a pass over them. False if the system has no memory.
  [[nodiscard, gnu::cold]] bool keep_largest(const live_blocks& live, std::uint32_t limit) noexcept {
    if (!largest.resize(limit)) return false;
    std::uint32_t count = 0;
    const top_blocks_view best{largest.data(), count, limit};
    live.for_each([&](const block& held) {
      if (held.address != asked.address) best.offer(held);
    });
    return largest.resize(count);
  }

  [[gnu::cold]] void forget_holders() noexcept {
    owners.clear();
    largest.clear();
  }

  /// Begins the record of a core to which the holders are added one by one.
  [[gnu::cold]] void begin_on_core(const core_range& full, std::uint64_t in_segment, std::uint64_t at_stamp,
                                   std::uint32_t limit) noexcept {
    is_on_core = true;
    core = full;
    segment = in_segment;
    stamp = at_stamp;
    has_holders = largest.resize(limit);
  }

  /// Adds a block to what was live beside `asked`. Until `end_on_core` an operation's row is where its number says, and the
  /// first `largest_count` of `largest` are a heap.
  [[gnu::cold]] void add_holder(const block& held, std::uint32_t& largest_count) noexcept {
    const auto bytes = static_cast<std::int64_t>(held.bytes);
    moment.live_at_peak += bytes;
    ++moment.blocks_at_peak;
    moment.categories[held.category()].bytes += bytes;
    ++moment.categories[held.category()].blocks;
    const std::uint32_t operation = held.operation();
    has_holders = has_holders && (operation < owners.size() || owners.resize(operation + std::size_t{1}));
    if (!has_holders) return;
    owners[operation] = {operation, owners[operation].bytes + bytes, owners[operation].blocks + 1};
    top_blocks_view{largest.data(), largest_count, static_cast<std::uint32_t>(largest.size())}.offer(held);
  }

  /// Leaves the rows and blocks that there are.
  [[gnu::cold]] void end_on_core(std::uint32_t largest_count) noexcept {
    if (!has_holders) return forget_holders();
    std::size_t count = 0;
    for (const owner_at_peak& row : owners) {
      if (row.blocks != 0) owners[count++] = row;
    }
    (void)owners.resize(count);
    (void)largest.resize(largest_count);
    detail::sort_rows(owners.data(), count, holds_more);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
