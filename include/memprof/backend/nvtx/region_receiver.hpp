#pragma once

#include <memprof/config.hpp>

#include <atomic>
#include <cstdint>
#include <string>

namespace memprof::inline MEMPROF_ABI::detail::nvtx {

/// Of a backend that knows the blocks in which a program registers regions. All may be called on any thread. Names live as long
/// as the process; null: none.
struct region_receiver {
  /// `rest` is the name of what is left of the block.
  void (*begin)(std::uint64_t address, std::uint64_t bytes, const std::string* rest) noexcept;
  void (*resize)(std::uint64_t address, std::uint64_t bytes) noexcept;
  void (*name)(std::uint64_t address, const std::string* name) noexcept;
  void (*end)(std::uint64_t address) noexcept;
  /// All regions that begin in [address, address + bytes).
  void (*end_all)(std::uint64_t address, std::uint64_t bytes) noexcept;
};

/// Null: nobody records regions.
inline constinit std::atomic<const region_receiver*> process_region_receiver{nullptr};

}  // namespace memprof::inline MEMPROF_ABI::detail::nvtx
