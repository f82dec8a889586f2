#pragma once

#include <memprof/memprof.hpp>

#include <memprof/backend/torch/tensor_events.hpp>
#include <memprof/backend/torch/torch_thread.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// @file
/// What PyTorch's caching allocator tells of itself, as events. Needs no CUDA: the entries are a template's.

namespace memprof::detail {

/// The spaces of CUDA devices: "cuda:0" has a block until its tensor dies, as `allocated_bytes` of PyTorch's statistics, and
/// "cuda:0 active" until no stream uses it any more, as `active_bytes`. Bytes are those that were asked for, as
/// `requested_bytes`.
class cuda_trace {
 public:
  static constexpr std::size_t max_devices = 64;

  /// Makes the spaces. Throws `memprof::error` if the process has too many.
  void name_devices(std::size_t count) {
    for (std::size_t device = 0; device < count && device < max_devices; ++device) {
      const std::string name = "cuda:" + std::to_string(device);
      spaces_[device] = device_spaces{memory_space{name}, memory_space{name + " active"}};
    }
  }

  /// Records what the allocator has reserved already, from its `SnapshotInfo::segments`.
  template <class Segments>
  void record_reserved(const Segments& segments) const noexcept {
    for (const auto& segment : segments) {
      const device_spaces* const spaces = spaces_of(segment.device);
      if (spaces == nullptr) continue;
      event_sink{}.reserve(spaces->allocated, address_of(segment.address), static_cast<std::size_t>(segment.total_size));
    }
  }

  /// Records one entry of the allocator's trace. Called under the lock of its device, on the thread that allocates: it must call
  /// nothing of PyTorch that takes a lock or allocates.
  template <class Entry>
  void record(const Entry& entry) const noexcept {
    const device_spaces* const spaces = spaces_of(entry.device_);
    if (spaces == nullptr) return;
    const void* const address = address_of(entry.addr_);
    const auto bytes = static_cast<std::size_t>(entry.size_);
    switch (entry.action_) {
      case Entry::ALLOC: record_block(*spaces, address, bytes); break;
      case Entry::FREE_REQUESTED:
        forget_undecided(this_torch_thread, address);
        record_deallocation(spaces->allocated.id(), address, bytes);
        break;
      case Entry::FREE_COMPLETED: record_deallocation(spaces->active.id(), address, bytes); break;
      case Entry::SEGMENT_ALLOC:
      case Entry::SEGMENT_MAP: event_sink{}.reserve(spaces->allocated, address, bytes); break;
      case Entry::SEGMENT_FREE:
      case Entry::SEGMENT_UNMAP: event_sink{}.release(spaces->allocated, address, bytes); break;
      default: break;
    }
  }

 private:
  struct device_spaces {
    memory_space allocated;
    memory_space active;
  };

  /// Null for a device that has no name.
  [[nodiscard]] const device_spaces* spaces_of(std::int64_t device) const noexcept {
    if (device < 0 || device >= std::int64_t{max_devices}) return nullptr;
    const std::optional<device_spaces>& named = spaces_[static_cast<std::size_t>(device)];
    return named.has_value() ? &*named : nullptr;
  }

  template <class Number>
  [[nodiscard]] static const void* address_of(Number address) noexcept {
    return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address));
  }

  static void record_block(const device_spaces& spaces, const void* address, std::size_t bytes) noexcept {
    record_allocation(spaces.allocated.id(), address, bytes, category_in_graph(this_torch_thread, address).tag());
    record_allocation(spaces.active.id(), address, bytes);
  }

  std::array<std::optional<device_spaces>, max_devices> spaces_{};
};

}  // namespace memprof::detail
