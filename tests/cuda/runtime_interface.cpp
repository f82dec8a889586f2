// What memprof declares of CUDA's runtime in place of CUDA's headers, compared with them. Only compiled.
#include <memprof/backend/cuda_no_dispatch_runtime.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <type_traits>

namespace own = memprof::detail::cuda;

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // of CUDA: programs may still call them

namespace {

#define MEMPROF_SAME_FIELD(own_type, own_field, type, field)                  \
  static_assert(offsetof(own::own_type, own_field) == offsetof(type, field)); \
  static_assert(sizeof(own::own_type::own_field) == sizeof(type::field))
#define MEMPROF_SAME_SIZE(own_type, type) static_assert(sizeof(own::own_type) == sizeof(type))

MEMPROF_SAME_FIELD(launch_shape, x, dim3, x);
MEMPROF_SAME_FIELD(launch_shape, z, dim3, z);
MEMPROF_SAME_SIZE(launch_shape, dim3);
MEMPROF_SAME_FIELD(launch_configuration, grid, cudaLaunchConfig_t, gridDim);
MEMPROF_SAME_FIELD(launch_configuration, block, cudaLaunchConfig_t, blockDim);
MEMPROF_SAME_FIELD(launch_configuration, shared_bytes, cudaLaunchConfig_t, dynamicSmemBytes);
MEMPROF_SAME_FIELD(launch_configuration, stream, cudaLaunchConfig_t, stream);
MEMPROF_SAME_FIELD(extent, width, cudaExtent, width);
MEMPROF_SAME_FIELD(extent, height, cudaExtent, height);
MEMPROF_SAME_FIELD(extent, depth, cudaExtent, depth);
MEMPROF_SAME_SIZE(extent, cudaExtent);
MEMPROF_SAME_FIELD(position, x, cudaPos, x);
MEMPROF_SAME_FIELD(position, z, cudaPos, z);
MEMPROF_SAME_FIELD(pitched_pointer, address, cudaPitchedPtr, ptr);
MEMPROF_SAME_FIELD(pitched_pointer, pitch, cudaPitchedPtr, pitch);
MEMPROF_SAME_FIELD(pitched_pointer, width, cudaPitchedPtr, xsize);
MEMPROF_SAME_FIELD(pitched_pointer, height, cudaPitchedPtr, ysize);
MEMPROF_SAME_SIZE(pitched_pointer, cudaPitchedPtr);
MEMPROF_SAME_FIELD(copy_3d, from_array, cudaMemcpy3DParms, srcArray);
MEMPROF_SAME_FIELD(copy_3d, from_position, cudaMemcpy3DParms, srcPos);
MEMPROF_SAME_FIELD(copy_3d, from, cudaMemcpy3DParms, srcPtr);
MEMPROF_SAME_FIELD(copy_3d, to_array, cudaMemcpy3DParms, dstArray);
MEMPROF_SAME_FIELD(copy_3d, to_position, cudaMemcpy3DParms, dstPos);
MEMPROF_SAME_FIELD(copy_3d, to, cudaMemcpy3DParms, dstPtr);
MEMPROF_SAME_FIELD(copy_3d, extent, cudaMemcpy3DParms, extent);
MEMPROF_SAME_FIELD(peer_copy_3d, from_array, cudaMemcpy3DPeerParms, srcArray);
MEMPROF_SAME_FIELD(peer_copy_3d, from_position, cudaMemcpy3DPeerParms, srcPos);
MEMPROF_SAME_FIELD(peer_copy_3d, from, cudaMemcpy3DPeerParms, srcPtr);
MEMPROF_SAME_FIELD(peer_copy_3d, to_array, cudaMemcpy3DPeerParms, dstArray);
MEMPROF_SAME_FIELD(peer_copy_3d, to_position, cudaMemcpy3DPeerParms, dstPos);
MEMPROF_SAME_FIELD(peer_copy_3d, to, cudaMemcpy3DPeerParms, dstPtr);
MEMPROF_SAME_FIELD(peer_copy_3d, extent, cudaMemcpy3DPeerParms, extent);
MEMPROF_SAME_FIELD(channel_bits, x, cudaChannelFormatDesc, x);
MEMPROF_SAME_FIELD(channel_bits, w, cudaChannelFormatDesc, w);
MEMPROF_SAME_FIELD(channel_bits, kind, cudaChannelFormatDesc, f);
MEMPROF_SAME_SIZE(channel_bits, cudaChannelFormatDesc);
MEMPROF_SAME_FIELD(pointer_attributes, type, cudaPointerAttributes, type);
MEMPROF_SAME_FIELD(pointer_attributes, device, cudaPointerAttributes, device);
MEMPROF_SAME_FIELD(pointer_attributes, device_pointer, cudaPointerAttributes, devicePointer);
MEMPROF_SAME_FIELD(pointer_attributes, host_pointer, cudaPointerAttributes, hostPointer);
MEMPROF_SAME_FIELD(function_attributes, shared_bytes, cudaFuncAttributes, sharedSizeBytes);
MEMPROF_SAME_FIELD(function_attributes, threads_per_block, cudaFuncAttributes, maxThreadsPerBlock);
MEMPROF_SAME_FIELD(function_attributes, registers, cudaFuncAttributes, numRegs);
MEMPROF_SAME_FIELD(function_attributes, ptx_version, cudaFuncAttributes, ptxVersion);
MEMPROF_SAME_FIELD(function_attributes, binary_version, cudaFuncAttributes, binaryVersion);
MEMPROF_SAME_FIELD(function_attributes, dynamic_shared_bytes, cudaFuncAttributes, maxDynamicSharedSizeBytes);
MEMPROF_SAME_SIZE(function_attributes, cudaFuncAttributes);
MEMPROF_SAME_FIELD(allocation_properties, type, cudaMemPoolProps, allocType);
MEMPROF_SAME_FIELD(allocation_properties, where, cudaMemPoolProps, location);
MEMPROF_SAME_FIELD(location, type, cudaMemLocation, type);
MEMPROF_SAME_FIELD(location, id, cudaMemLocation, id);
MEMPROF_SAME_SIZE(location, cudaMemLocation);

#if CUDART_VERSION >= 13000
using properties = own::device_properties_13;
#else
using properties = own::device_properties_12;
static_assert(offsetof(properties, clock_rate) == offsetof(cudaDeviceProp, clockRate));
static_assert(offsetof(properties, memory_clock_rate) == offsetof(cudaDeviceProp, memoryClockRate));
static_assert(offsetof(properties, device_overlap) == offsetof(cudaDeviceProp, deviceOverlap));
#endif
static_assert(sizeof(properties) == sizeof(cudaDeviceProp));
#define MEMPROF_SAME_PROPERTY(own_field, field)                                      \
  static_assert(offsetof(properties, own_field) == offsetof(cudaDeviceProp, field)); \
  static_assert(sizeof(properties::own_field) == sizeof(cudaDeviceProp::field))

MEMPROF_SAME_PROPERTY(name, name);
MEMPROF_SAME_PROPERTY(total_memory, totalGlobalMem);
MEMPROF_SAME_PROPERTY(shared_per_block, sharedMemPerBlock);
MEMPROF_SAME_PROPERTY(registers_per_block, regsPerBlock);
MEMPROF_SAME_PROPERTY(warp_size, warpSize);
MEMPROF_SAME_PROPERTY(max_pitch, memPitch);
MEMPROF_SAME_PROPERTY(threads_per_block, maxThreadsPerBlock);
MEMPROF_SAME_PROPERTY(block, maxThreadsDim);
MEMPROF_SAME_PROPERTY(grid, maxGridSize);
MEMPROF_SAME_PROPERTY(constant_memory, totalConstMem);
MEMPROF_SAME_PROPERTY(major, major);
MEMPROF_SAME_PROPERTY(minor, minor);
MEMPROF_SAME_PROPERTY(texture_alignment, textureAlignment);
MEMPROF_SAME_PROPERTY(texture_pitch_alignment, texturePitchAlignment);
MEMPROF_SAME_PROPERTY(multiprocessors, multiProcessorCount);
MEMPROF_SAME_PROPERTY(can_map_host_memory, canMapHostMemory);
MEMPROF_SAME_PROPERTY(surface_alignment, surfaceAlignment);
MEMPROF_SAME_PROPERTY(concurrent_kernels, concurrentKernels);
MEMPROF_SAME_PROPERTY(copy_engines, asyncEngineCount);
MEMPROF_SAME_PROPERTY(unified_addressing, unifiedAddressing);
MEMPROF_SAME_PROPERTY(memory_bus_width, memoryBusWidth);
MEMPROF_SAME_PROPERTY(l2_cache, l2CacheSize);
MEMPROF_SAME_PROPERTY(threads_per_multiprocessor, maxThreadsPerMultiProcessor);
MEMPROF_SAME_PROPERTY(stream_priorities, streamPrioritiesSupported);
MEMPROF_SAME_PROPERTY(shared_per_multiprocessor, sharedMemPerMultiprocessor);
MEMPROF_SAME_PROPERTY(registers_per_multiprocessor, regsPerMultiprocessor);
MEMPROF_SAME_PROPERTY(managed_memory, managedMemory);
MEMPROF_SAME_PROPERTY(concurrent_managed_access, concurrentManagedAccess);
MEMPROF_SAME_PROPERTY(host_pointer_for_registered, canUseHostPointerForRegisteredMem);
MEMPROF_SAME_PROPERTY(cooperative_launch, cooperativeLaunch);
MEMPROF_SAME_PROPERTY(shared_per_block_optin, sharedMemPerBlockOptin);
MEMPROF_SAME_PROPERTY(blocks_per_multiprocessor, maxBlocksPerMultiProcessor);
MEMPROF_SAME_PROPERTY(reserved_shared_per_block, reservedSharedMemPerBlock);
MEMPROF_SAME_PROPERTY(host_register, hostRegisterSupported);
MEMPROF_SAME_PROPERTY(memory_pools, memoryPoolsSupported);

#define MEMPROF_SAME_VALUE(own_type, own_value, value) \
  static_assert(static_cast<int>(own::own_type::own_value) == static_cast<int>(value))

MEMPROF_SAME_VALUE(runtime_result, done, cudaSuccess);
MEMPROF_SAME_VALUE(runtime_result, invalid_value, cudaErrorInvalidValue);
MEMPROF_SAME_VALUE(runtime_result, memory_allocation, cudaErrorMemoryAllocation);
MEMPROF_SAME_VALUE(runtime_result, invalid_configuration, cudaErrorInvalidConfiguration);
MEMPROF_SAME_VALUE(runtime_result, invalid_symbol, cudaErrorInvalidSymbol);
MEMPROF_SAME_VALUE(runtime_result, no_device, cudaErrorNoDevice);
MEMPROF_SAME_VALUE(runtime_result, invalid_device, cudaErrorInvalidDevice);
MEMPROF_SAME_VALUE(runtime_result, invalid_resource_handle, cudaErrorInvalidResourceHandle);
MEMPROF_SAME_VALUE(pool_attribute, reuse_follow_event_dependencies, cudaMemPoolReuseFollowEventDependencies);
MEMPROF_SAME_VALUE(pool_attribute, reuse_allow_opportunistic, cudaMemPoolReuseAllowOpportunistic);
MEMPROF_SAME_VALUE(pool_attribute, reuse_allow_internal_dependencies, cudaMemPoolReuseAllowInternalDependencies);
MEMPROF_SAME_VALUE(pool_attribute, release_threshold, cudaMemPoolAttrReleaseThreshold);
MEMPROF_SAME_VALUE(pool_attribute, reserved_current, cudaMemPoolAttrReservedMemCurrent);
MEMPROF_SAME_VALUE(pool_attribute, reserved_high, cudaMemPoolAttrReservedMemHigh);
MEMPROF_SAME_VALUE(pool_attribute, used_current, cudaMemPoolAttrUsedMemCurrent);
MEMPROF_SAME_VALUE(pool_attribute, used_high, cudaMemPoolAttrUsedMemHigh);
MEMPROF_SAME_VALUE(device_attribute, threads_per_block, cudaDevAttrMaxThreadsPerBlock);
MEMPROF_SAME_VALUE(device_attribute, block_x, cudaDevAttrMaxBlockDimX);
MEMPROF_SAME_VALUE(device_attribute, block_y, cudaDevAttrMaxBlockDimY);
MEMPROF_SAME_VALUE(device_attribute, block_z, cudaDevAttrMaxBlockDimZ);
MEMPROF_SAME_VALUE(device_attribute, grid_x, cudaDevAttrMaxGridDimX);
MEMPROF_SAME_VALUE(device_attribute, grid_y, cudaDevAttrMaxGridDimY);
MEMPROF_SAME_VALUE(device_attribute, grid_z, cudaDevAttrMaxGridDimZ);
MEMPROF_SAME_VALUE(device_attribute, shared_per_block, cudaDevAttrMaxSharedMemoryPerBlock);
MEMPROF_SAME_VALUE(device_attribute, constant_memory, cudaDevAttrTotalConstantMemory);
MEMPROF_SAME_VALUE(device_attribute, warp_size, cudaDevAttrWarpSize);
MEMPROF_SAME_VALUE(device_attribute, max_pitch, cudaDevAttrMaxPitch);
MEMPROF_SAME_VALUE(device_attribute, registers_per_block, cudaDevAttrMaxRegistersPerBlock);
MEMPROF_SAME_VALUE(device_attribute, clock_rate, cudaDevAttrClockRate);
MEMPROF_SAME_VALUE(device_attribute, texture_alignment, cudaDevAttrTextureAlignment);
MEMPROF_SAME_VALUE(device_attribute, gpu_overlap, cudaDevAttrGpuOverlap);
MEMPROF_SAME_VALUE(device_attribute, multiprocessors, cudaDevAttrMultiProcessorCount);
MEMPROF_SAME_VALUE(device_attribute, can_map_host_memory, cudaDevAttrCanMapHostMemory);
MEMPROF_SAME_VALUE(device_attribute, surface_alignment, cudaDevAttrSurfaceAlignment);
MEMPROF_SAME_VALUE(device_attribute, concurrent_kernels, cudaDevAttrConcurrentKernels);
MEMPROF_SAME_VALUE(device_attribute, memory_clock_rate, cudaDevAttrMemoryClockRate);
MEMPROF_SAME_VALUE(device_attribute, memory_bus_width, cudaDevAttrGlobalMemoryBusWidth);
MEMPROF_SAME_VALUE(device_attribute, l2_cache, cudaDevAttrL2CacheSize);
MEMPROF_SAME_VALUE(device_attribute, threads_per_multiprocessor, cudaDevAttrMaxThreadsPerMultiProcessor);
MEMPROF_SAME_VALUE(device_attribute, copy_engines, cudaDevAttrAsyncEngineCount);
MEMPROF_SAME_VALUE(device_attribute, unified_addressing, cudaDevAttrUnifiedAddressing);
MEMPROF_SAME_VALUE(device_attribute, texture_pitch_alignment, cudaDevAttrTexturePitchAlignment);
MEMPROF_SAME_VALUE(device_attribute, compute_capability_major, cudaDevAttrComputeCapabilityMajor);
MEMPROF_SAME_VALUE(device_attribute, compute_capability_minor, cudaDevAttrComputeCapabilityMinor);
MEMPROF_SAME_VALUE(device_attribute, stream_priorities, cudaDevAttrStreamPrioritiesSupported);
MEMPROF_SAME_VALUE(device_attribute, shared_per_multiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
MEMPROF_SAME_VALUE(device_attribute, registers_per_multiprocessor, cudaDevAttrMaxRegistersPerMultiprocessor);
MEMPROF_SAME_VALUE(device_attribute, managed_memory, cudaDevAttrManagedMemory);
MEMPROF_SAME_VALUE(device_attribute, concurrent_managed_access, cudaDevAttrConcurrentManagedAccess);
MEMPROF_SAME_VALUE(device_attribute, host_pointer_for_registered, cudaDevAttrCanUseHostPointerForRegisteredMem);
MEMPROF_SAME_VALUE(device_attribute, cooperative_launch, cudaDevAttrCooperativeLaunch);
MEMPROF_SAME_VALUE(device_attribute, shared_per_block_optin, cudaDevAttrMaxSharedMemoryPerBlockOptin);
MEMPROF_SAME_VALUE(device_attribute, host_register, cudaDevAttrHostRegisterSupported);
MEMPROF_SAME_VALUE(device_attribute, blocks_per_multiprocessor, cudaDevAttrMaxBlocksPerMultiprocessor);
MEMPROF_SAME_VALUE(device_attribute, reserved_shared_per_block, cudaDevAttrReservedSharedMemoryPerBlock);
MEMPROF_SAME_VALUE(device_attribute, memory_pools, cudaDevAttrMemoryPoolsSupported);

static_assert(own::runtime_array_without_memory == (cudaArraySparse | cudaArrayDeferredMapping));
static_assert(own::last_channel_kind_with_size == cudaChannelFormatKindSignedNormalized16X4);
static_assert(own::reads_and_writes == cudaMemAccessFlagsProtReadWrite);
static_assert(cudaMemoryTypeHost == 1 && cudaMemoryTypeDevice == 2 && cudaMemoryTypeManaged == 3);
static_assert(own::managed_type == cudaMemAllocationTypePinned + 1);
static_assert(cudaMemLocationTypeDevice == 1 && cudaLimitMallocHeapSize == 2);

/// Whether a parameter or result arrives where it is expected: the types are of the same sort and size. Pointers to numbers point
/// to such of the same size.
template <class Own, class Cuda>
constexpr bool is_same_type() {
  if constexpr (std::is_pointer_v<Own> && std::is_pointer_v<Cuda>) {
    using own_target = std::remove_cv_t<std::remove_pointer_t<Own>>;
    using target = std::remove_cv_t<std::remove_pointer_t<Cuda>>;
    constexpr bool is_number = (std::is_arithmetic_v<own_target> || std::is_enum_v<own_target>)&&(std::is_arithmetic_v<target> ||
                                                                                                  std::is_enum_v<target>);
    if constexpr (is_number) return sizeof(own_target) == sizeof(target);
    return std::is_arithmetic_v<own_target> == std::is_arithmetic_v<target> || std::is_enum_v<target>;
  } else if constexpr (std::is_class_v<Own> || std::is_class_v<Cuda>) {
    return std::is_class_v<Own> && std::is_class_v<Cuda> && sizeof(Own) == sizeof(Cuda) && alignof(Own) == alignof(Cuda);
  } else {
    return std::is_pointer_v<Own> == std::is_pointer_v<Cuda> && sizeof(Own) == sizeof(Cuda);
  }
}

template <class OwnResult, class... Own, class Result, class... Cuda>
constexpr bool is_same_call(OwnResult (*)(Own...), Result (*)(Cuda...)) {
  if constexpr (sizeof...(Own) != sizeof...(Cuda)) {
    return false;
  } else {
    return is_same_type<OwnResult, Result>() && (is_same_type<Own, Cuda>() && ...);
  }
}

#define MEMPROF_SAME_CALL(name) static_assert(is_same_call(&own::runtime::name, &::name))

MEMPROF_SAME_CALL(cudaMalloc);
MEMPROF_SAME_CALL(cudaMallocPitch);
MEMPROF_SAME_CALL(cudaMalloc3D);
MEMPROF_SAME_CALL(cudaMallocManaged);
MEMPROF_SAME_CALL(cudaMallocHost);
MEMPROF_SAME_CALL(cudaHostAlloc);
MEMPROF_SAME_CALL(cudaMallocArray);
MEMPROF_SAME_CALL(cudaMalloc3DArray);
MEMPROF_SAME_CALL(cudaMallocMipmappedArray);
MEMPROF_SAME_CALL(cudaMallocAsync);
MEMPROF_SAME_CALL(cudaMallocFromPoolAsync);
MEMPROF_SAME_CALL(cudaFree);
MEMPROF_SAME_CALL(cudaFreeHost);
MEMPROF_SAME_CALL(cudaFreeArray);
MEMPROF_SAME_CALL(cudaFreeMipmappedArray);
MEMPROF_SAME_CALL(cudaFreeAsync);
MEMPROF_SAME_CALL(cudaMemGetInfo);
MEMPROF_SAME_CALL(cudaPointerGetAttributes);
MEMPROF_SAME_CALL(cudaGetMipmappedArrayLevel);
MEMPROF_SAME_CALL(cudaHostRegister);
MEMPROF_SAME_CALL(cudaHostUnregister);
MEMPROF_SAME_CALL(cudaHostGetDevicePointer);
MEMPROF_SAME_CALL(cudaHostGetFlags);
MEMPROF_SAME_CALL(cudaStreamAttachMemAsync);
MEMPROF_SAME_CALL(cudaDeviceGetDefaultMemPool);
MEMPROF_SAME_CALL(cudaDeviceGetMemPool);
MEMPROF_SAME_CALL(cudaDeviceSetMemPool);
MEMPROF_SAME_CALL(cudaMemPoolCreate);
MEMPROF_SAME_CALL(cudaMemPoolDestroy);
MEMPROF_SAME_CALL(cudaMemPoolTrimTo);
MEMPROF_SAME_CALL(cudaMemPoolGetAttribute);
MEMPROF_SAME_CALL(cudaMemPoolSetAttribute);
MEMPROF_SAME_CALL(cudaMemPoolSetAccess);
MEMPROF_SAME_CALL(cudaMemPoolGetAccess);
MEMPROF_SAME_CALL(cudaMemcpy);
MEMPROF_SAME_CALL(cudaMemcpyAsync);
MEMPROF_SAME_CALL(cudaMemcpyPeer);
MEMPROF_SAME_CALL(cudaMemcpyPeerAsync);
MEMPROF_SAME_CALL(cudaMemcpy2D);
MEMPROF_SAME_CALL(cudaMemcpy2DAsync);
MEMPROF_SAME_CALL(cudaMemcpy3D);
MEMPROF_SAME_CALL(cudaMemcpy3DAsync);
MEMPROF_SAME_CALL(cudaMemcpy3DPeer);
MEMPROF_SAME_CALL(cudaMemcpy3DPeerAsync);
MEMPROF_SAME_CALL(cudaMemcpyToArray);
MEMPROF_SAME_CALL(cudaMemcpyToArrayAsync);
MEMPROF_SAME_CALL(cudaMemcpyFromArray);
MEMPROF_SAME_CALL(cudaMemcpyFromArrayAsync);
MEMPROF_SAME_CALL(cudaMemcpyArrayToArray);
MEMPROF_SAME_CALL(cudaMemcpy2DToArray);
MEMPROF_SAME_CALL(cudaMemcpy2DToArrayAsync);
MEMPROF_SAME_CALL(cudaMemcpy2DFromArray);
MEMPROF_SAME_CALL(cudaMemcpy2DFromArrayAsync);
MEMPROF_SAME_CALL(cudaMemcpy2DArrayToArray);
MEMPROF_SAME_CALL(cudaMemcpyToSymbol);
MEMPROF_SAME_CALL(cudaMemcpyToSymbolAsync);
MEMPROF_SAME_CALL(cudaMemcpyFromSymbol);
MEMPROF_SAME_CALL(cudaMemcpyFromSymbolAsync);
MEMPROF_SAME_CALL(cudaMemset);
MEMPROF_SAME_CALL(cudaMemsetAsync);
MEMPROF_SAME_CALL(cudaMemset2D);
MEMPROF_SAME_CALL(cudaMemset2DAsync);
MEMPROF_SAME_CALL(cudaMemset3D);
MEMPROF_SAME_CALL(cudaMemset3DAsync);
MEMPROF_SAME_CALL(cudaCreateChannelDesc);
MEMPROF_SAME_CALL(cudaCreateTextureObject);
MEMPROF_SAME_CALL(cudaDestroyTextureObject);
MEMPROF_SAME_CALL(cudaCreateSurfaceObject);
MEMPROF_SAME_CALL(cudaDestroySurfaceObject);
MEMPROF_SAME_CALL(cudaGetSymbolAddress);
MEMPROF_SAME_CALL(cudaGetSymbolSize);
MEMPROF_SAME_CALL(cudaGetDeviceCount);
MEMPROF_SAME_CALL(cudaGetDevice);
MEMPROF_SAME_CALL(cudaSetDevice);
MEMPROF_SAME_CALL(cudaInitDevice);
MEMPROF_SAME_CALL(cudaSetDeviceFlags);
MEMPROF_SAME_CALL(cudaGetDeviceFlags);
MEMPROF_SAME_CALL(cudaDeviceReset);
MEMPROF_SAME_CALL(cudaDeviceSynchronize);
MEMPROF_SAME_CALL(cudaDeviceGetAttribute);
MEMPROF_SAME_CALL(cudaDeviceGetPCIBusId);
MEMPROF_SAME_CALL(cudaDeviceGetLimit);
MEMPROF_SAME_CALL(cudaDeviceSetLimit);
MEMPROF_SAME_CALL(cudaDeviceGetCacheConfig);
MEMPROF_SAME_CALL(cudaDeviceSetCacheConfig);
MEMPROF_SAME_CALL(cudaDeviceGetStreamPriorityRange);
MEMPROF_SAME_CALL(cudaDeviceCanAccessPeer);
MEMPROF_SAME_CALL(cudaDeviceEnablePeerAccess);
MEMPROF_SAME_CALL(cudaDeviceDisablePeerAccess);
MEMPROF_SAME_CALL(cudaRuntimeGetVersion);
MEMPROF_SAME_CALL(cudaDriverGetVersion);
MEMPROF_SAME_CALL(cudaGetLastError);
MEMPROF_SAME_CALL(cudaPeekAtLastError);
MEMPROF_SAME_CALL(cudaGetErrorName);
MEMPROF_SAME_CALL(cudaGetErrorString);
MEMPROF_SAME_CALL(cudaStreamCreate);
MEMPROF_SAME_CALL(cudaStreamCreateWithFlags);
MEMPROF_SAME_CALL(cudaStreamCreateWithPriority);
MEMPROF_SAME_CALL(cudaStreamDestroy);
MEMPROF_SAME_CALL(cudaStreamSynchronize);
MEMPROF_SAME_CALL(cudaStreamQuery);
MEMPROF_SAME_CALL(cudaStreamWaitEvent);
MEMPROF_SAME_CALL(cudaStreamGetFlags);
MEMPROF_SAME_CALL(cudaStreamGetPriority);
MEMPROF_SAME_CALL(cudaStreamGetId);
MEMPROF_SAME_CALL(cudaStreamGetDevice);
MEMPROF_SAME_CALL(cudaStreamIsCapturing);
MEMPROF_SAME_CALL(cudaStreamAddCallback);
MEMPROF_SAME_CALL(cudaLaunchHostFunc);
MEMPROF_SAME_CALL(cudaEventCreate);
MEMPROF_SAME_CALL(cudaEventCreateWithFlags);
MEMPROF_SAME_CALL(cudaEventDestroy);
MEMPROF_SAME_CALL(cudaEventRecord);
MEMPROF_SAME_CALL(cudaEventRecordWithFlags);
MEMPROF_SAME_CALL(cudaEventQuery);
MEMPROF_SAME_CALL(cudaEventSynchronize);
MEMPROF_SAME_CALL(cudaEventElapsedTime);
MEMPROF_SAME_CALL(cudaLaunchKernel);
MEMPROF_SAME_CALL(cudaLaunchCooperativeKernel);
MEMPROF_SAME_CALL(cudaLaunchKernelExC);
MEMPROF_SAME_CALL(cudaFuncGetAttributes);
MEMPROF_SAME_CALL(cudaFuncSetAttribute);
MEMPROF_SAME_CALL(cudaFuncSetCacheConfig);
MEMPROF_SAME_CALL(cudaGetFuncBySymbol);
MEMPROF_SAME_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor);
MEMPROF_SAME_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
#if CUDART_VERSION >= 13000
MEMPROF_SAME_CALL(cudaMemAdvise);
MEMPROF_SAME_CALL(cudaMemPrefetchAsync);
MEMPROF_SAME_CALL(cudaGetKernel);
MEMPROF_SAME_CALL(cudaGetDeviceProperties);
#else
MEMPROF_SAME_CALL(cudaGetDeviceProperties_v2);
MEMPROF_SAME_CALL(cudaMemAdvise_v2);
MEMPROF_SAME_CALL(cudaMemPrefetchAsync_v2);
#endif

}  // namespace
