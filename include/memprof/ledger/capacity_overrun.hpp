#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/ledger/top_blocks.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof {

/// What a space's ledger keeps of the first allocation that made its live bytes exceed its capacity: the block that was asked
/// for, and who held the rest at that moment. Categories and annotations are those known then.
struct capacity_overrun {
  block asked{};                             ///< of no bytes as long as nothing has exceeded the capacity
  std::size_t segment = 0;                   ///< the space's segment in which it was asked for
  segment_record moment{};                   ///< the segment then, as if its peak had been just before: without `asked`
  std::uint64_t stamp = 0;                   ///< when it was asked for
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
};

}  // namespace memprof
