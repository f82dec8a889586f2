#pragma once

#include <memprof/config.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

/// A value that goes up and down, the greatest it has been, and the sums of what was added and taken away.
struct allocator_stat {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;
  std::int64_t freed = 0;

  constexpr void increase(std::int64_t amount) noexcept {
    current += amount;
    allocated += amount;
    if (current > peak) peak = current;
  }
  constexpr void decrease(std::int64_t amount) noexcept {
    current -= amount;
    freed += amount;
  }
  /// Takes what was added and taken away out of the sums.
  constexpr void withdraw(std::int64_t amount) noexcept {
    allocated -= amount;
    freed -= amount;
  }
  constexpr void reset_peak() noexcept { peak = current; }
  constexpr void reset_accumulated() noexcept { allocated = freed = 0; }

  bool operator==(const allocator_stat&) const = default;
};

/// The statistics of `torch.cuda.memory_stats()` and `getDeviceStats` for a device, under their names. Bytes and numbers of
/// calls.
struct caching_allocator_stats {
  allocator_stat allocation;            ///< blocks for requests
  allocator_stat segment;               ///< segments; expandable ones do not count
  allocator_stat requested_bytes;       ///< as requested
  allocator_stat allocated_bytes;       ///< the blocks for them, including rounding and blocks that are not split
  allocator_stat active_bytes;          ///< the same plus freed blocks that another stream may still use
  allocator_stat reserved_bytes;        ///< taken from the device
  allocator_stat inactive_split_bytes;  ///< free but not returnable: part of a segment in use (except expandable ones)
  std::int64_t num_device_alloc = 0;    ///< segments or runs of pages taken from the device
  std::int64_t num_device_free = 0;     ///< segments or runs of pages returned
  std::int64_t num_alloc_retries = 0;   ///< how often all cached blocks were returned because the device was full
  std::int64_t num_ooms = 0;            ///< requests that failed

  constexpr void reset_peaks() noexcept {
    for_each_stat([](allocator_stat& stat) { stat.reset_peak(); });
  }
  constexpr void reset_accumulated() noexcept {
    for_each_stat([](allocator_stat& stat) { stat.reset_accumulated(); });
    num_alloc_retries = num_ooms = 0;
  }

  bool operator==(const caching_allocator_stats&) const = default;

 private:
  template <class Visit>
  constexpr void for_each_stat(Visit visit) noexcept {
    for (allocator_stat* const stat :
         {&allocation, &segment, &requested_bytes, &allocated_bytes, &active_bytes, &reserved_bytes, &inactive_split_bytes}) {
      visit(*stat);
    }
  }
};

}  // namespace memprof::inline MEMPROF_ABI
