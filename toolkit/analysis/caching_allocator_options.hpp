#pragma once

#include <memprof/config.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

/// @file
/// The settings of PyTorch's CUDA caching allocator, and the sizes derived from them. The rules are those of
/// c10/cuda/CUDACachingAllocator.cpp; docs/caching_allocator.md says which of them are modelled.

namespace memprof::inline MEMPROF_ABI {

/// The options of the caching allocator model. Names are those of PYTORCH_CUDA_ALLOC_CONF, which `parse_cuda_alloc_conf` reads;
/// defaults are PyTorch's. All sizes are in bytes.
struct caching_allocator_options {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  static constexpr std::size_t roundup_intervals = 16;

  /// The capacity of the device; 0: unlimited.
  std::int64_t capacity = 0;
  /// The part of `capacity` that others hold, at most all of it: the CUDA context, kernels and libraries (`cuda_context_of`).
  std::int64_t context = 0;
  /// The fraction of `capacity` that may be reserved, above 0 and at most 1. `garbage_collection_threshold` only has an effect
  /// below 1.
  double per_process_memory_fraction = 1;
  /// The fraction of the allowed bytes above which old cached blocks are freed; 0: never. As in PyTorch, it has no effect unless
  /// `per_process_memory_fraction` is below 1 and there is a capacity.
  double garbage_collection_threshold = 0;
  /// Blocks of at least this size are not split. At least `large_segment_size`.
  std::int64_t max_split_size = unlimited;
  /// The most by which a block that is not split may exceed the request.
  std::int64_t max_non_split_rounding = std::int64_t{20} << 20;
  /// The size of segments for requests above 1 MiB and below 10 MiB, and of the pages of expandable segments for more than 1 MiB.
  std::int64_t large_segment_size = std::int64_t{20} << 20;
  /// The number of steps between one power of two and the next, by interval: [0] for everything below 2 MiB, [1] for 2 to 4 MiB,
  /// up to [15] for 32 GiB and more. Powers of two; 0 and 1: sizes are multiples of 512.
  std::array<std::int64_t, roundup_intervals> roundup_power2_divisions{};
  bool expandable_segments = false;
  /// Whether segments above 2 MiB have ever lower addresses, as CUDA's driver hands them out. Of free blocks of one size, PyTorch
  /// up to 2.11 takes that with the lowest address; 2.12 and later the one that it has had for longest, as with ascending
  /// addresses.
  bool descending_addresses = false;
  /// The address range of an expandable segment; 0: 9/8 of `capacity`, as in PyTorch, or 2^42 without a capacity.
  std::int64_t expandable_segment_range = 0;

  /// The most that the device has for the allocator.
  [[nodiscard]] constexpr std::int64_t available() const noexcept { return capacity == 0 ? allowed() : capacity - context; }
  /// The most that PyTorch lets itself reserve, whatever the device has.
  [[nodiscard]] constexpr std::int64_t allowed() const noexcept {
    if (capacity == 0) return std::int64_t{1} << 62;  // sums of bytes stay below 2^63
    if (!has_fraction()) return capacity;
    return static_cast<std::int64_t>(per_process_memory_fraction * static_cast<double>(capacity));
  }
  /// Whether `allowed` is less than the capacity of the device.
  [[nodiscard]] constexpr bool has_fraction() const noexcept { return capacity != 0 && per_process_memory_fraction < 1; }
  /// Whether blocks that have been unused for long are freed.
  [[nodiscard]] constexpr bool collects_garbage() const noexcept { return has_fraction() && garbage_collection_threshold > 0; }
};

namespace detail {

inline constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
inline constexpr std::int64_t smallest_block = 512;
inline constexpr std::int64_t largest_small_block = mebibyte;
inline constexpr std::int64_t small_segment_size = 2 * mebibyte;
inline constexpr std::int64_t smallest_large_segment = 10 * mebibyte;  // from here on, a request gets a segment of its own size
inline constexpr std::int64_t large_segment_rounding = 2 * mebibyte;

/// The largest request to a device: rounding it up must not overflow.
inline constexpr std::uint64_t largest_request = std::uint64_t{1} << 60;

/// The next multiple of `step`. Both are positive.
[[nodiscard]] constexpr std::int64_t rounded_up(std::int64_t bytes, std::int64_t step) noexcept {
  return (bytes + step - 1) / step * step;
}

[[nodiscard]] constexpr std::int64_t roundup_divisions(const caching_allocator_options& options, std::int64_t bytes) noexcept {
  constexpr int first_interval = 20;  // log2 of 1 MiB
  const int interval = 63 - std::countl_zero(static_cast<std::uint64_t>(bytes)) - first_interval;
  constexpr int last = static_cast<int>(caching_allocator_options::roundup_intervals) - 1;
  return options.roundup_power2_divisions[static_cast<std::size_t>(interval < 0 ? 0 : interval > last ? last : interval)];
}

/// The next of the `divisions` equal steps between the powers of two around `bytes`; powers of two are unchanged.
[[nodiscard]] constexpr std::int64_t rounded_to_division(std::int64_t bytes, std::int64_t divisions) noexcept {
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
  return bytes == power ? bytes : rounded_up(bytes, power / divisions);
}

/// The size of the block for `bytes`, at most `largest_request`.
[[nodiscard]] constexpr std::int64_t block_size(const caching_allocator_options& options, std::int64_t bytes) noexcept {
  if (bytes < smallest_block) return smallest_block;
  const std::int64_t divisions = roundup_divisions(options, bytes);
  if (divisions > 1 && (bytes - 1) / divisions >= smallest_block) return rounded_to_division(bytes, divisions);
  return rounded_up(bytes, smallest_block);
}

/// The size of a new segment for a block of `bytes`.
[[nodiscard]] constexpr std::int64_t segment_size(const caching_allocator_options& options, std::int64_t bytes) noexcept {
  if (bytes <= largest_small_block) return small_segment_size;
  if (bytes < smallest_large_segment) return options.large_segment_size;
  return rounded_up(bytes, large_segment_rounding);
}

/// The size of the pages that back an expandable segment.
[[nodiscard]] constexpr std::int64_t page_size(const caching_allocator_options& options, bool is_small) noexcept {
  return is_small ? small_segment_size : options.large_segment_size;
}

/// The size of the address range of an expandable segment with such pages: whole pages.
[[nodiscard]] constexpr std::int64_t expandable_range(const caching_allocator_options& options, std::int64_t page) noexcept {
  constexpr std::int64_t most = std::int64_t{1} << 48;           // the address space of a GPU
  constexpr std::int64_t without_limit = std::int64_t{1} << 42;  // more than any GPU has, and 2^21 of them fit below 2^63
  std::int64_t range = options.expandable_segment_range;
  if (range == 0 && options.capacity == 0) range = without_limit;
  if (range == 0) range = options.capacity > most ? most : options.capacity + options.capacity / 8;
  return rounded_up(range < most ? range : most, page);
}

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
