#pragma once

#include <memprof/detail/futex_lock.hpp>
#include <memprof/record/recorder.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <unordered_map>

namespace memprof::inline MEMPROF_ABI::detail {

/// Sizes of live blocks by address. Thread-safe. Used only while PyTorch's operators are counted: the ledger knows sizes, too,
/// but too late for the operator that frees.
class block_sizes {
 public:
  /// A later size replaces an earlier one. If memory runs out, the size stays unknown, here and below.
  void insert(const void* address, std::size_t bytes) noexcept { insert_into(shard_of(address), address, bytes, true); }
  void insert_if_new(const void* address, std::size_t bytes) noexcept { insert_into(shard_of(address), address, bytes, false); }

  /// Forgets the block and returns its size; 0 if it is unknown.
  [[nodiscard]] std::size_t take(const void* address) noexcept {
    const recording_suppressor hidden;
    shard& home = shard_of(address);
    const lock_guard lock{home.lock};
    const auto found = home.sizes.find(address);
    if (found == home.sizes.end()) return 0;
    const std::size_t bytes = found->second;
    home.sizes.erase(found);
    return bytes;
  }

  void clear() {
    const recording_suppressor hidden;
    for (shard& each : shards_) {
      const lock_guard lock{each.lock};
      each.sizes.clear();
    }
  }

 private:
  struct alignas(64) shard {
    futex_lock lock;
    std::unordered_map<const void*, std::size_t> sizes;
  };

  static void insert_into(shard& home, const void* address, std::size_t bytes, bool replaces) noexcept {
    const recording_suppressor hidden;
    const lock_guard lock{home.lock};
    const auto known = home.sizes.find(address);
    if (known != home.sizes.end()) {
      if (replaces) known->second = bytes;
      return;
    }
    try {
      home.sizes.emplace(address, bytes);
    } catch (const std::bad_alloc&) {
      return;
    }
  }

  /// Blocks of tensors begin at multiples of 64.
  [[nodiscard]] shard& shard_of(const void* address) noexcept {
    return shards_[(reinterpret_cast<std::uintptr_t>(address) / 64) % shards_.size()];
  }

  std::array<shard, 16> shards_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
