#pragma once

#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>
#include <memprof/toolkit/analysis/fragmentation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// @file
/// Does it fit, and if not, which operation fails: replays the steps of a capture through the model of the caching allocator.

namespace memprof::inline MEMPROF_ABI {

/// The request that the allocator could not serve, and its state at that moment, after it had returned what it could to the
/// device. In bytes.
struct failed_allocation {
  std::uint64_t event = 0;          ///< index of the request among all events, from 0
  std::uint32_t operation = 0;      ///< that made the request: a node of `allocation_sequence::operations`
  std::int64_t requested = 0;       ///< the size of the request
  std::int64_t allowed = 0;         ///< the most that may be reserved: of the device, without what others hold
  std::int64_t reserved = 0;        ///< the bytes that are reserved
  std::int64_t allocated = 0;       ///< blocks in use, including rounding
  std::int64_t largest_cached = 0;  ///< largest free block in the pool of the request's size class
  fragmentation parts{};            ///< why so much is reserved

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

/// Describes the failure of the allocator's last request, of that many bytes; for online use. `event` and `operation` are left to
/// the caller. Visits all blocks.
[[nodiscard]] failed_allocation failure_of(const caching_allocator& allocator, std::uint64_t bytes, std::uint64_t stream = 0,
                                           std::size_t pool = 0);

/// The path of an operation of the sequence, as in a profile; empty for 0. Visits all operations.
[[nodiscard]] std::string operation_path(const allocation_sequence& sequence, std::uint32_t operation);

/// Whether the steps fit into `options.capacity`, each on its stream and in its pool. Costs one replay, or two unless the limit
/// certainly made no difference. Raises an error if the options are invalid.
[[nodiscard]] memory_fit fit_memory(const allocation_sequence& sequence, const caching_allocator_options& options);

/// What private pools hold free, as those of CUDA graphs do, when most is reserved of a device without a limit. Costs nothing if
/// no step is in one, else two replays.
[[nodiscard]] std::int64_t unused_in_private_pools(const allocation_sequence& sequence, const caching_allocator_options& options);

/// Why so much is reserved at its peak, after the step that it was raised for last. Costs two replays. Raises an error if the
/// options are invalid.
[[nodiscard]] fragmentation fragmentation_at_peak(const allocation_sequence& sequence, const caching_allocator_options& options);

/// A capacity, found by bisection, into which the steps fit while they do not fit into 2 MiB less: a multiple of 2 MiB. Nothing
/// if no capacity suffices, 0 if there are no steps. `options.capacity` is ignored; `options.context` is a part of the result.
/// Costs up to about twenty replays.
///
/// With a caching allocator, more memory is not always better: which blocks are returned, and so how the rest is divided, depends
/// on when the device is first full. Some smaller capacities may suffice, and some larger ones may not.
[[nodiscard]] std::optional<std::int64_t> smallest_capacity(const allocation_sequence& sequence,
                                                            const caching_allocator_options& options);

}  // namespace memprof::inline MEMPROF_ABI
