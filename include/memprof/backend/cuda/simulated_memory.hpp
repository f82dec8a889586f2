#pragma once

#include <memprof/backend/cuda/places.hpp>
#include <memprof/backend/cuda/runtime_interface.hpp>
#include <memprof/backend/cuda/simulated_blocks.hpp>
#include <memprof/backend/cuda/simulated_device.hpp>
#include <memprof/backend/cuda/simulated_pools.hpp>
#include <memprof/backend/cuda/tracker.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/phantom_blocks.hpp>
#include <memprof/trace/device_description.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

/// @file
/// The memory of devices that are not there: what the calls of CUDA's runtime allocate and free, in numbers and as events.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// Zeroed memory that the host can touch, of which each page exists once it is touched; null if the system refuses. Not from
/// `malloc`, whose blocks count in another space.
[[nodiscard]] inline void* map_host_block(std::uint64_t bytes) noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const made = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return made == MAP_FAILED ? nullptr : made;
}

/// Blocks of devices have addresses without memory (`phantom_addresses`), pinned and managed ones have memory of the host. What
/// is freed on a stream keeps its address, and its bytes of the device, until the host has waited for the stream, the stream
/// takes an equal block, or the device is full.
///
/// Every call may be made on any thread. They wait for each other.
class simulated_memory {
 public:
  /// A capture begins. What was allocated in an earlier one is still there.
  void begin(const device_description& described) noexcept {
    const lock_guard guard{lock_};
    device_count_ = 1;
    for (simulated_device& device : devices_) device = {.current_pool = device.current_pool};
    for (std::size_t index = 0; index < described.space_count; ++index) {
      const device_space& space = described.spaces[index];
      const std::uint32_t of = device_of(space.name.view());
      if (of >= spaces::max_devices) continue;
      devices_[of].capacity = static_cast<std::uint64_t>(std::max<std::int64_t>(space.capacity, 0));
      devices_[of].size_multiple = static_cast<std::uint64_t>(std::max<std::int64_t>(space.size_multiple, 1));
      device_count_ = std::max(device_count_, of + 1);
    }
    blocks_.for_each([&](const simulated_block& each) {
      if (each.kind == memory_kind::device) count(each.device, each.bytes);
    });
    for (const waiting_block& each : waiting_) count(each.device, each.bytes);
    tracker_.clear();
  }

  [[nodiscard]] std::uint32_t device_count() noexcept {
    const lock_guard guard{lock_};
    return device_count_;
  }
  [[nodiscard]] simulated_device device(std::uint32_t which) noexcept {
    const lock_guard guard{lock_};
    return devices_[which];
  }

  /// Of `wanted`, the kind, the device and the address are of no account. Its pool is the one that serves it, also if `at` does
  /// not name it; 0 for calls that are not of the stream-ordered allocator.
  [[nodiscard]] runtime_result allocate(const place& at, simulated_block wanted, void*& address) noexcept {
    const lock_guard guard{lock_};
    wanted.kind = at.kind;
    wanted.device = at.device;
    address = at.kind == memory_kind::device ? take_on_device(at, wanted) : map_host_block(wanted.bytes);
    wanted.address = reinterpret_cast<std::uintptr_t>(address);
    if (address != nullptr && !blocks_.put(wanted)) {
      return_memory(wanted);
      address = nullptr;
    }
    if (address == nullptr) {
      const std::uint64_t free = at.kind == memory_kind::device ? devices_[at.device].free() : unknown_device_free;
      event_sink{}.out_of_memory(spaces_.find(at.kind, at.device), wanted.bytes, free);
      return runtime_result::memory_allocation;
    }
    if (at.kind == memory_kind::device) count(at.device, wanted.bytes);
    if (wanted.pool != 0) pools_.block_begins(wanted.pool, wanted.bytes);
    tracker_.allocated(at, wanted.address, wanted.bytes);
    return runtime_result::done;
  }

  /// `at` says whether the call is ordered on a stream.
  [[nodiscard]] runtime_result free(const place& at, freeing_call call, std::uint64_t address) noexcept {
    const lock_guard guard{lock_};
    const simulated_block freed = blocks_.at(address);
    if (freed.address == 0 || freed.freed_by != call) return runtime_result::invalid_value;
    place of = at;
    of.kind = freed.kind;
    of.device = freed.device;
    const bool is_recorded = freed.bytes != 0;  // as `tracker::allocated` has it
    const ticket taken = is_recorded ? tracker_.free_begins(of, address) : 0;
    end(freed, of);
    if (is_recorded) tracker_.free_ends(of, address, taken, true);
    return runtime_result::done;
  }

  /// The block that an address lies in; one of address 0 if there is none.
  [[nodiscard]] simulated_block around(const void* address) noexcept {
    const lock_guard guard{lock_};
    return blocks_.around(reinterpret_cast<std::uintptr_t>(address));
  }

  /// The host has waited.
  void synchronize_stream(std::uint32_t device, std::uint64_t stream) noexcept {
    const lock_guard guard{lock_};
    end_waiting_where([&](const waiting_block& each) { return each.device == device && each.stream == stream; });
    tracker_.stream_synchronized(context_of(device), stream);
  }
  void synchronize_device(std::uint32_t device) noexcept {
    const lock_guard guard{lock_};
    wait_for_all_of(device);
  }

  /// Everything that was allocated while the device was current ends.
  void reset_device(std::uint32_t device) noexcept {
    const lock_guard guard{lock_};
    wait_for_all_of(device);
    page_array<simulated_block> ended;
    bool has_memory = true;
    blocks_.for_each([&](const simulated_block& each) {
      if (each.device == device) has_memory = ended.push_back(each) && has_memory;
    });
    if (!has_memory) event_sink{}.count_dropped_event();
    tracker_.context_ends(context_of(device));
    for (const simulated_block& each : ended) end(each, {});
  }

  /// Calls `work` with the pool of that handle, or the device's own (0: its current one), under the lock. False if there is none.
  template <class Work>
  [[nodiscard]] bool with_pool(std::uint64_t handle, Work&& work) noexcept {
    const lock_guard guard{lock_};
    simulated_pool* const pool = pools_.find(handle);
    if (pool != nullptr) work(*pool);
    return pool != nullptr;
  }
  template <class Work>
  [[nodiscard]] bool with_own_pool(std::uint32_t device, Work&& work) noexcept {
    const lock_guard guard{lock_};
    simulated_pool* const pool = pools_.own_of(device);
    if (pool != nullptr) work(*pool);
    return pool != nullptr;
  }
  /// 0 if the system has no memory.
  [[nodiscard]] std::uint64_t make_pool(memory_kind kind, std::uint32_t device) noexcept {
    const lock_guard guard{lock_};
    const simulated_pool* const made = pools_.add(kind, device, false);
    return made == nullptr ? 0 : made->handle;
  }
  [[nodiscard]] bool remove_pool(std::uint64_t handle) noexcept {
    const lock_guard guard{lock_};
    for (simulated_device& device : devices_) {
      if (device.current_pool == handle) device.current_pool = 0;
    }
    return pools_.remove(handle);
  }
  /// The one that `cudaMallocAsync` takes from.
  [[nodiscard]] std::uint64_t current_pool(std::uint32_t device) noexcept {
    const lock_guard guard{lock_};
    if (devices_[device].current_pool != 0) return devices_[device].current_pool;
    const simulated_pool* const own = pools_.own_of(device);
    return own == nullptr ? 0 : own->handle;
  }
  void set_current_pool(std::uint32_t device, std::uint64_t handle) noexcept {
    const lock_guard guard{lock_};
    devices_[device].current_pool = handle;
  }

  /// The number by which the tracker knows the context of a device.
  [[nodiscard]] static constexpr std::uint32_t context_of(std::uint32_t device) noexcept { return device + 1; }

 private:
  /// Freed on a stream.
  struct waiting_block {
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint64_t stream;
    std::uint64_t pool;
    std::uint32_t device;
  };

  /// Of each address, as device allocators have it; sizes are rounded up to it, so that addresses serve blocks of like size.
  static constexpr std::size_t alignment = 512;
  static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 46;  ///< of a block: there are no more addresses
  /// Beyond it, the oldest that waits is no longer kept for its stream.
  static constexpr std::size_t most_waiting = 4096;

  [[nodiscard]] static std::size_t room_for(std::uint64_t bytes) noexcept { return (bytes + alignment - 1) & ~(alignment - 1); }

  /// Null if the device is full.
  [[nodiscard]] void* take_on_device(const place& at, const simulated_block& wanted) noexcept {
    const simulated_device& device = devices_[at.device];
    if (wanted.bytes > most_bytes) return nullptr;
    const std::uint64_t taken = device.taken_by(wanted.bytes);
    if (void* const reused = reuse(at, wanted); reused != nullptr) return reused;
    if (device.capacity != 0 && taken > device.free()) wait_for_all_of(at.device);
    if (device.capacity != 0 && taken > device.free()) return nullptr;
    return take_phantom(room_for(wanted.bytes), alignment);
  }

  /// What the stream itself has freed is free on it at once. Null if there is no block of like size.
  [[nodiscard]] void* reuse(const place& at, const simulated_block& wanted) noexcept {
    if (!at.is_on_stream) return nullptr;
    for (std::size_t index = waiting_.size(); index-- != 0;) {
      const waiting_block each = waiting_[index];
      const bool is_like = room_for(each.bytes) == room_for(wanted.bytes) && each.pool == wanted.pool;
      if (!is_like || each.stream != at.stream || each.device != at.device) continue;
      waiting_.erase(index);
      stop_counting(each.device, each.pool, each.bytes);
      return reinterpret_cast<void*>(each.address);
    }
    return nullptr;
  }

  void count(std::uint32_t device, std::uint64_t bytes) noexcept { devices_[device].used += devices_[device].taken_by(bytes); }
  void stop_counting(std::uint32_t device, std::uint64_t pool, std::uint64_t bytes) noexcept {
    devices_[device].used -= devices_[device].taken_by(bytes);
    if (pool != 0) pools_.block_ends(pool, bytes);
  }

  static void return_memory(const simulated_block& ended) noexcept {
    auto* const address = reinterpret_cast<void*>(ended.address);
    if (ended.kind == memory_kind::device) return (void)release_phantom(address, room_for(ended.bytes), alignment);
    ::munmap(address, ended.bytes);
  }

  void end(const simulated_block& freed, const place& at) noexcept {
    blocks_.erase(freed.address);
    if (freed.kind != memory_kind::device) {
      if (freed.pool != 0) pools_.block_ends(freed.pool, freed.bytes);
      return return_memory(freed);
    }
    if (at.is_on_stream && freed.pool != 0) {
      if (waiting_.size() == most_waiting) end_waiting(0);
      if (waiting_.push_back({freed.address, freed.bytes, at.stream, freed.pool, freed.device})) return;
    }
    stop_counting(freed.device, freed.pool, freed.bytes);
    return_memory(freed);
  }

  void end_waiting(std::size_t index) noexcept {
    const waiting_block ended = waiting_[index];
    waiting_.erase(index);
    give_back(ended);
  }
  void give_back(const waiting_block& ended) noexcept {
    stop_counting(ended.device, ended.pool, ended.bytes);
    (void)release_phantom(reinterpret_cast<void*>(ended.address), room_for(ended.bytes), alignment);
  }
  template <class Condition>
  void end_waiting_where(Condition&& is_ended) noexcept {
    std::size_t kept = 0;
    for (std::size_t index = 0; index < waiting_.size(); ++index) {
      if (is_ended(waiting_[index])) {
        give_back(waiting_[index]);
      } else {
        waiting_[kept++] = waiting_[index];
      }
    }
    waiting_.truncate(kept);
  }
  void wait_for_all_of(std::uint32_t device) noexcept {
    end_waiting_where([&](const waiting_block& each) { return each.device == device; });
    tracker_.context_synchronized(context_of(device));
  }

  futex_lock lock_;
  std::array<simulated_device, spaces::max_devices> devices_{};
  std::uint32_t device_count_ = 1;
  simulated_blocks blocks_;
  simulated_pools pools_;
  page_array<waiting_block> waiting_;
  spaces spaces_;  ///< under the lock
  tracker tracker_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
