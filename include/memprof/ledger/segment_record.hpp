#pragma once

#include <memprof/trace/category.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// What an operation had live at a peak.
struct owner_at_peak {
  std::uint32_t operation;
  std::int64_t bytes;
  std::int64_t blocks;
};

/// The order of owners in reports: more bytes first; if equal, the operation that was called earlier.
[[nodiscard]] inline bool holds_more(const owner_at_peak& left, const owner_at_peak& right) noexcept {
  return left.bytes != right.bytes ? left.bytes > right.bytes : left.operation < right.operation;
}

/// What a category had live, at a peak or at another moment.
struct category_at_peak {
  std::int64_t bytes;
  std::int64_t blocks;
};

/// A finished segment of one memory space, or the open one.
struct segment_record {
  std::int64_t live_at_start;
  std::int64_t live_at_end;
  std::int64_t peak_live_bytes;
  std::int64_t allocated;
  std::int64_t allocation_count;
  std::int64_t blocks_at_start;
  std::int64_t blocks_at_end;
  std::int64_t blocks_at_peak;
  std::uint64_t peak_ordinal;  ///< ordinal of the allocation that reached the peak
  std::uint64_t peak_stamp;
  std::uint32_t peak_operation;
  std::uint32_t owner_count;  ///< number of rows kept in the space's owner table
  std::size_t first_owner;
  std::int64_t remaining_bytes;  ///< of operations not kept
  std::int64_t remaining_operations;
  std::int64_t cumulative_peak;  ///< greatest live bytes of the space up to its end
  std::array<category_at_peak, category_names.size()> categories;
};

/// The numbers summed over all segments of a name, in the order of a space's `by_name`.
enum class segment_number : std::uint8_t {
  segment_peak,
  peak_live_bytes,
  allocated,
  freed,
  change,
  live_at_end,
  allocation_count,
  deallocation_count
};
/// How many `segment_number` there are.
inline constexpr std::size_t segment_number_count = 8;

}  // namespace memprof::inline MEMPROF_ABI::detail
