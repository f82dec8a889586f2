#pragma once

#include <memprof/profile/build.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// @file
/// Does it fit, and if not, which operation fails: replays the steps of a capture through the model of the caching allocator.

namespace memprof::inline MEMPROF_ABI {

/// The request that the allocator could not serve, and its state at that moment, after it had returned what it could to the
/// device. In bytes.
struct failed_allocation {
  std::uint64_t event = 0;          ///< index of the request among all events, from 0
  std::uint32_t operation = 0;      ///< that made the request: a node of `allocation_sequence::operations`
  std::int64_t requested = 0;       ///< the size of the request
  std::int64_t allowed = 0;         ///< the most that may be reserved
  std::int64_t reserved = 0;        ///< the bytes that are reserved
  std::int64_t allocated = 0;       ///< blocks in use, including rounding
  std::int64_t largest_cached = 0;  ///< largest free block in the pool of the request's size class

  /// What could still have been reserved. An expandable segment may have taken more of the device than allowed: PyTorch compares
  /// with what a segment of a fixed size would take.
  [[nodiscard]] std::int64_t free() const noexcept { return std::max(allowed - reserved, std::int64_t{0}); }
  /// Reserved bytes in no block in use: the pieces are too small, or not available to such a request.
  [[nodiscard]] std::int64_t fragmented() const noexcept { return reserved - allocated; }

  bool operator==(const failed_allocation&) const = default;
};

/// Whether a sequence fits, and what it needs.
struct memory_fit {
  std::int64_t capacity = 0;                       ///< the limit in bytes; 0: none
  std::optional<failed_allocation> first_failure;  ///< the program would end here unless it catches the error
  caching_allocator_stats stats;                   ///< of the steps before `first_failure`, or of all if there is none
  caching_allocator_stats unlimited_stats;         ///< as if the device had no limit: the full need

  [[nodiscard]] bool fits() const noexcept { return !first_failure; }
};

namespace detail {

/// Replays steps until one fails. Returns its index, or the number of steps.
[[nodiscard]] inline std::size_t replay(const allocation_sequence& sequence, caching_allocator& allocator) {
  std::vector<const cached_block*> blocks(sequence.block_count());
  const std::vector<allocation_step>& steps = sequence.steps();
  for (std::size_t index = 0; index < steps.size(); ++index) {
    const cached_block*& block = blocks[steps[index].block];
    if (steps[index].bytes == 0) {
      allocator.deallocate(block);
      continue;
    }
    block = allocator.allocate(steps[index].bytes);
    if (block == nullptr) return index;
  }
  return steps.size();
}

[[nodiscard]] inline caching_allocator_options with_capacity(caching_allocator_options options, std::int64_t capacity) noexcept {
  options.capacity = capacity;
  return options;
}

[[nodiscard]] inline bool fits_into(const allocation_sequence& sequence, const caching_allocator_options& options) {
  caching_allocator allocator{options};
  return replay(sequence, allocator) == sequence.steps().size();
}

[[nodiscard]] inline std::int64_t largest_cached_block(const caching_allocator& allocator, bool is_small) {
  std::int64_t largest = 0;
  allocator.for_each_block([&](const cached_block& block) {
    const bool is_candidate = block.is_mapped && !block.is_active() && block.pool->is_small() == is_small;
    if (is_candidate && block.bytes > largest) largest = block.bytes;
  });
  return largest;
}

}  // namespace detail

/// Describes the failure of the allocator's last request, of that many bytes; for online use. `event` and `operation` are left to
/// the caller. Visits all blocks.
[[nodiscard]] inline failed_allocation failure_of(const caching_allocator& allocator, std::uint64_t bytes) {
  failed_allocation failure;
  failure.requested = static_cast<std::int64_t>(bytes < detail::largest_request ? bytes : detail::largest_request);
  failure.allowed = allocator.options().allowed();
  failure.reserved = allocator.stats().reserved_bytes.current;
  failure.allocated = allocator.stats().allocated_bytes.current;
  const bool is_small = detail::block_size(allocator.options(), failure.requested) <= detail::largest_small_block;
  failure.largest_cached = detail::largest_cached_block(allocator, is_small);
  return failure;
}

/// The path of an operation of the sequence, as in a profile; empty for 0. Visits all operations.
[[nodiscard]] inline std::string operation_path(const allocation_sequence& sequence, std::uint32_t operation) {
  return operation == 0 ? std::string{} : detail::operation_paths(sequence.operations(), sequence.names())[operation];
}

/// Whether the steps fit into `options.capacity`, all on one stream. Costs one replay, or two unless the limit certainly made no
/// difference. Raises an error if the options are invalid.
[[nodiscard]] inline memory_fit fit_memory(const allocation_sequence& sequence, const caching_allocator_options& options) {
  memory_fit result;
  caching_allocator allocator{options};
  const std::size_t done = detail::replay(sequence, allocator);
  result.stats = result.unlimited_stats = allocator.stats();
  result.capacity = options.capacity;
  if (done != sequence.steps().size()) {
    const allocation_step& failed = sequence.steps()[done];
    result.first_failure = failure_of(allocator, failed.bytes);
    result.first_failure->event = failed.event;
    result.first_failure->operation = failed.operation;
  }
  // Unless memory was returned early, the limit made no difference; but it also sets the length of expandable segments, which
  // affects the choice of blocks.
  const bool depends_on_limit = options.expandable_segments && options.capacity != 0;
  if (result.fits() && result.stats.num_device_free == 0 && !depends_on_limit) return result;
  caching_allocator unlimited{detail::with_capacity(options, 0)};
  (void)detail::replay(sequence, unlimited);
  result.unlimited_stats = unlimited.stats();
  return result;
}

/// A capacity, found by bisection, into which the steps fit while they do not fit into 2 MiB less: a multiple of 2 MiB. Nothing
/// if no capacity suffices, 0 if there are no steps. `options.capacity` is ignored. Costs up to about twenty replays.
///
/// With a caching allocator, more memory is not always better: which blocks are returned, and so how the rest is divided, depends
/// on when the device is first full. Some smaller capacities may suffice, and some larger ones may not.
[[nodiscard]] inline std::optional<std::int64_t> smallest_capacity(const allocation_sequence& sequence,
                                                                   const caching_allocator_options& options) {
  if (sequence.steps().empty()) return 0;
  constexpr std::int64_t step = detail::small_segment_size;  // segments and pages are multiples of it, barring odd options
  constexpr std::int64_t most = (std::int64_t{1} << 61) / step;
  const memory_fit needed = fit_memory(sequence, detail::with_capacity(options, 0));
  if (!needed.fits()) return std::nullopt;
  const auto fits_steps = [&](std::int64_t count) {
    return detail::fits_into(sequence, detail::with_capacity(options, count * step));
  };
  // Less than the peak of requested bytes cannot suffice; the bytes reserved without a limit usually do.
  std::int64_t too_few = (needed.stats.requested_bytes.peak - 1) / step;
  std::int64_t enough = detail::rounded_up(needed.stats.reserved_bytes.peak, step) / step;
  while (!fits_steps(enough)) {
    if (enough > most / 2) return std::nullopt;
    too_few = enough;
    enough *= 2;
  }
  while (enough - too_few > 1) {
    const std::int64_t middle = too_few + (enough - too_few) / 2;
    (fits_steps(middle) ? enough : too_few) = middle;
  }
  return enough * step;
}

}  // namespace memprof::inline MEMPROF_ABI
