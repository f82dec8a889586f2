#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>

/// @file
/// What memprof uses of CUDA's driver and of CUPTI, declared here so that no CUDA header is needed: layouts and numbers are part
/// of their binary interfaces. `tests/cuda/interface.cpp` compares them with the headers, where these are.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// `CUdeviceptr`, `CUmemGenericAllocationHandle`, or a handle of an opaque type as a number.
using number = std::uint64_t;

inline constexpr int success = 0;        ///< of a `CUresult` and of a `CUptiResult`
inline constexpr int out_of_memory = 2;  ///< `CUDA_ERROR_OUT_OF_MEMORY`

/// `CUpti_CallbackDomain`.
enum class domain : int { driver = 1, resource = 3, synchronize = 4 };

/// `CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING` and `CUPTI_CBID_SYNCHRONIZE_...`.
inline constexpr std::uint32_t context_destroy_starting = 2;
inline constexpr std::uint32_t stream_synchronized = 1;
inline constexpr std::uint32_t context_synchronized = 2;

/// `CUpti_driver_api_trace_cbid`, of the calls that memprof follows.
enum class driver_call : std::uint32_t {
  free_host = 38,
  host_alloc = 39,
  array_destroy = 89,
  alloc = 243,
  alloc_pitch = 244,
  free = 245,
  host_alloc_v2 = 271,
  array_create = 272,
  array_3d_create = 274,
  alloc_host = 294,
  mipmapped_array_create = 347,
  mipmapped_array_destroy = 349,
  alloc_managed = 371,
  create = 549,
  release = 550,
  map = 551,
  unmap = 552,
  retain_handle = 565,
  alloc_async = 598,
  alloc_async_per_thread = 599,  ///< `_ptsz`: stream 0 is the thread's own default stream
  free_async = 600,
  free_async_per_thread = 601,
  pool_create = 607,
  pool_destroy = 608,
  alloc_from_pool_async = 611,
  alloc_from_pool_async_per_thread = 612,
  get_default_pool = 801,  ///< from CUDA 13 on: of a location, also of the host's
  get_pool = 802,
};

inline constexpr driver_call driver_calls[] = {
    driver_call::free_host,
    driver_call::host_alloc,
    driver_call::array_destroy,
    driver_call::alloc,
    driver_call::alloc_pitch,
    driver_call::free,
    driver_call::host_alloc_v2,
    driver_call::array_create,
    driver_call::array_3d_create,
    driver_call::alloc_host,
    driver_call::alloc_managed,
    driver_call::mipmapped_array_create,
    driver_call::create,
    driver_call::mipmapped_array_destroy,
    driver_call::release,
    driver_call::map,
    driver_call::unmap,
    driver_call::retain_handle,
    driver_call::alloc_async,
    driver_call::alloc_async_per_thread,
    driver_call::free_async,
    driver_call::free_async_per_thread,
    driver_call::pool_create,
    driver_call::pool_destroy,
    driver_call::alloc_from_pool_async,
    driver_call::alloc_from_pool_async_per_thread,
    driver_call::get_default_pool,
    driver_call::get_pool,
};

/// `CUpti_CallbackData`.
struct callback_data {
  int site;  ///< 0: the call begins, 1: it has ended
  const char* function;
  const void* parameters;
  const void* result;  ///< a `CUresult`, once it has ended
  const char* symbol;
  void* context;  ///< current on the thread, or null
  std::uint32_t context_number;
  std::uint64_t* kept;  ///< 64 bits kept from the call's begin to its end
  std::uint32_t correlation;
};
inline constexpr int call_begins = 0;

/// `CUpti_ResourceData` and `CUpti_SynchronizeData`.
struct resource_data {
  void* context;
  void* stream;
};

/// `CUpti_SubscriberParams`.
struct subscriber_parameters {
  /// Up to CUPTI 13.1, which takes no other; from 13.2 on, the whole.
  static constexpr std::size_t size_without_sharing = 32;

  std::size_t size;
  const char* name;
  char* holder;  ///< receives the name of whoever has subscribed already
  std::size_t holder_size;
  std::uint8_t shares;  ///< whether others may subscribe, too, if they say the same
  std::uint8_t padding[7];
};
/// `CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`, and the error for what the library does not know: a call, a size.
inline constexpr int another_subscriber = 39;
inline constexpr int invalid_parameter = 1;

/// `CUpti_CallbackFunc`.
using callback = void (*)(void* user, domain where, std::uint32_t id, const void* data);

/// `CUmemLocation`.
struct location {
  int type;  ///< 0: none, 1: a device, from 2: of the host
  int id;
};

/// `CUmemAllocationProp` and `CUmemPoolProps`, as far as they are read.
struct allocation_properties {
  int type;  ///< 1: pinned, 2: managed
  int handle_types;
  location where;
};
inline constexpr int managed_type = 2;

/// `CUDA_ARRAY_DESCRIPTOR`.
struct array_descriptor {
  std::size_t width;
  std::size_t height;
  int format;
  unsigned channels;
};

/// `CUDA_ARRAY3D_DESCRIPTOR`.
struct array_3d_descriptor {
  std::size_t width;
  std::size_t height;
  std::size_t depth;
  int format;
  unsigned channels;
  unsigned flags;
};
inline constexpr unsigned array_without_memory = 0x40 | 0x80;  ///< `CUDA_ARRAY3D_SPARSE`, `CUDA_ARRAY3D_DEFERRED_MAPPING`

// The parameters of the calls, as `cuMemAlloc_v2_params` and so on have them. Where a call returns a `number`, they point to it.

/// Of `alloc`, `alloc_managed`, `alloc_host` and `host_alloc`, and the beginning of those of the asynchronous ones.
struct alloc_parameters {
  const void* address;
  std::size_t bytes;
};
struct alloc_pitch_parameters {
  const void* address;
  const std::size_t* pitch;
  std::size_t width;
  std::size_t height;
};
struct alloc_async_parameters {
  const void* address;
  std::size_t bytes;
  number stream;
};
struct alloc_from_pool_parameters {
  const void* address;
  std::size_t bytes;
  number pool;
  number stream;
};
/// Of `free`, `free_host`, the `_destroy` calls and `release`; the beginning of those of `free_async`.
struct free_parameters {
  number freed;
};
struct free_async_parameters {
  number freed;
  number stream;
};
struct array_parameters {
  const void* array;
  const array_descriptor* described;
};
struct array_3d_parameters {
  const void* array;
  const array_3d_descriptor* described;
  unsigned levels;  ///< of `mipmapped_array_create` alone
};
struct create_parameters {
  const void* handle;
  std::size_t bytes;
  const allocation_properties* properties;
};
struct map_parameters {
  number address;
  std::size_t bytes;
  std::size_t offset;
  number handle;
};
struct unmap_parameters {
  number address;
  std::size_t bytes;
};
struct retain_parameters {
  const void* handle;
  number address;
};
struct pool_parameters {
  const void* pool;
  const allocation_properties* properties;
};
struct get_pool_parameters {
  const void* pool;
  const location* where;
  int type;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
