#pragma once

/// @file
/// The functions of CUDA's runtime that allocate, free and ask about memory, and those of its pools. Only
/// <memprof/backend/cuda_no_dispatch_runtime.hpp> includes it.

#include <memprof/backend/cuda/places.hpp>
#include <memprof/backend/cuda/replaced_function.hpp>
#include <memprof/backend/cuda/runtime_interface.hpp>
#include <memprof/backend/cuda/simulated_allocations.hpp>
#include <memprof/backend/cuda/simulated_blocks.hpp>
#include <memprof/backend/cuda/simulated_questions.hpp>
#include <memprof/backend/cuda/simulated_runtime.hpp>
#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>

// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier)
namespace memprof::inline MEMPROF_ABI::detail::cuda::runtime {

MEMPROF_DETAIL_CUDA_CALL(cudaMalloc, (void** address, std::size_t bytes),
                         allocate(memory_kind::device, address, bytes, freeing_call::free))
MEMPROF_DETAIL_CUDA_CALL(cudaMallocPitch, (void** address, std::size_t* pitch, std::size_t width, std::size_t height),
                         allocate_rows(address, pitch, width, height))
MEMPROF_DETAIL_CUDA_CALL(cudaMalloc3D, (pitched_pointer * made, extent size), allocate_box(made, size))
MEMPROF_DETAIL_CUDA_CALL(cudaMallocManaged, (void** address, std::size_t bytes, unsigned),
                         allocate(memory_kind::managed, address, bytes, freeing_call::free))
MEMPROF_DETAIL_CUDA_CALL(cudaMallocHost, (void** address, std::size_t bytes),
                         allocate(memory_kind::pinned, address, bytes, freeing_call::free_host))
MEMPROF_DETAIL_CUDA_CALL(cudaHostAlloc, (void** address, std::size_t bytes, unsigned),
                         allocate(memory_kind::pinned, address, bytes, freeing_call::free_host))
MEMPROF_DETAIL_CUDA_CALL(cudaMallocArray,
                         (void** array, const channel_bits* bits, std::size_t width, std::size_t height, unsigned flags),
                         allocate_array(array, bits, {width, height, 0}, 1, flags, freeing_call::free_array))
MEMPROF_DETAIL_CUDA_CALL(cudaMalloc3DArray, (void** array, const channel_bits* bits, extent size, unsigned flags),
                         allocate_array(array, bits, size, 1, flags, freeing_call::free_array))
MEMPROF_DETAIL_CUDA_CALL(cudaMallocMipmappedArray,
                         (void** array, const channel_bits* bits, extent size, unsigned levels, unsigned flags),
                         allocate_array(array, bits, size, levels, flags, freeing_call::free_mipmapped_array))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMallocAsync, (void** address, std::size_t bytes, void* stream),
                                   allocate_on_stream(address, bytes, stream, unnamed))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMallocFromPoolAsync, (void** address, std::size_t bytes, void* pool, void* stream),
                                   pool == nullptr ? ended(runtime_result::invalid_value)
                                                   : allocate_on_stream(address, bytes, stream, unnamed, number_of(pool)))
MEMPROF_DETAIL_CUDA_CALL(cudaFree, (void* address), release(freeing_call::free, address))
MEMPROF_DETAIL_CUDA_CALL(cudaFreeHost, (void* address), release(freeing_call::free_host, address))
MEMPROF_DETAIL_CUDA_CALL(cudaFreeArray, (void* array), release(freeing_call::free_array, array))
MEMPROF_DETAIL_CUDA_CALL(cudaFreeMipmappedArray, (void* array), release(freeing_call::free_mipmapped_array, array))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaFreeAsync, (void* address, void* stream), release_on_stream(address, stream, unnamed))
MEMPROF_DETAIL_CUDA_CALL(cudaMemGetInfo, (std::size_t * free, std::size_t* total), memory_info(free, total))
MEMPROF_DETAIL_CUDA_CALL(cudaPointerGetAttributes, (pointer_attributes * found, const void* address),
                         describe_pointer(found, address))
MEMPROF_DETAIL_CUDA_CALL(cudaGetMipmappedArrayLevel, (void** level, const void* array, unsigned), give(level, array))
MEMPROF_DETAIL_CUDA_CALL(cudaHostRegister, (void*, std::size_t, unsigned), nothing())
MEMPROF_DETAIL_CUDA_CALL(cudaHostUnregister, (void*), nothing())
MEMPROF_DETAIL_CUDA_CALL(cudaHostGetDevicePointer, (void** found, void* address, unsigned), give(found, address))
MEMPROF_DETAIL_CUDA_CALL(cudaHostGetFlags, (unsigned* flags, void*), give(flags, 0U))
MEMPROF_DETAIL_CUDA_CALL(cudaMemAdvise, (const void*, std::size_t, int, location), nothing())
MEMPROF_DETAIL_CUDA_CALL(cudaMemAdvise_v2, (const void*, std::size_t, int, location), nothing())
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemPrefetchAsync, (const void*, std::size_t, location, unsigned, void*), nothing())
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaMemPrefetchAsync_v2, (const void*, std::size_t, location, unsigned, void*), nothing())
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaStreamAttachMemAsync, (void*, void*, std::size_t, unsigned), nothing())

// --- pools ----------------------------------------------------------------------------------------------------------------

MEMPROF_DETAIL_CUDA_CALL(cudaDeviceGetDefaultMemPool, (void** pool, int device), own_pool(pool, device))
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceGetMemPool, (void** pool, int device), current_pool(pool, device))
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceSetMemPool, (int device, void* pool), set_current_pool(device, pool))
MEMPROF_DETAIL_CUDA_CALL(cudaMemPoolCreate, (void** pool, const allocation_properties* described), make_pool(pool, described))
MEMPROF_DETAIL_CUDA_CALL(cudaMemPoolDestroy, (void* pool), remove_pool(pool))
MEMPROF_DETAIL_CUDA_CALL(cudaMemPoolTrimTo, (void*, std::size_t), nothing())
MEMPROF_DETAIL_CUDA_CALL(cudaMemPoolGetAttribute, (void* pool, int attribute, void* value),
                         called_with_pool(pool, value, [&](const simulated_pool& found) {
                           return read_attribute(found, static_cast<pool_attribute>(attribute), value);
                         }))
MEMPROF_DETAIL_CUDA_CALL(cudaMemPoolSetAttribute, (void* pool, int attribute, void* value),
                         called_with_pool(pool, value, [&](simulated_pool& found) {
                           return write_attribute(found, static_cast<pool_attribute>(attribute), value);
                         }))
MEMPROF_DETAIL_CUDA_CALL(cudaMemPoolSetAccess, (void*, const void*, std::size_t), nothing())
MEMPROF_DETAIL_CUDA_CALL(cudaMemPoolGetAccess, (int* flags, void*, location*), give(flags, reads_and_writes))

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda::runtime
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)
