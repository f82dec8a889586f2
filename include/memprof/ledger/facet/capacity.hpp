#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/ledger/facet/cores.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/live_set.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/ledger/top_blocks.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/field_names.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// The facet "capacity": the first allocation that exceeded the capacity of a device or one of its cores. It observes every
/// allocation, through the space's peaks.

namespace memprof::inline MEMPROF_ABI {

/// The first allocation that made a space's live bytes exceed its capacity, as known at that moment: categories and names that
/// `annotate` gives later are not included. The run went on, so peaks are those without a limit.
///
/// If the capacity applies to each core, this is the first block that exceeded it on one of its cores, and all bytes are those on
/// that core.
struct capacity_shortfall {
  std::int64_t requested = 0;  ///< bytes requested; 0: the capacity was never exceeded
  /// Column and row, as in "3-1", of the fullest of the block's cores (the first, if equal); empty if the capacity is not per
  /// core.
  std::string core;
  std::string operation;  ///< path of the requesting operation, empty if none was open
  memprof::category category = category::other;
  std::int64_t segment = -1;  ///< index into `profile::segments` of the segment it was in
  std::int64_t time_ns = 0;
  std::int64_t free = 0;       ///< bytes: the capacity minus what was live
  std::int64_t shortfall = 0;  ///< bytes missing: requested - free
  bool holders_known = true;   ///< false: the profiler had no memory for the owners and blocks in `held`, nor for `remedy`
  live_set held;               ///< who held the rest: everything live except the requested block, with all operations
  /// The least that would have had to be freed: the smallest owner that alone held `shortfall` bytes, or else the fewest owners
  /// that together did, largest first. Empty if all together did not, because the request alone exceeded the capacity.
  vector<owned_bytes> remedy;

  bool operator==(const capacity_shortfall&) const = default;
};

template <>
inline constexpr detail::name_list detail::field_names<capacity_shortfall>{
    "requested", "core", "operation", "category", "segment", "time_ns", "free", "shortfall", "holders_known", "held", "remedy"};

template <>
inline constexpr detail::name_list detail::nullable_fields<capacity_shortfall>{"operation"};

template <>
inline constexpr detail::name_list detail::signed_fields<capacity_shortfall>{"segment"};

namespace detail {

/// The structs of the facet, for code that visits every field of a profile.
using capacity_structs = type_list<capacity_shortfall>;

/// A space ledger's record of the first allocation that made its live bytes exceed its capacity: the requested block, and who
/// held the rest at that moment. Categories and annotations are those known then.
///
/// If the capacity is per core, all bytes and holders are those on the core that was full.
struct shortfall_record {
  block asked{};                     ///< 0 bytes while nothing has exceeded the capacity
  std::uint64_t segment = 0;         ///< number of the segment it was requested in
  segment_record moment{};           ///< the segment then, as if its peak had been just before `asked`
  std::uint64_t stamp = 0;           ///< when it was requested
  bool is_on_core = false;           ///< the capacity is per core
  core_range core{};                 ///< the full core, if `is_on_core`
  bool has_holders = false;          ///< false: the system had no memory for `owners` and `largest`, which are then empty
  page_array<owner_at_peak> owners;  ///< all with live bytes, greatest first, without `asked`
  page_array<block> largest;         ///< of the blocks live besides `asked`, a heap

  [[nodiscard]] bool has_happened() const noexcept { return asked.bytes != 0; }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return owners.bytes() + largest.bytes(); }

  /// Removes `asked`, whose allocation made the peak, from `moment` and `owners`.
  [[gnu::cold]] void take_out_asked() noexcept {
    stamp = moment.peak_stamp;
    const auto bytes = static_cast<std::int64_t>(asked.bytes);
    moment.peak_live_bytes -= bytes;
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
    sort_rows(owners.data(), owners.size(), holds_more);
  }

  /// Keeps the `limit` largest blocks except `asked`. Costs a pass over the blocks. False if the system has no memory.
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

  /// Begins the record for a core; its holders are then added one by one.
  [[gnu::cold]] void begin_on_core(const core_range& full, std::uint64_t in_segment, std::uint64_t at_stamp,
                                   std::uint32_t limit) noexcept {
    is_on_core = true;
    core = full;
    segment = in_segment;
    stamp = at_stamp;
    has_holders = largest.resize(limit);
  }

  /// Adds a block live besides `asked`. Until `end_on_core`, an operation's row is at the index of its number, and the first
  /// `largest_count` entries of `largest` are a heap.
  [[gnu::cold]] void add_holder(const block& held, std::uint32_t& largest_count) noexcept {
    const auto bytes = static_cast<std::int64_t>(held.bytes);
    moment.peak_live_bytes += bytes;
    ++moment.blocks_at_peak;
    moment.categories[held.category()].bytes += bytes;
    ++moment.categories[held.category()].blocks;
    const std::uint32_t operation = held.operation();
    has_holders = has_holders && (operation < owners.size() || owners.resize(operation + std::size_t{1}));
    if (!has_holders) return;
    owners[operation] = {operation, owners[operation].bytes + bytes, owners[operation].blocks + 1};
    top_blocks_view{largest.data(), largest_count, static_cast<std::uint32_t>(largest.size())}.offer(held);
  }

  /// Reduces rows and blocks to those in use.
  [[gnu::cold]] void end_on_core(std::uint32_t largest_count) noexcept {
    if (!has_holders) return forget_holders();
    std::size_t count = 0;
    for (const owner_at_peak& row : owners) {
      if (row.blocks != 0) owners[count++] = row;
    }
    (void)owners.resize(count);
    (void)largest.resize(largest_count);
    sort_rows(owners.data(), count, holds_more);
  }
};

/// The least of `owners`, greatest first, that held `missing` bytes: see `capacity_shortfall::remedy`. Of equally large ones, the
/// first.
template <class Owners>
[[nodiscard]] Owners least_to_free(const Owners& owners, std::int64_t missing) {
  std::size_t first = 0;
  std::size_t count = 0;
  for (std::size_t row = 0; row < owners.size() && owners[row].bytes >= missing; ++row) {
    if (count != 0 && owners[row].bytes == owners[first].bytes) continue;
    first = row;
    count = 1;
  }
  if (count == 0) {
    for (; count < owners.size() && missing > 0; ++count) missing -= owners[count].bytes;
    if (missing > 0) return {};
  }
  Owners rows(count);
  for (std::size_t row = 0; row < count; ++row) rows[row] = owners[first + row];
  return rows;
}

/// The first shortfall of a space that had one. `held` was live besides the requested block.
template <class Space, class Rows, class LiveSet, class Shortfall = capacity_shortfall>
[[nodiscard]] Shortfall build_first_shortfall(const Space& space, const clock_readings& time, const vector<std::string>& paths,
                                              LiveSet held, const Rows& rows) {
  const shortfall_record& shortfall = space.first_shortfall();
  Shortfall result;
  result.requested = static_cast<std::int64_t>(shortfall.asked.bytes);
  if (shortfall.is_on_core) result.core = core_text(shortfall.core.x0, shortfall.core.y0);
  if (shortfall.asked.operation() != 0) result.operation = paths[shortfall.asked.operation()];
  result.category = static_cast<category>(shortfall.asked.category());
  result.segment = rows.index_of(shortfall.segment);
  result.time_ns = time.to_ns(shortfall.stamp);
  result.free = space.capacity() - held.bytes;
  result.shortfall = result.requested - result.free;
  result.holders_known = shortfall.has_holders;
  result.remedy = least_to_free(held.by_operation, result.shortfall);
  result.held = std::move(held);
  return result;
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
