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

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
