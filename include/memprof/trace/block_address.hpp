#pragma once

#include <memprof/config.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

/// The start of a block: in this process, in another one, or in a device's memory.
struct block_address {
  std::uint64_t value;

  constexpr block_address(std::uint64_t address) noexcept : value(address) {}                        // implicit
  block_address(const void* address) noexcept : value(reinterpret_cast<std::uintptr_t>(address)) {}  // implicit
  bool operator==(const block_address&) const = default;
};

}  // namespace memprof::inline MEMPROF_ABI
