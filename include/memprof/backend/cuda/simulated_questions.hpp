#pragma once

#include <memprof/backend/cuda/device_properties.hpp>
#include <memprof/backend/cuda/places.hpp>
#include <memprof/backend/cuda/runtime_interface.hpp>
#include <memprof/backend/cuda/simulated_blocks.hpp>
#include <memprof/backend/cuda/simulated_memory.hpp>
#include <memprof/backend/cuda/simulated_properties.hpp>
#include <memprof/backend/cuda/simulated_runtime.hpp>
#include <memprof/config.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>

/// @file
/// The calls of CUDA's runtime that ask something, without a device.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// Stores an answer; false if there is no place for it.
template <class Place, class Answer>
[[nodiscard]] runtime_result put(Place* place, Answer answer) noexcept {
  if (place == nullptr) return runtime_result::invalid_value;
  *place = answer;
  return runtime_result::done;
}

/// A call that has nothing to do.
[[nodiscard]] inline int nothing() noexcept {
  return called([](simulated_runtime&) { return runtime_result::done; });
}
/// One with an answer that is known.
template <class Place>
[[nodiscard]] int give(Place* place, Place answer) noexcept {
  return called([&](simulated_runtime&) { return put(place, answer); });
}
[[nodiscard]] inline int give(void** place, const void* answer) noexcept {
  return called([&](simulated_runtime&) { return put(place, const_cast<void*>(answer)); });
}
inline constexpr int reads_and_writes = 3;  ///< `cudaMemAccessFlagsProtReadWrite`

[[nodiscard]] inline int last_result(bool is_cleared) noexcept {
  const runtime_result last = this_runtime_thread.last;
  if (is_cleared) this_runtime_thread.last = runtime_result::done;
  return static_cast<int>(last);
}

// --- memory ---------------------------------------------------------------------------------------------------------------

[[nodiscard]] inline int memory_info(std::size_t* free, std::size_t* total) noexcept {
  return called([&](simulated_runtime& runtime) {
    const simulated_device device = runtime.memory.device(current_device(runtime));
    const runtime_result result = put(free, device.free());
    return result == runtime_result::done ? put(total, device.total()) : result;
  });
}

[[nodiscard]] inline int describe_pointer(pointer_attributes* found, const void* address) noexcept {
  return called([&](simulated_runtime& runtime) {
    constexpr int type_of[] = {2, 3, 1};  // by memory_kind
    constexpr int no_device = -2;
    const simulated_block of = runtime.memory.around(address);
    auto* const same = const_cast<void*>(address);
    if (of.address == 0) return put(found, pointer_attributes{0, no_device, nullptr, same});
    void* const on_host = of.kind == memory_kind::device ? nullptr : same;
    return put(found, pointer_attributes{type_of[static_cast<int>(of.kind)], static_cast<int>(of.device), same, on_host});
  });
}

[[nodiscard]] inline int address_of_variable(void** address, const void* variable) noexcept {
  return called([&](simulated_runtime& runtime) {
    void* const found = runtime.variables.address_of(variable);
    return found == nullptr ? runtime_result::invalid_symbol : put(address, found);
  });
}
[[nodiscard]] inline int size_of_variable(std::size_t* bytes, const void* variable) noexcept {
  return called([&](simulated_runtime& runtime) {
    std::uint64_t size = 0;
    return runtime.variables.find(variable, size) ? put(bytes, size) : runtime_result::invalid_symbol;
  });
}

// --- devices --------------------------------------------------------------------------------------------------------------

/// None where there is no capture, as CUDA says it.
[[nodiscard]] inline int device_count(int* count) noexcept {
  if (count == nullptr) return ended(runtime_result::invalid_value);
  *count = 0;
  return called([&](simulated_runtime& runtime) { return put(count, static_cast<int>(runtime.memory.device_count())); });
}
[[nodiscard]] inline int get_device(int* device) noexcept {
  return called([&](simulated_runtime& runtime) { return put(device, static_cast<int>(current_device(runtime))); });
}
[[nodiscard]] inline int set_device(int device) noexcept {
  return called_of(device, [](simulated_runtime&, std::uint32_t known) {
    this_runtime_thread.device = known;
    return runtime_result::done;
  });
}
/// A call that only asks for a device.
[[nodiscard]] inline int of_device(int device) noexcept {
  return called_of(device, [](simulated_runtime&, std::uint32_t) { return runtime_result::done; });
}
[[nodiscard]] inline int reset_device() noexcept {
  return called([](simulated_runtime& runtime) {
    runtime.memory.reset_device(current_device(runtime));
    return runtime_result::done;
  });
}
[[nodiscard]] inline int synchronize_device() noexcept {
  return called([](simulated_runtime& runtime) {
    runtime.memory.synchronize_device(current_device(runtime));
    return runtime_result::done;
  });
}
template <class Properties>
[[nodiscard]] int describe_device(Properties* found, int device) noexcept {
  return called_of(device, [&](simulated_runtime& runtime, std::uint32_t known) {
    if (found == nullptr) return runtime_result::invalid_value;
    describe(*found, runtime.gpu(), runtime.memory.device(known).total());
    return runtime_result::done;
  });
}
[[nodiscard]] inline int attribute_of_device(int* value, int attribute, int device) noexcept {
  return called_of(device, [&](simulated_runtime& runtime, std::uint32_t) {
    return put(value, value_of(static_cast<device_attribute>(attribute), runtime.gpu()));
  });
}
[[nodiscard]] inline int bus_of_device(char* text, int size, int device) noexcept {
  return called_of(device, [&](simulated_runtime&, std::uint32_t known) {
    if (text == nullptr || size <= 0) return runtime_result::invalid_value;
    std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", known + 1);
    return runtime_result::done;
  });
}
[[nodiscard]] inline int can_access_peer(int* can, int device, int peer) noexcept {
  return called_of(device, [&](simulated_runtime& runtime, std::uint32_t) {
    const bool is_known = peer >= 0 && static_cast<std::uint32_t>(peer) < runtime.memory.device_count();
    return is_known ? put(can, device == peer ? 0 : 1) : runtime_result::invalid_device;
  });
}
[[nodiscard]] inline int get_limit(std::size_t* value, int limit) noexcept {
  return called([&](simulated_runtime& runtime) {
    const bool is_known = limit >= 0 && static_cast<std::size_t>(limit) < runtime.limits.size();
    if (!is_known) return runtime_result::invalid_value;
    return put(value, runtime.limits[static_cast<std::size_t>(limit)].load(std::memory_order_relaxed));
  });
}
[[nodiscard]] inline int set_limit(int limit, std::size_t value) noexcept {
  return called([&](simulated_runtime& runtime) {
    const bool is_known = limit >= 0 && static_cast<std::size_t>(limit) < runtime.limits.size();
    if (!is_known) return runtime_result::invalid_value;
    runtime.limits[static_cast<std::size_t>(limit)].store(value, std::memory_order_relaxed);
    return runtime_result::done;
  });
}
[[nodiscard]] inline int priorities(int* least, int* greatest) noexcept {
  return called([&](simulated_runtime&) {
    constexpr int greatest_priority = -5;
    const runtime_result result = put(least, 0);
    return result == runtime_result::done ? put(greatest, greatest_priority) : result;
  });
}
/// Known without a device, too. That of CUDA 13.0, which programs built with CUDA 12 accept.
[[nodiscard]] inline int version_of_runtime(int* version) noexcept {
  constexpr int simulated_version = 13'000;
  return ended(put(version, simulated_version));
}

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
