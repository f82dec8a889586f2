#pragma once

#include <memprof/backend/torch/capture/cuda_streams.hpp>
#include <memprof/config.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/memory_space.hpp>
#include <memprof/record/stream_and_pool.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// The functions of a model of the fake device's allocator. Plain data, so that a library that was compiled otherwise can supply
/// it. They may be called from any thread, and must not throw.
struct device_allocator {
  void* self;  ///< passed to each function
  /// Whether there is room for a block of that size; if not, `message` (of `room` bytes, ending in a 0) says so as the allocator
  /// would, and `free_bytes` what the device has left. `is_backward`: for a backward pass, which a thread of its own makes on a
  /// device.
  bool (*has_room)(void* self, std::int64_t bytes, bool is_backward, char* message, std::size_t room, std::int64_t* free_bytes);
  /// Blocks are known by address. Both return the label of the block's stream and pool, or 0.
  label (*allocate)(void* self, const void* address, std::int64_t bytes, bool is_backward);
  label (*deallocate)(void* self, const void* address);
  /// The calling thread's stream; 0 is the default one.
  std::uint64_t (*stream)(void* self);
  /// Whether the thread may wait for that stream. Not if it is captured for a CUDA graph, and then the capture has failed.
  bool (*try_to_wait)(void* self);
  /// The thread's stream has work to do.
  void (*add_work)(void* self);
};

/// The name of a block's stream and pool; none for the default stream and the shared pool.
template <class Place>
[[nodiscard]] stream_and_pool name_of_place(const Place& place) noexcept {
  if (place.stream == 0 && place.pool == 0) return {};
  return name_cuda_stream(place.stream, {place.handle.first, place.handle.second, true});
}

/// Those of a `simulated_caching_allocator`, or a class like it; what it reserves is recorded in the space "cuda:0".
template <class Model>
[[nodiscard]] device_allocator recorded_device(Model& model) {
  model.observe([space = memory_space{"cuda:0"}](auto action, std::uint64_t address, std::int64_t bytes, const auto& place,
                                                 bool was_asked) {
    const stream_and_pool where = name_of_place(place);
    if (action == decltype(action)::reserve)
      event_sink{}.reserve(space, block_address{address}, static_cast<std::size_t>(bytes), where);
    else
      event_sink{}.release(space, block_address{address}, static_cast<std::size_t>(bytes), where, was_asked);
  });
  return {&model,
          [](void* self, std::int64_t bytes, bool is_backward, char* message, std::size_t room, std::int64_t* free_bytes) {
            return static_cast<Model*>(self)->has_room(bytes, message, room, *free_bytes, is_backward);
          },
          [](void* self, const void* address, std::int64_t bytes, bool is_backward) {
            return name_of_place(static_cast<Model*>(self)->allocate(address, bytes, is_backward)).name();
          },
          [](void* self, const void* address) { return name_of_place(static_cast<Model*>(self)->deallocate(address)).name(); },
          [](void* self) { return static_cast<Model*>(self)->stream(); },
          [](void* self) { return static_cast<Model*>(self)->try_to_wait(); },
          [](void* self) { static_cast<Model*>(self)->add_work(); }};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
