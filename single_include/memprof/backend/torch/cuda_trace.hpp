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
      spaces_[device] = {memory_space{name}.id(), memory_space{name + " active"}.id(), true};
    }
  }

  /// Records one entry of the allocator's trace. Called under the lock of its device, on the thread that allocates: it must call
  /// nothing of PyTorch.
  template <class Entry>
  void record(const Entry& entry) const noexcept {
    const auto device = static_cast<std::size_t>(entry.device_);
    if (device >= max_devices || !spaces_[device].is_named) return;
    const device_spaces& spaces = spaces_[device];
    const auto address = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(entry.addr_));
    const auto bytes = static_cast<std::size_t>(entry.size_);
    switch (entry.action_) {
      case Entry::ALLOC: record_block(spaces, address, bytes); break;
      case Entry::FREE_REQUESTED:
        forget_undecided(this_torch_thread, address);
        record_deallocation(spaces.allocated, address, bytes);
        break;
      case Entry::FREE_COMPLETED: record_deallocation(spaces.active, address, bytes); break;
      case Entry::SEGMENT_ALLOC:
      case Entry::SEGMENT_MAP: record_reserved(event_kind::reserve, spaces.allocated, address, bytes); break;
      case Entry::SEGMENT_FREE:
      case Entry::SEGMENT_UNMAP: record_reserved(event_kind::release, spaces.allocated, address, bytes); break;
      default: break;
    }
  }

 private:
  struct device_spaces {
    std::uint8_t allocated;
    std::uint8_t active;
    bool is_named;
  };

  static void record_block(const device_spaces& spaces, const void* address, std::size_t bytes) noexcept {
    record_allocation(spaces.allocated, address, bytes, category_in_graph(this_torch_thread, address).tag());
    record_allocation(spaces.active, address, bytes);
  }

  static void record_reserved(event_kind kind, std::uint8_t space, const void* address, std::size_t bytes) noexcept {
    record_event({0, reinterpret_cast<std::uintptr_t>(address), bytes, 0, kind, space, 0});
  }

  std::array<device_spaces, max_devices> spaces_{};
};

}  // namespace memprof::detail
