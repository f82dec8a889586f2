#pragma once

#include <memprof/backend/cuda/places.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/page_array.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// A memory pool. It holds what its blocks need and nothing more, so that what it has reserved is what is used.
struct simulated_pool {
  std::uint64_t handle;
  memory_kind kind;
  std::uint32_t device;
  bool is_own;  ///< the device's own
  std::uint64_t release_threshold;
  std::uint64_t used;  ///< with what was freed on streams that nothing has waited for
  std::uint64_t used_high;
  std::uint64_t reserved_high;
};

/// The pools, few, so they are searched one by one.
class simulated_pools {
 public:
  /// Null if the system has no memory.
  [[nodiscard]] simulated_pool* add(memory_kind kind, std::uint32_t device, bool is_own) noexcept {
    constexpr std::uint64_t first_handle = std::uint64_t{1} << 32;  // handles are in sequence, so that runs repeat
    constexpr std::uint64_t step = 256;
    const std::uint64_t handle = first_handle + step * ++made_;
    return pools_.push_back({handle, kind, device, is_own, 0, 0, 0, 0}) ? &pools_.back() : nullptr;
  }

  /// Null if it is unknown.
  [[nodiscard]] simulated_pool* find(std::uint64_t handle) noexcept {
    for (simulated_pool& pool : pools_) {
      if (pool.handle == handle) return &pool;
    }
    return nullptr;
  }

  /// The device's own, made when it is first asked for. Null if the system has no memory.
  [[nodiscard]] simulated_pool* own_of(std::uint32_t device) noexcept {
    for (simulated_pool& pool : pools_) {
      if (pool.is_own && pool.device == device) return &pool;
    }
    return add(memory_kind::device, device, true);
  }

  /// False if there is none of that handle, or it is a device's own.
  [[nodiscard]] bool remove(std::uint64_t handle) noexcept {
    simulated_pool* const found = find(handle);
    if (found == nullptr || found->is_own) return false;
    pools_.erase(static_cast<std::size_t>(found - pools_.data()));
    return true;
  }

  /// Its pool may be gone.
  void block_begins(std::uint64_t handle, std::uint64_t bytes) noexcept {
    simulated_pool* const pool = find(handle);
    if (pool == nullptr) return;
    pool->used += bytes;
    pool->used_high = std::max(pool->used_high, pool->used);
    pool->reserved_high = std::max(pool->reserved_high, pool->used);
  }
  void block_ends(std::uint64_t handle, std::uint64_t bytes) noexcept {
    if (simulated_pool* const pool = find(handle)) pool->used -= bytes;
  }

 private:
  page_array<simulated_pool> pools_;
  std::uint64_t made_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
