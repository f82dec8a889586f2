#pragma once

#include <memprof/config.hpp>
#include <memprof/record/phantom_addresses.hpp>
#include <memprof/record/registry.hpp>

#include <atomic>
#include <cstddef>

/// @file
/// Blocks of a NO_DISPATCH capture: addresses that the process reserved, without memory behind them.

namespace memprof::inline MEMPROF_ABI::detail {

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

}  // namespace memprof::inline MEMPROF_ABI::detail
