#pragma once

#include <memprof/config.hpp>

#include <cstddef>

/// @file
/// What a program compiled by nvcc can ask CUDA's runtime about a device; as `runtime_interface.hpp` part of its binary
/// interface.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// `cudaDeviceAttr`, of those that are not 0 here.
enum class device_attribute : int {
  threads_per_block = 1,
  block_x = 2,
  block_y = 3,
  block_z = 4,
  grid_x = 5,
  grid_y = 6,
  grid_z = 7,
  shared_per_block = 8,
  constant_memory = 9,
  warp_size = 10,
  max_pitch = 11,
  registers_per_block = 12,
  clock_rate = 13,
  texture_alignment = 14,
  gpu_overlap = 15,
  multiprocessors = 16,
  can_map_host_memory = 19,
  surface_alignment = 30,
  concurrent_kernels = 31,
  memory_clock_rate = 36,
  memory_bus_width = 37,
  l2_cache = 38,
  threads_per_multiprocessor = 39,
  copy_engines = 40,
  unified_addressing = 41,
  texture_pitch_alignment = 51,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  stream_priorities = 78,
  shared_per_multiprocessor = 81,
  registers_per_multiprocessor = 82,
  managed_memory = 83,
  concurrent_managed_access = 89,
  host_pointer_for_registered = 91,
  cooperative_launch = 95,
  shared_per_block_optin = 97,
  host_register = 99,
  blocks_per_multiprocessor = 106,
  reserved_shared_per_block = 111,
  memory_pools = 115,
};

/// `cudaDeviceProp` of CUDA 13, which `cudaGetDeviceProperties` gives.
struct device_properties_13 {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_mask;
  std::size_t total_memory;
  std::size_t shared_per_block;
  int registers_per_block;
  int warp_size;
  std::size_t max_pitch;
  int threads_per_block;
  int block[3];
  int grid[3];
  std::size_t constant_memory;
  int major;
  int minor;
  std::size_t texture_alignment;
  std::size_t texture_pitch_alignment;
  int multiprocessors;
  int integrated;
  int can_map_host_memory;
  int textures_and_surfaces[39];
  std::size_t surface_alignment;
  int concurrent_kernels;
  int ecc_and_bus[5];
  int copy_engines;
  int unified_addressing;
  int memory_bus_width;
  int l2_cache;
  int persisting_l2_cache;
  int threads_per_multiprocessor;
  int stream_priorities;
  int l1_caches[2];
  std::size_t shared_per_multiprocessor;
  int registers_per_multiprocessor;
  int managed_memory;
  int boards_and_atomics[3];
  int pageable_access;
  int concurrent_managed_access;
  int preemption;
  int host_pointer_for_registered;
  int cooperative_launch;
  std::size_t shared_per_block_optin;
  int managed_access[2];
  int blocks_per_multiprocessor;
  int access_policy_window;
  std::size_t reserved_shared_per_block;
  int host_register;
  int sparse_arrays;
  int read_only_register;
  int timeline_semaphores;
  int memory_pools;
  int rest[71];
};

/// That of CUDA 12, which `cudaGetDeviceProperties_v2` gives.
struct device_properties_12 {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_mask;
  std::size_t total_memory;
  std::size_t shared_per_block;
  int registers_per_block;
  int warp_size;
  std::size_t max_pitch;
  int threads_per_block;
  int block[3];
  int grid[3];
  int clock_rate;
  std::size_t constant_memory;
  int major;
  int minor;
  std::size_t texture_alignment;
  std::size_t texture_pitch_alignment;
  int device_overlap;
  int multiprocessors;
  int execution_timeout;
  int integrated;
  int can_map_host_memory;
  int compute_mode;
  int textures_and_surfaces[40];
  std::size_t surface_alignment;
  int concurrent_kernels;
  int ecc_and_bus[5];
  int copy_engines;
  int unified_addressing;
  int memory_clock_rate;
  int memory_bus_width;
  int l2_cache;
  int persisting_l2_cache;
  int threads_per_multiprocessor;
  int stream_priorities;
  int l1_caches[2];
  std::size_t shared_per_multiprocessor;
  int registers_per_multiprocessor;
  int managed_memory;
  int boards_and_atomics[3];
  int double_precision_ratio;
  int pageable_access;
  int concurrent_managed_access;
  int preemption;
  int host_pointer_for_registered;
  int cooperative_launch;
  int cooperative_launch_on_devices;
  std::size_t shared_per_block_optin;
  int managed_access[2];
  int blocks_per_multiprocessor;
  int access_policy_window;
  std::size_t reserved_shared_per_block;
  int host_register;
  int sparse_arrays;
  int read_only_register;
  int timeline_semaphores;
  int memory_pools;
  int rest[71];
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
