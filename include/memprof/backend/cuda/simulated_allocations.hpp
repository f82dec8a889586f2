#pragma once

#include <memprof/backend/cuda/array_bytes.hpp>
#include <memprof/backend/cuda/driver_interface.hpp>
#include <memprof/backend/cuda/places.hpp>
#include <memprof/backend/cuda/pool_table.hpp>
#include <memprof/backend/cuda/runtime_interface.hpp>
#include <memprof/backend/cuda/simulated_memory.hpp>
#include <memprof/backend/cuda/simulated_runtime.hpp>
#include <memprof/backend/cuda/simulated_streams.hpp>
#include <memprof/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

/// @file
/// The calls of CUDA's runtime that allocate and free, without a device. Bytes are those that `cuda_backend` records.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// Or the greatest value there is, which no device has room for.
[[nodiscard]] constexpr std::size_t product(std::size_t left, std::size_t right) noexcept {
  std::size_t result = 0;
  return __builtin_mul_overflow(left, right, &result) ? std::numeric_limits<std::size_t>::max() : result;
}

[[nodiscard]] inline place place_on(memory_kind kind, std::uint32_t device) noexcept {
  return {kind, device, simulated_memory::context_of(device), false, 0, 0};
}

[[nodiscard]] inline runtime_result allocate_here(simulated_runtime& runtime, memory_kind kind, const simulated_block& wanted,
                                                  void** address) noexcept {
  return runtime.memory.allocate(place_on(kind, current_device(runtime)), wanted, *address);
}

/// A block without an address if it has no bytes, as from CUDA.
[[nodiscard]] inline int allocate(memory_kind kind, void** address, std::size_t bytes, freeing_call freed_by) noexcept {
  return called([&](simulated_runtime& runtime) {
    if (address == nullptr || (bytes == 0 && kind == memory_kind::managed)) return runtime_result::invalid_value;
    *address = nullptr;
    if (bytes == 0) return runtime_result::done;
    return allocate_here(runtime, kind, {.bytes = bytes, .freed_by = freed_by}, address);
  });
}

/// Rows of `width` bytes, each beginning at a multiple of what textures ask for.
[[nodiscard]] inline int allocate_rows(void** address, std::size_t* pitch, std::size_t width, std::size_t rows) noexcept {
  return called([&](simulated_runtime& runtime) {
    if (address == nullptr || pitch == nullptr) return runtime_result::invalid_value;
    *address = nullptr;
    constexpr std::size_t alignment = 512;
    *pitch = width > std::numeric_limits<std::size_t>::max() - alignment ? width : (width + alignment - 1) & ~(alignment - 1);
    const std::size_t bytes = product(*pitch, rows);
    if (bytes == 0) return runtime_result::done;
    return allocate_here(runtime, memory_kind::device, {.bytes = bytes}, address);
  });
}

[[nodiscard]] inline int allocate_box(pitched_pointer* made, const extent& size) noexcept {
  if (made == nullptr) return ended(runtime_result::invalid_value);
  *made = {nullptr, 0, size.width, size.height};
  return allocate_rows(&made->address, &made->pitch, size.width, product(size.height, size.depth));
}

/// Elements of an array have none if they are compressed.
[[nodiscard]] constexpr unsigned bytes_of_element(const channel_bits& bits) noexcept {
  constexpr int bits_of_byte = 8;
  if (bits.kind > last_channel_kind_with_size) return 0;
  return static_cast<unsigned>(std::max(bits.x + bits.y + bits.z + bits.w, 0) / bits_of_byte);
}

[[nodiscard]] inline int allocate_array(void** array, const channel_bits* bits, const extent& size, unsigned levels,
                                        unsigned flags, freeing_call freed_by) noexcept {
  return called([&](simulated_runtime& runtime) {
    if (array == nullptr || bits == nullptr) return runtime_result::invalid_value;
    const unsigned element = bytes_of_element(*bits);
    constexpr int byte_format = 1;
    const array_3d_descriptor described{size.width, size.height, size.depth, byte_format, element, flags};
    const bool has_memory = (flags & runtime_array_without_memory) == 0;
    const std::size_t bytes = has_memory ? mipmapped_array_bytes(described, levels) : 0;
    return allocate_here(runtime, memory_kind::device,
                         {.bytes = bytes, .freed_by = freed_by, .bytes_of_element = static_cast<std::uint16_t>(element)}, array);
  });
}

/// On a stream, from the pool that its device has now, or from `pool`.
[[nodiscard]] inline int allocate_on_stream(void** address, std::size_t bytes, const void* stream, std::uint64_t unnamed,
                                            std::uint64_t pool = 0) noexcept {
  return called_on(stream, unnamed, [&](simulated_runtime& runtime, const simulated_stream& on) {
    if (address == nullptr) return runtime_result::invalid_value;
    *address = nullptr;
    if (bytes == 0) return runtime_result::done;
    const std::uint64_t serving = pool == 0 ? runtime.memory.current_pool(on.device) : pool;
    place at{memory_kind::device, on.device, simulated_memory::context_of(on.device), true, on.handle, pool};
    const bool is_known = runtime.memory.with_pool(serving, [&](const simulated_pool& from) {
      at.kind = from.kind;
      at.device = from.device;
    });
    if (!is_known) return pool == 0 ? runtime_result::memory_allocation : runtime_result::invalid_value;
    return runtime.memory.allocate(at, {.bytes = bytes, .pool = serving}, *address);
  });
}

/// What was made in a capture may be freed after its end, too.
[[nodiscard]] inline int release(freeing_call call, const void* address) noexcept {
  simulated_runtime& runtime = process_runtime();
  const runtime_result result = address == nullptr ? runtime_result::done : runtime.memory.free({}, call, number_of(address));
  const bool is_there = runtime.has_devices() || (address != nullptr && result == runtime_result::done);
  return ended(is_there ? result : runtime_result::no_device);
}
[[nodiscard]] inline int release_on_stream(const void* address, const void* stream, std::uint64_t unnamed) noexcept {
  simulated_runtime& runtime = process_runtime();
  if (!runtime.has_devices()) return release(freeing_call::free, address);
  return called_on(stream, unnamed, [&](simulated_runtime&, const simulated_stream& on) {
    if (address == nullptr) return runtime_result::invalid_value;
    const place at{memory_kind::device, on.device, simulated_memory::context_of(on.device), true, on.handle, 0};
    return runtime.memory.free(at, freeing_call::free, number_of(address));
  });
}

// --- pools ---------------------------------------------------------------------------------------------------------------

[[nodiscard]] inline int own_pool(void** pool, int device) noexcept {
  return called_of(device, [&](simulated_runtime& runtime, std::uint32_t known) {
    if (pool == nullptr) return runtime_result::invalid_value;
    const bool is_made = runtime.memory.with_own_pool(known, [&](const simulated_pool& own) { *pool = handle_of(own.handle); });
    return is_made ? runtime_result::done : runtime_result::memory_allocation;
  });
}
[[nodiscard]] inline int current_pool(void** pool, int device) noexcept {
  return called_of(device, [&](simulated_runtime& runtime, std::uint32_t known) {
    if (pool == nullptr) return runtime_result::invalid_value;
    *pool = handle_of(runtime.memory.current_pool(known));
    return *pool == nullptr ? runtime_result::memory_allocation : runtime_result::done;
  });
}
[[nodiscard]] inline int set_current_pool(int device, const void* pool) noexcept {
  return called_of(device, [&](simulated_runtime& runtime, std::uint32_t known) {
    const bool is_known = runtime.memory.with_pool(number_of(pool), [](const simulated_pool&) {});
    if (is_known) runtime.memory.set_current_pool(known, number_of(pool));
    return is_known ? runtime_result::done : runtime_result::invalid_value;
  });
}
[[nodiscard]] inline int make_pool(void** pool, const allocation_properties* described) noexcept {
  return called([&](simulated_runtime& runtime) {
    if (pool == nullptr || described == nullptr) return runtime_result::invalid_value;
    const known_pool of = pool_of(0, *described, current_device(runtime));
    if (of.device >= runtime.memory.device_count()) return runtime_result::invalid_value;
    *pool = handle_of(runtime.memory.make_pool(of.kind, of.device));
    return *pool == nullptr ? runtime_result::memory_allocation : runtime_result::done;
  });
}
[[nodiscard]] inline int remove_pool(const void* pool) noexcept {
  const bool is_done = process_runtime().memory.remove_pool(number_of(pool));
  if (is_done) return ended(runtime_result::done);
  return called([](simulated_runtime&) { return runtime_result::invalid_value; });
}

/// Attributes of reuse are on, and stay so.
[[nodiscard]] inline bool read_attribute(const simulated_pool& pool, pool_attribute asked, void* value) noexcept {
  auto& bytes = *static_cast<std::uint64_t*>(value);
  switch (asked) {
    case pool_attribute::reuse_follow_event_dependencies:
    case pool_attribute::reuse_allow_opportunistic:
    case pool_attribute::reuse_allow_internal_dependencies: *static_cast<int*>(value) = 1; return true;
    case pool_attribute::release_threshold: bytes = pool.release_threshold; return true;
    case pool_attribute::reserved_current:
    case pool_attribute::used_current: bytes = pool.used; return true;
    case pool_attribute::reserved_high: bytes = pool.reserved_high; return true;
    case pool_attribute::used_high: bytes = pool.used_high; return true;
  }
  return false;
}
/// A high-water mark can only be set to 0, which means to what is used.
[[nodiscard]] inline bool write_attribute(simulated_pool& pool, pool_attribute asked, const void* value) noexcept {
  const auto bytes = [&] { return *static_cast<const std::uint64_t*>(value); };
  switch (asked) {
    case pool_attribute::reuse_follow_event_dependencies:
    case pool_attribute::reuse_allow_opportunistic:
    case pool_attribute::reuse_allow_internal_dependencies: return true;
    case pool_attribute::release_threshold: pool.release_threshold = bytes(); return true;
    case pool_attribute::reserved_high:
      if (bytes() == 0) pool.reserved_high = pool.used;
      return bytes() == 0;
    case pool_attribute::used_high:
      if (bytes() == 0) pool.used_high = pool.used;
      return bytes() == 0;
    case pool_attribute::reserved_current:
    case pool_attribute::used_current: return false;
  }
  return false;
}

/// Calls `work(pool)`, which says whether the call is done.
template <class Work>
[[nodiscard]] int called_with_pool(const void* pool, const void* value, Work&& work) noexcept {
  return called([&](simulated_runtime& runtime) {
    bool is_done = false;
    const bool is_known =
        value != nullptr && runtime.memory.with_pool(number_of(pool), [&](simulated_pool& found) { is_done = work(found); });
    return is_known && is_done ? runtime_result::done : runtime_result::invalid_value;
  });
}

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
