#pragma once

#include <memprof/backend/live_bytes_listener.hpp>
#include <memprof/backend/torch/capture/cuda_streams.hpp>
#include <memprof/backend/torch/capture/operator_memory.hpp>
#include <memprof/backend/torch/capture/tensor_events.hpp>
#include <memprof/backend/torch/capture/torch_thread.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/memory_space.hpp>
#include <memprof/record/stream_and_pool.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// @file
/// Translates the trace of PyTorch's caching allocator into events. Needs no CUDA headers: the entry type is a template
/// parameter.

namespace memprof::inline MEMPROF_ABI::detail {

/// The spaces of CUDA devices, "cuda:0" and so on. A block is live until its tensor dies, as in `allocated_bytes` of PyTorch's
/// statistics, and active until no stream uses it any more, as in `active_bytes`. Bytes are as requested, as in
/// `requested_bytes`.
class cuda_trace {
 public:
  static constexpr std::size_t max_devices = 64;

  /// Creates the spaces. Throws `memprof::error` if the process has too many.
  void name_devices(std::size_t count) {
    for (std::size_t device = 0; device < count && device < max_devices; ++device) {
      if (devices_[device].has_value()) continue;
      const std::string name = "cuda:" + std::to_string(device);
      devices_[device].emplace(named_device{memory_space{name}, {}});
    }
  }

  /// Records what the allocator has already reserved, from its `SnapshotInfo::segments`. `Entry` is the type of its trace
  /// entries.
  template <class Entry, class Segments>
  void record_reserved(const Segments& segments) noexcept {
    for (const auto& segment : segments) {
      const named_device* const device = device_of(segment.device);
      if (device == nullptr) continue;
      const stream_and_pool where = name_cuda_stream(number_of(segment.stream), pool_of_segment<Entry>(segment));
      event_sink{}.reserve(device->space, address_of(segment.address), static_cast<std::size_t>(segment.total_size), where);
      tell_live_bytes(device->space, static_cast<std::int64_t>(requested_in(segment)));
    }
  }

  /// Records one entry of the allocator's trace. Called under the lock of its device, on the allocating thread: must not call
  /// anything in PyTorch that takes a lock or allocates.
  template <class Entry>
  void record(const Entry& entry) noexcept {
    named_device* const device = device_of(entry.device_);
    if (device == nullptr) return;
    const void* const address = address_of(entry.addr_);
    const auto bytes = static_cast<std::size_t>(entry.size_);
    switch (entry.action_) {
      case Entry::ALLOC: record_block(*device, address, bytes, where_of(*device, entry)); break;
      case Entry::FREE_REQUESTED: record_end_of_block(*device, address, bytes, where_of(*device, entry)); break;
      case Entry::FREE_COMPLETED: event_sink{}.complete_deallocation(device->space, address, bytes); break;
      case Entry::SEGMENT_ALLOC:
      case Entry::SEGMENT_MAP: event_sink{}.reserve(device->space, address, bytes, where_of(*device, entry)); break;
      case Entry::SEGMENT_FREE:
      case Entry::SEGMENT_UNMAP: event_sink{}.release(device->space, address, bytes, where_of(*device, entry)); break;
      case Entry::OOM: event_sink{}.out_of_memory(device->space, bytes, number_of(entry.addr_)); break;
      default: break;
    }
  }

 private:
  /// What the program has in a segment; 0 where the version of PyTorch does not say.
  template <class Segment>
  [[nodiscard]] static std::size_t requested_in(const Segment& segment) noexcept {
    if constexpr (requires { segment.requested_size; })
      return static_cast<std::size_t>(segment.requested_size);
    else
      return 0;
  }

  struct named_device {
    memory_space space;
    cuda_stream_names streams;
  };

  /// Null for a device without a name.
  [[nodiscard]] named_device* device_of(std::int64_t number) noexcept {
    if (number < 0 || number >= std::int64_t{max_devices}) return nullptr;
    std::optional<named_device>& named = devices_[static_cast<std::size_t>(number)];
    return named.has_value() ? &*named : nullptr;
  }

  /// Addresses and streams are numbers or pointers, depending on the version.
  template <class Number>
  [[nodiscard]] static std::uintptr_t number_of(Number number) noexcept {
    return static_cast<std::uintptr_t>(number);
  }
  template <class Object>
  [[nodiscard]] static std::uintptr_t number_of(Object* object) noexcept {
    return reinterpret_cast<std::uintptr_t>(object);
  }
  template <class Number>
  [[nodiscard]] static const void* address_of(Number number) noexcept {
    return reinterpret_cast<const void*>(number_of(number));
  }

  template <class Entry>
  [[nodiscard]] static stream_and_pool where_of(named_device& device, const Entry& entry) noexcept {
    return device.streams.find(number_of(entry.stream_), pool_of_entry(entry));
  }

  static void record_block(const named_device& device, const void* address, std::size_t bytes, stream_and_pool where) noexcept {
    torch_thread* const self = this_torch_thread();
    const optional_category category = self == nullptr ? optional_category{} : category_in_graph(*self, address);
    event_sink{}.allocate_on_stream(device.space, address, bytes, where, category);
    tell_live_bytes(device.space, static_cast<std::int64_t>(bytes));
    if (self == nullptr) return;
    remember_new_block(*self, address);
    count_on_device(*self, static_cast<std::int64_t>(bytes));
  }

  static void record_end_of_block(const named_device& device, const void* address, std::size_t bytes,
                                  stream_and_pool where) noexcept {
    torch_thread* const self = this_torch_thread();
    if (self != nullptr) {
      forget_undecided(*self, address);
      forget_new_block(*self, address);
    }
    event_sink{}.request_deallocation(device.space, address, where, bytes);
    tell_live_bytes(device.space, -static_cast<std::int64_t>(bytes));
    if (self != nullptr) count_on_device(*self, -static_cast<std::int64_t>(bytes));
  }

  std::array<std::optional<named_device>, max_devices> devices_{};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
