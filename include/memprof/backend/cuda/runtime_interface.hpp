#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>

/// @file
/// What a program compiled by nvcc knows of CUDA's runtime, declared here so that no CUDA header is needed: layouts and numbers
/// are part of its binary interface. `tests/cuda/runtime_interface.cpp` compares them with the headers, where these are.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// `cudaError_t`, of the errors that the replacement reports.
enum class runtime_result : int {
  done = 0,
  invalid_value = 1,
  memory_allocation = 2,
  invalid_configuration = 9,
  invalid_symbol = 13,
  no_device = 100,
  invalid_device = 101,
  invalid_resource_handle = 400,
};

/// Its name and its text, as `cudaGetErrorName` and `cudaGetErrorString` give them.
struct runtime_result_text {
  runtime_result of;
  const char* name;
  const char* text;
};
inline constexpr runtime_result_text runtime_result_texts[] = {
    {runtime_result::done, "cudaSuccess", "no error"},
    {runtime_result::invalid_value, "cudaErrorInvalidValue", "invalid argument"},
    {runtime_result::memory_allocation, "cudaErrorMemoryAllocation", "out of memory"},
    {runtime_result::invalid_configuration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {runtime_result::invalid_symbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {runtime_result::no_device, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {runtime_result::invalid_device, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {runtime_result::invalid_resource_handle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
};
inline constexpr runtime_result_text unknown_result_text{runtime_result::done, "unrecognized error code",
                                                         "unrecognized error code"};

[[nodiscard]] constexpr const runtime_result_text& text_of(int result) noexcept {
  for (const runtime_result_text& each : runtime_result_texts) {
    if (static_cast<int>(each.of) == result) return each;
  }
  return unknown_result_text;
}

/// `dim3`.
struct launch_shape {
  unsigned x;
  unsigned y;
  unsigned z;
};

/// `cudaLaunchConfig_t`.
struct launch_configuration {
  launch_shape grid;
  launch_shape block;
  std::size_t shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

/// `cudaExtent` and `cudaPos`.
struct extent {
  std::size_t width;
  std::size_t height;
  std::size_t depth;
};
struct position {
  std::size_t x;
  std::size_t y;
  std::size_t z;
};

/// `cudaPitchedPtr`.
struct pitched_pointer {
  void* address;
  std::size_t pitch;
  std::size_t width;
  std::size_t height;
};

/// `cudaMemcpy3DParms`, and `cudaMemcpy3DPeerParms`. An end of the copy is an array, or else a pointer.
struct copy_3d {
  void* from_array;
  position from_position;
  pitched_pointer from;
  void* to_array;
  position to_position;
  pitched_pointer to;
  struct extent extent;
  int kind;
};
struct peer_copy_3d {
  void* from_array;
  position from_position;
  pitched_pointer from;
  int from_device;
  void* to_array;
  position to_position;
  pitched_pointer to;
  int to_device;
  struct extent extent;
};

/// `cudaChannelFormatDesc`: bits of each channel.
struct channel_bits {
  int x;
  int y;
  int z;
  int w;
  int kind;
};
inline constexpr int last_channel_kind_with_size = 16;                 ///< those behind it are compressed or packed
inline constexpr unsigned runtime_array_without_memory = 0x40 | 0x80;  ///< `cudaArraySparse`, `cudaArrayDeferredMapping`

/// `cudaPointerAttributes`, as far as CUDA 12 has it; the rest is reserved.
struct pointer_attributes {
  int type;  ///< 0: unknown, 1: of the host, 2: of a device, 3: managed
  int device;
  void* device_pointer;
  void* host_pointer;
};

/// `cudaFuncAttributes`.
struct function_attributes {
  std::size_t shared_bytes;
  std::size_t constant_bytes;
  std::size_t local_bytes;
  int threads_per_block;
  int registers;
  int ptx_version;
  int binary_version;
  int cache_mode;
  int dynamic_shared_bytes;
  int rest[23];
};

/// `cudaMemPoolAttr`, of those that have a value here.
enum class pool_attribute : int {
  reuse_follow_event_dependencies = 1,
  reuse_allow_opportunistic = 2,
  reuse_allow_internal_dependencies = 3,
  release_threshold = 4,
  reserved_current = 5,
  reserved_high = 6,
  used_current = 7,
  used_high = 8,
};

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
