#pragma once

#include <memprof/config.hpp>

#if MEMPROF_ENABLED
#include <memprof/record/phantom_addresses.hpp>
#include <memprof/record/registry.hpp>

#include <cstddef>
#endif

/// @file
/// NO_DISPATCH: a run that records every allocation with its true size and lifetime but allocates nothing, so that the peak of a
/// step is known before there is memory to hold it. `memory_resource` hands out reserved addresses, and the program skips the
/// work itself: `if (memprof::dispatching()) multiply(a, b, c);`

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
namespace detail {

/// An address that stands for `bytes` bytes without memory behind it; null if none are left.
[[nodiscard]] inline void* take_phantom(std::size_t bytes, std::size_t alignment) noexcept {
  // Acquire pairs with the release in `prepare_no_dispatch`.
  phantom_addresses* const reserved = abi_1::process_registry.phantom.load(std::memory_order_acquire);
  return reserved == nullptr ? nullptr : reserved->take(bytes, alignment);
}

/// Gives a reserved address back; false if `address` is not reserved and so belongs to the upstream. Blocks of a NO_DISPATCH
/// capture may be freed long after it ended.
[[nodiscard]] inline bool release_phantom(void* address, std::size_t bytes, std::size_t alignment) noexcept {
  phantom_addresses* const reserved = abi_1::process_registry.phantom.load(std::memory_order_acquire);
  if (reserved == nullptr || !reserved->contains(address)) [[likely]]
    return false;
  reserved->give_back(address, bytes, alignment);
  return true;
}

}  // namespace detail

inline namespace enabled {

/// Whether allocations are real, so that the program must do the work on them. False during a capture with
/// `run_mode::no_dispatch`, when touching a block of a `memory_resource` ends the program with a message. Costs one load.
[[nodiscard]] inline bool dispatching() noexcept {
  // Relaxed: the mode changes only in `begin_capture` and `end_capture`, which the program orders with its own work.
  return abi_1::process_registry.no_dispatch.load(std::memory_order_relaxed) == 0;
}

}  // namespace enabled
#else
inline namespace disabled {

[[nodiscard]] constexpr bool dispatching() noexcept { return true; }

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
