// What memprof declares of CUDA in place of CUDA's headers, compared with them.
#include <memprof/backend/cuda/array_bytes.hpp>
#include <memprof/backend/cuda/driver_interface.hpp>

#include <cuda.h>
#include <cupti.h>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>

namespace own = memprof::detail::cuda;

namespace {

#define MEMPROF_SAME_FIELD(own_type, own_field, type, field)                  \
  static_assert(offsetof(own::own_type, own_field) == offsetof(type, field)); \
  static_assert(sizeof(own::own_type::own_field) == sizeof(type::field))

MEMPROF_SAME_FIELD(callback_data, site, CUpti_CallbackData, callbackSite);
MEMPROF_SAME_FIELD(callback_data, parameters, CUpti_CallbackData, functionParams);
MEMPROF_SAME_FIELD(callback_data, result, CUpti_CallbackData, functionReturnValue);
MEMPROF_SAME_FIELD(callback_data, context, CUpti_CallbackData, context);
MEMPROF_SAME_FIELD(callback_data, context_number, CUpti_CallbackData, contextUid);
MEMPROF_SAME_FIELD(callback_data, kept, CUpti_CallbackData, correlationData);
MEMPROF_SAME_FIELD(callback_data, correlation, CUpti_CallbackData, correlationId);
MEMPROF_SAME_FIELD(resource_data, context, CUpti_ResourceData, context);
MEMPROF_SAME_FIELD(resource_data, stream, CUpti_ResourceData, resourceHandle);
MEMPROF_SAME_FIELD(resource_data, context, CUpti_SynchronizeData, context);
MEMPROF_SAME_FIELD(resource_data, stream, CUpti_SynchronizeData, stream);
#if CUPTI_API_VERSION >= 130000
MEMPROF_SAME_FIELD(subscriber_parameters, size, CUpti_SubscriberParams, structSize);
MEMPROF_SAME_FIELD(subscriber_parameters, name, CUpti_SubscriberParams, subscriberName);
MEMPROF_SAME_FIELD(subscriber_parameters, holder, CUpti_SubscriberParams, oldSubscriberName);
MEMPROF_SAME_FIELD(subscriber_parameters, holder_size, CUpti_SubscriberParams, oldSubscriberSize);
#endif
#if CUPTI_API_VERSION >= 130200
MEMPROF_SAME_FIELD(subscriber_parameters, shares, CUpti_SubscriberParams, allowMultipleSubscribers);
static_assert(sizeof(own::subscriber_parameters) == CUpti_SubscriberParams_STRUCT_SIZE);
#elif CUPTI_API_VERSION >= 130000
static_assert(own::subscriber_parameters::size_without_sharing == CUpti_SubscriberParams_STRUCT_SIZE);
#endif
MEMPROF_SAME_FIELD(allocation_properties, type, CUmemAllocationProp, type);
MEMPROF_SAME_FIELD(allocation_properties, where, CUmemAllocationProp, location);
MEMPROF_SAME_FIELD(allocation_properties, type, CUmemPoolProps, allocType);
MEMPROF_SAME_FIELD(allocation_properties, where, CUmemPoolProps, location);
MEMPROF_SAME_FIELD(location, type, CUmemLocation, type);
MEMPROF_SAME_FIELD(location, id, CUmemLocation, id);
MEMPROF_SAME_FIELD(array_descriptor, width, CUDA_ARRAY_DESCRIPTOR, Width);
MEMPROF_SAME_FIELD(array_descriptor, height, CUDA_ARRAY_DESCRIPTOR, Height);
MEMPROF_SAME_FIELD(array_descriptor, format, CUDA_ARRAY_DESCRIPTOR, Format);
MEMPROF_SAME_FIELD(array_descriptor, channels, CUDA_ARRAY_DESCRIPTOR, NumChannels);
MEMPROF_SAME_FIELD(array_3d_descriptor, width, CUDA_ARRAY3D_DESCRIPTOR, Width);
MEMPROF_SAME_FIELD(array_3d_descriptor, height, CUDA_ARRAY3D_DESCRIPTOR, Height);
MEMPROF_SAME_FIELD(array_3d_descriptor, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth);
MEMPROF_SAME_FIELD(array_3d_descriptor, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
MEMPROF_SAME_FIELD(array_3d_descriptor, channels, CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
MEMPROF_SAME_FIELD(array_3d_descriptor, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);

MEMPROF_SAME_FIELD(alloc_parameters, address, cuMemAlloc_v2_params, dptr);
MEMPROF_SAME_FIELD(alloc_parameters, bytes, cuMemAlloc_v2_params, bytesize);
MEMPROF_SAME_FIELD(alloc_parameters, bytes, cuMemAllocManaged_params, bytesize);
MEMPROF_SAME_FIELD(alloc_parameters, address, cuMemAllocHost_v2_params, pp);
MEMPROF_SAME_FIELD(alloc_parameters, bytes, cuMemAllocHost_v2_params, bytesize);
MEMPROF_SAME_FIELD(alloc_parameters, address, cuMemHostAlloc_params, pp);
MEMPROF_SAME_FIELD(alloc_parameters, bytes, cuMemHostAlloc_params, bytesize);
MEMPROF_SAME_FIELD(alloc_pitch_parameters, address, cuMemAllocPitch_v2_params, dptr);
MEMPROF_SAME_FIELD(alloc_pitch_parameters, pitch, cuMemAllocPitch_v2_params, pPitch);
MEMPROF_SAME_FIELD(alloc_pitch_parameters, width, cuMemAllocPitch_v2_params, WidthInBytes);
MEMPROF_SAME_FIELD(alloc_pitch_parameters, height, cuMemAllocPitch_v2_params, Height);
MEMPROF_SAME_FIELD(alloc_async_parameters, bytes, cuMemAllocAsync_params, bytesize);
MEMPROF_SAME_FIELD(alloc_async_parameters, stream, cuMemAllocAsync_params, hStream);
MEMPROF_SAME_FIELD(alloc_from_pool_parameters, bytes, cuMemAllocFromPoolAsync_params, bytesize);
MEMPROF_SAME_FIELD(alloc_from_pool_parameters, pool, cuMemAllocFromPoolAsync_params, pool);
MEMPROF_SAME_FIELD(alloc_from_pool_parameters, stream, cuMemAllocFromPoolAsync_params, hStream);
MEMPROF_SAME_FIELD(free_parameters, freed, cuMemFree_v2_params, dptr);
MEMPROF_SAME_FIELD(free_parameters, freed, cuMemFreeHost_params, p);
MEMPROF_SAME_FIELD(free_parameters, freed, cuArrayDestroy_params, hArray);
MEMPROF_SAME_FIELD(free_parameters, freed, cuMipmappedArrayDestroy_params, hMipmappedArray);
MEMPROF_SAME_FIELD(free_parameters, freed, cuMemRelease_params, handle);
MEMPROF_SAME_FIELD(free_parameters, freed, cuMemPoolDestroy_params, pool);
MEMPROF_SAME_FIELD(free_async_parameters, freed, cuMemFreeAsync_params, dptr);
MEMPROF_SAME_FIELD(free_async_parameters, stream, cuMemFreeAsync_params, hStream);
MEMPROF_SAME_FIELD(array_parameters, described, cuArrayCreate_v2_params, pAllocateArray);
MEMPROF_SAME_FIELD(array_3d_parameters, described, cuArray3DCreate_v2_params, pAllocateArray);
MEMPROF_SAME_FIELD(array_3d_parameters, described, cuMipmappedArrayCreate_params, pMipmappedArrayDesc);
MEMPROF_SAME_FIELD(array_3d_parameters, levels, cuMipmappedArrayCreate_params, numMipmapLevels);
MEMPROF_SAME_FIELD(create_parameters, handle, cuMemCreate_params, handle);
MEMPROF_SAME_FIELD(create_parameters, bytes, cuMemCreate_params, size);
MEMPROF_SAME_FIELD(create_parameters, properties, cuMemCreate_params, prop);
MEMPROF_SAME_FIELD(map_parameters, address, cuMemMap_params, ptr);
MEMPROF_SAME_FIELD(map_parameters, bytes, cuMemMap_params, size);
MEMPROF_SAME_FIELD(map_parameters, handle, cuMemMap_params, handle);
MEMPROF_SAME_FIELD(unmap_parameters, bytes, cuMemUnmap_params, size);
MEMPROF_SAME_FIELD(retain_parameters, handle, cuMemRetainAllocationHandle_params, handle);
MEMPROF_SAME_FIELD(pool_parameters, pool, cuMemPoolCreate_params, pool);
MEMPROF_SAME_FIELD(pool_parameters, properties, cuMemPoolCreate_params, poolProps);

#define MEMPROF_SAME_CALL(own_call, call) \
  static_assert(static_cast<int>(own::driver_call::own_call) == CUPTI_DRIVER_TRACE_CBID_##call)

MEMPROF_SAME_CALL(free_host, cuMemFreeHost);
MEMPROF_SAME_CALL(host_alloc, cuMemHostAlloc);
MEMPROF_SAME_CALL(array_destroy, cuArrayDestroy);
MEMPROF_SAME_CALL(alloc, cuMemAlloc_v2);
MEMPROF_SAME_CALL(alloc_pitch, cuMemAllocPitch_v2);
MEMPROF_SAME_CALL(free, cuMemFree_v2);
#if CUPTI_API_VERSION < 130500
MEMPROF_SAME_CALL(host_alloc_v2, cuMemHostAlloc_v2);
#endif
#if CUPTI_API_VERSION >= 130000
MEMPROF_SAME_CALL(get_default_pool, cuMemGetDefaultMemPool);
MEMPROF_SAME_CALL(get_pool, cuMemGetMemPool);
MEMPROF_SAME_FIELD(get_pool_parameters, pool, cuMemGetMemPool_params, pool);
MEMPROF_SAME_FIELD(get_pool_parameters, where, cuMemGetMemPool_params, location);
MEMPROF_SAME_FIELD(get_pool_parameters, type, cuMemGetMemPool_params, type);
MEMPROF_SAME_FIELD(get_pool_parameters, type, cuMemGetDefaultMemPool_params, type);
#endif
MEMPROF_SAME_CALL(array_create, cuArrayCreate_v2);
MEMPROF_SAME_CALL(array_3d_create, cuArray3DCreate_v2);
MEMPROF_SAME_CALL(alloc_host, cuMemAllocHost_v2);
MEMPROF_SAME_CALL(mipmapped_array_create, cuMipmappedArrayCreate);
MEMPROF_SAME_CALL(mipmapped_array_destroy, cuMipmappedArrayDestroy);
MEMPROF_SAME_CALL(alloc_managed, cuMemAllocManaged);
MEMPROF_SAME_CALL(create, cuMemCreate);
MEMPROF_SAME_CALL(release, cuMemRelease);
MEMPROF_SAME_CALL(map, cuMemMap);
MEMPROF_SAME_CALL(unmap, cuMemUnmap);
MEMPROF_SAME_CALL(retain_handle, cuMemRetainAllocationHandle);
MEMPROF_SAME_CALL(alloc_async, cuMemAllocAsync);
MEMPROF_SAME_CALL(alloc_async_per_thread, cuMemAllocAsync_ptsz);
MEMPROF_SAME_CALL(free_async, cuMemFreeAsync);
MEMPROF_SAME_CALL(free_async_per_thread, cuMemFreeAsync_ptsz);
MEMPROF_SAME_CALL(pool_create, cuMemPoolCreate);
MEMPROF_SAME_CALL(pool_destroy, cuMemPoolDestroy);
MEMPROF_SAME_CALL(alloc_from_pool_async, cuMemAllocFromPoolAsync);
MEMPROF_SAME_CALL(alloc_from_pool_async_per_thread, cuMemAllocFromPoolAsync_ptsz);

static_assert(own::success == CUDA_SUCCESS && own::success == static_cast<int>(CUPTI_SUCCESS));
static_assert(own::out_of_memory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(own::call_begins == CUPTI_API_ENTER);
static_assert(own::another_subscriber == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
static_assert(own::invalid_parameter == CUPTI_ERROR_INVALID_PARAMETER);
static_assert(static_cast<int>(own::domain::driver) == CUPTI_CB_DOMAIN_DRIVER_API);
static_assert(static_cast<int>(own::domain::resource) == CUPTI_CB_DOMAIN_RESOURCE);
static_assert(static_cast<int>(own::domain::synchronize) == CUPTI_CB_DOMAIN_SYNCHRONIZE);
static_assert(own::context_destroy_starting == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
static_assert(own::stream_synchronized == CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED);
static_assert(own::context_synchronized == CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED);
static_assert(own::array_without_memory == (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING));
static_assert(own::managed_type == CU_MEM_ALLOCATION_TYPE_PINNED + 1);

}  // namespace

TEST_CASE("cuda: elements of arrays have the bytes of their format") {
  CHECK(own::element_bytes(CU_AD_FORMAT_UNSIGNED_INT8, 1) == 1);
  CHECK(own::element_bytes(CU_AD_FORMAT_SIGNED_INT16, 2) == 4);
  CHECK(own::element_bytes(CU_AD_FORMAT_HALF, 4) == 8);
  CHECK(own::element_bytes(CU_AD_FORMAT_FLOAT, 4) == 16);
  CHECK(own::element_bytes(CU_AD_FORMAT_UNORM_INT8X4, 4) == 4);
  CHECK(own::element_bytes(CU_AD_FORMAT_UNORM_INT16X2, 2) == 4);
  CHECK(own::element_bytes(CU_AD_FORMAT_SNORM_INT8X1, 1) == 1);
  CHECK(own::element_bytes(CU_AD_FORMAT_SNORM_INT16X4, 4) == 8);
}
