#pragma once

#include <memprof/config.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/memory_space.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// The functions of a model of the fake device's allocator. Plain data, so that a library that was compiled otherwise can supply
/// it. They may be called from any thread, and must not throw.
struct device_allocator {
  void* self;  ///< passed to each function
  /// Whether there is room for a block of that size; if not, `message` (of `room` bytes, ending in a 0) says so as the allocator
  /// would, and `free_bytes` what the device has left.
  bool (*has_room)(void* self, std::int64_t bytes, char* message, std::size_t room, std::int64_t* free_bytes);
  /// Blocks are known by address.
  void (*allocate)(void* self, const void* address, std::int64_t bytes);
  void (*deallocate)(void* self, const void* address);
};

/// Those of a `simulated_caching_allocator`, or a class like it; what it reserves is recorded in the space "cuda:0".
template <class Model>
[[nodiscard]] device_allocator recorded_device(Model& model) {
  model.observe([space = memory_space{"cuda:0"}](auto action, std::uint64_t address, std::int64_t bytes) {
    if (action == decltype(action)::reserve)
      event_sink{}.reserve(space, block_address{address}, static_cast<std::size_t>(bytes));
    else
      event_sink{}.release(space, block_address{address}, static_cast<std::size_t>(bytes));
  });
  return {&model,
          [](void* self, std::int64_t bytes, char* message, std::size_t room, std::int64_t* free_bytes) {
            return static_cast<Model*>(self)->has_room(bytes, message, room, *free_bytes);
          },
          [](void* self, const void* address, std::int64_t bytes) { static_cast<Model*>(self)->allocate(address, bytes); },
          [](void* self, const void* address) { static_cast<Model*>(self)->deallocate(address); }};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
