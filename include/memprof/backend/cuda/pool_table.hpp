#pragma once

#include <memprof/backend/cuda/driver_interface.hpp>
#include <memprof/backend/cuda/places.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/page_array.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// A memory pool that the program made or asked for, and whose memory it hands out.
struct known_pool {
  std::uint64_t handle;
  memory_kind kind;
  std::uint32_t device;
};

/// The kind and the device of memory with these properties; `device` if they name none.
[[nodiscard]] inline known_pool pool_of(std::uint64_t handle, const allocation_properties& described,
                                        std::uint32_t device) noexcept {
  constexpr int on_device = 1;
  const bool is_on_device = described.where.type == on_device;
  if (is_on_device && described.where.id >= 0) device = static_cast<std::uint32_t>(described.where.id);
  if (described.type == managed_type) return {handle, memory_kind::managed, device};
  return {handle, is_on_device ? memory_kind::device : memory_kind::pinned, device};
}

/// The pools that the program knows; few, so they are searched one by one.
class pool_table {
 public:
  void clear() noexcept {
    const lock_guard guard{lock_};
    pools_.clear();
  }
  /// Forgotten if the system has no memory: then its blocks count as the current device's.
  void add(const known_pool& made) noexcept {
    const lock_guard guard{lock_};
    (void)pools_.push_back(made);
  }
  /// The same, unless it is there.
  void add_unknown(const known_pool& found) noexcept {
    const lock_guard guard{lock_};
    for (const known_pool& pool : pools_) {
      if (pool.handle == found.handle) return;
    }
    (void)pools_.push_back(found);
  }
  /// Removes the pool into `removed`; false if it is unknown.
  [[nodiscard]] bool take(std::uint64_t handle, known_pool& removed) noexcept {
    const lock_guard guard{lock_};
    for (std::size_t index = pools_.size(); index-- != 0;) {
      if (pools_[index].handle != handle) continue;
      removed = pools_[index];
      pools_.erase(index);
      return true;
    }
    return false;
  }
  /// `otherwise` for a pool that is unknown, such as the device's own.
  [[nodiscard]] known_pool find(std::uint64_t handle, const known_pool& otherwise) noexcept {
    const lock_guard guard{lock_};
    for (std::size_t index = pools_.size(); index-- != 0;) {
      if (pools_[index].handle == handle) return pools_[index];
    }
    return otherwise;
  }
  /// Under the table's lock: no pool is destroyed meanwhile.
  template <class Visitor>
  void for_each(Visitor&& visit) noexcept {
    const lock_guard guard{lock_};
    for (const known_pool& pool : pools_) visit(pool);
  }

 private:
  futex_lock lock_;
  page_array<known_pool> pools_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
