#pragma once

#include <memprof/backend/cuda/device_properties.hpp>
#include <memprof/backend/torch/simulation/cuda_properties.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/short_name.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

/// @file
/// What a simulated device says of itself: the numbers of the GPU that its name is known to mean, and otherwise of an A100.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// Its name and its processors.
struct simulated_gpu {
  short_name name;
  cuda_properties processors;

  [[nodiscard]] constexpr int major() const noexcept { return processors.is_hopper_or_later ? 9 : 8; }
  /// A GeForce, of compute capability 8.9, has room for fewer threads.
  [[nodiscard]] constexpr bool is_geforce() const noexcept { return processors.threads_per_multiprocessor < 2048; }
  [[nodiscard]] constexpr int minor() const noexcept { return is_geforce() ? 9 : 0; }
  [[nodiscard]] constexpr int shared_kib() const noexcept {
    if (processors.is_hopper_or_later) return 228;
    return is_geforce() ? 100 : 164;
  }
};

inline constexpr int greatest_block = 1024;          ///< threads
inline constexpr int default_shared_bytes = 49'152;  ///< of a block, without opting in for more

/// 0 for what is not known, or not there.
[[nodiscard]] constexpr int value_of(device_attribute attribute, const simulated_gpu& gpu) noexcept {
  constexpr int kib = 1024;
  constexpr int greatest = std::numeric_limits<int>::max();
  switch (attribute) {
    case device_attribute::threads_per_block:
    case device_attribute::block_x:
    case device_attribute::block_y: return greatest_block;
    case device_attribute::block_z: return 64;
    case device_attribute::grid_x:
    case device_attribute::max_pitch: return greatest;
    case device_attribute::grid_y:
    case device_attribute::grid_z: return 65'535;
    case device_attribute::shared_per_block: return default_shared_bytes;
    case device_attribute::constant_memory:
    case device_attribute::registers_per_block:
    case device_attribute::registers_per_multiprocessor: return 64 * kib;
    case device_attribute::warp_size:
    case device_attribute::texture_pitch_alignment: return 32;
    case device_attribute::clock_rate: return 1'410'000;
    case device_attribute::texture_alignment:
    case device_attribute::surface_alignment: return 512;
    case device_attribute::multiprocessors: return gpu.processors.multiprocessors;
    case device_attribute::memory_clock_rate: return 1'215'000;
    case device_attribute::memory_bus_width: return 5120;
    case device_attribute::l2_cache: return 40 * kib * kib;
    case device_attribute::threads_per_multiprocessor: return gpu.processors.threads_per_multiprocessor;
    case device_attribute::copy_engines: return 3;
    case device_attribute::compute_capability_major: return gpu.major();
    case device_attribute::compute_capability_minor: return gpu.minor();
    case device_attribute::shared_per_multiprocessor: return gpu.shared_kib() * kib;
    case device_attribute::shared_per_block_optin: return (gpu.shared_kib() - 1) * kib;
    case device_attribute::blocks_per_multiprocessor: return gpu.is_geforce() ? 24 : 32;
    case device_attribute::reserved_shared_per_block: return kib;
    case device_attribute::gpu_overlap:
    case device_attribute::can_map_host_memory:
    case device_attribute::concurrent_kernels:
    case device_attribute::unified_addressing:
    case device_attribute::stream_priorities:
    case device_attribute::managed_memory:
    case device_attribute::concurrent_managed_access:
    case device_attribute::host_pointer_for_registered:
    case device_attribute::cooperative_launch:
    case device_attribute::host_register:
    case device_attribute::memory_pools: return 1;
  }
  return 0;
}

/// Fills in the `cudaDeviceProp` of one of CUDA's versions.
template <class Properties>
void describe(Properties& properties, const simulated_gpu& gpu, std::uint64_t total_memory) noexcept {
  const auto value = [&](device_attribute attribute) { return value_of(attribute, gpu); };
  const auto size = [&](device_attribute attribute) { return static_cast<std::size_t>(value_of(attribute, gpu)); };
  properties = {};
  gpu.name.view().copy(properties.name, sizeof properties.name - 1);
  properties.total_memory = total_memory;
  properties.shared_per_block = size(device_attribute::shared_per_block);
  properties.registers_per_block = value(device_attribute::registers_per_block);
  properties.warp_size = value(device_attribute::warp_size);
  properties.max_pitch = size(device_attribute::max_pitch);
  properties.threads_per_block = value(device_attribute::threads_per_block);
  properties.block[0] = value(device_attribute::block_x);
  properties.block[1] = value(device_attribute::block_y);
  properties.block[2] = value(device_attribute::block_z);
  properties.grid[0] = value(device_attribute::grid_x);
  properties.grid[1] = value(device_attribute::grid_y);
  properties.grid[2] = value(device_attribute::grid_z);
  properties.constant_memory = size(device_attribute::constant_memory);
  properties.major = gpu.major();
  properties.minor = gpu.minor();
  properties.texture_alignment = size(device_attribute::texture_alignment);
  properties.texture_pitch_alignment = size(device_attribute::texture_pitch_alignment);
  properties.multiprocessors = value(device_attribute::multiprocessors);
  properties.can_map_host_memory = value(device_attribute::can_map_host_memory);
  properties.surface_alignment = size(device_attribute::surface_alignment);
  properties.concurrent_kernels = value(device_attribute::concurrent_kernels);
  properties.copy_engines = value(device_attribute::copy_engines);
  properties.unified_addressing = value(device_attribute::unified_addressing);
  properties.memory_bus_width = value(device_attribute::memory_bus_width);
  properties.l2_cache = value(device_attribute::l2_cache);
  properties.threads_per_multiprocessor = value(device_attribute::threads_per_multiprocessor);
  properties.stream_priorities = value(device_attribute::stream_priorities);
  properties.shared_per_multiprocessor = size(device_attribute::shared_per_multiprocessor);
  properties.registers_per_multiprocessor = value(device_attribute::registers_per_multiprocessor);
  properties.managed_memory = value(device_attribute::managed_memory);
  properties.concurrent_managed_access = value(device_attribute::concurrent_managed_access);
  properties.host_pointer_for_registered = value(device_attribute::host_pointer_for_registered);
  properties.cooperative_launch = value(device_attribute::cooperative_launch);
  properties.shared_per_block_optin = size(device_attribute::shared_per_block_optin);
  properties.blocks_per_multiprocessor = value(device_attribute::blocks_per_multiprocessor);
  properties.reserved_shared_per_block = size(device_attribute::reserved_shared_per_block);
  properties.host_register = value(device_attribute::host_register);
  properties.memory_pools = value(device_attribute::memory_pools);
  if constexpr (requires { properties.clock_rate; }) {
    properties.clock_rate = value(device_attribute::clock_rate);
    properties.memory_clock_rate = value(device_attribute::memory_clock_rate);
    properties.device_overlap = value(device_attribute::gpu_overlap);
  }
}

/// How many blocks a multiprocessor has room for, by their threads and their shared memory; 0: not even for one.
[[nodiscard]] constexpr int blocks_on_multiprocessor(const simulated_gpu& gpu, int threads, std::size_t shared_bytes) noexcept {
  if (threads <= 0 || threads > greatest_block) return 0;
  const int by_threads = gpu.processors.threads_per_multiprocessor / threads;
  const auto shared = static_cast<std::size_t>(value_of(device_attribute::shared_per_multiprocessor, gpu));
  const auto reserved = static_cast<std::size_t>(value_of(device_attribute::reserved_shared_per_block, gpu));
  const auto by_shared = static_cast<int>(shared / (std::min(shared_bytes, shared) + reserved));
  return std::min({by_threads, by_shared, value_of(device_attribute::blocks_per_multiprocessor, gpu)});
}

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
