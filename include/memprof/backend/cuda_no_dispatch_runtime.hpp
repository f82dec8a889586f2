#pragma once

/// @file
/// Replaces CUDA's runtime by one that has no device, for captures with `cuda_no_dispatch`. Include it in exactly one .cpp, which
/// includes no header of CUDA, and link the program without CUDA's own:
///
/// @code
/// nvcc -cudart none trainer.cu runtime.cpp -o trainer
/// @endcode
///
/// It has the calls that allocate, free, copy, launch and ask, as CUDA 12 and 13 have them; a program that makes others is not
/// linked. The functions cannot be inline, so a second include is a "multiple definition" error of the linker. With
/// `MEMPROF_ENABLED=0` nothing is replaced.

#include <memprof/backend/cuda_no_dispatch.hpp>
#include <memprof/config.hpp>

#if MEMPROF_ENABLED

#include <memprof/backend/cuda/device_properties.hpp>
#include <memprof/backend/cuda/replaced_allocations.hpp>
#include <memprof/backend/cuda/replaced_copies.hpp>
#include <memprof/backend/cuda/replaced_function.hpp>
#include <memprof/backend/cuda/runtime_interface.hpp>
#include <memprof/backend/cuda/simulated_allocations.hpp>
#include <memprof/backend/cuda/simulated_launches.hpp>
#include <memprof/backend/cuda/simulated_questions.hpp>
#include <memprof/backend/cuda/simulated_runtime.hpp>

#include <cstddef>
#include <cstdint>

/// Defined so that the linker's first error names the cause where this header is in two .cpp files.
extern "C" void memprof_cuda_runtime_belongs_in_exactly_one_cpp_file();
extern "C" void memprof_cuda_runtime_belongs_in_exactly_one_cpp_file() {}

extern "C" void memprof_cuda_runtime_is_replaced() {}

// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier)
namespace memprof::inline MEMPROF_ABI::detail::cuda::runtime {

// --- arrays, textures and variables of device code ------------------------------------------------------------------------

MEMPROF_DETAIL_CUDA_FUNCTION(channel_bits, cudaCreateChannelDesc, (int x, int y, int z, int w, int kind)) {
  return {x, y, z, w, kind};
}
MEMPROF_DETAIL_CUDA_CALL(cudaCreateTextureObject, (std::uint64_t * made, const void*, const void*, const void*),
                         give(made, std::uint64_t{1}))
MEMPROF_DETAIL_CUDA_CALL(cudaDestroyTextureObject, (std::uint64_t), nothing())
MEMPROF_DETAIL_CUDA_CALL(cudaCreateSurfaceObject, (std::uint64_t * made, const void*), give(made, std::uint64_t{1}))
MEMPROF_DETAIL_CUDA_CALL(cudaDestroySurfaceObject, (std::uint64_t), nothing())
MEMPROF_DETAIL_CUDA_CALL(cudaGetSymbolAddress, (void** address, const void* variable), address_of_variable(address, variable))
MEMPROF_DETAIL_CUDA_CALL(cudaGetSymbolSize, (std::size_t * bytes, const void* variable), size_of_variable(bytes, variable))

// --- devices --------------------------------------------------------------------------------------------------------------

MEMPROF_DETAIL_CUDA_CALL(cudaGetDeviceCount, (int* count), device_count(count))
MEMPROF_DETAIL_CUDA_CALL(cudaGetDevice, (int* device), get_device(device))
MEMPROF_DETAIL_CUDA_CALL(cudaSetDevice, (int device), set_device(device))
MEMPROF_DETAIL_CUDA_CALL(cudaInitDevice, (int device, unsigned, unsigned), of_device(device))
MEMPROF_DETAIL_CUDA_CALL(cudaSetDeviceFlags, (unsigned), nothing())
MEMPROF_DETAIL_CUDA_CALL(cudaGetDeviceFlags, (unsigned* flags), give(flags, 0U))
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceReset, (), reset_device())
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceSynchronize, (), synchronize_device())
MEMPROF_DETAIL_CUDA_CALL(cudaGetDeviceProperties, (device_properties_13 * found, int device), describe_device(found, device))
MEMPROF_DETAIL_CUDA_CALL(cudaGetDeviceProperties_v2, (device_properties_12 * found, int device), describe_device(found, device))
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceGetAttribute, (int* value, int attribute, int device),
                         attribute_of_device(value, attribute, device))
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceGetPCIBusId, (char* text, int size, int device), bus_of_device(text, size, device))
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceGetLimit, (std::size_t * value, int limit), get_limit(value, limit))
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceSetLimit, (int limit, std::size_t value), set_limit(limit, value))
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceGetCacheConfig, (int* preferred), give(preferred, 0))
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceSetCacheConfig, (int), nothing())
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceGetStreamPriorityRange, (int* least, int* greatest), priorities(least, greatest))
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceCanAccessPeer, (int* can, int device, int peer), can_access_peer(can, device, peer))
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceEnablePeerAccess, (int peer, unsigned), of_device(peer))
MEMPROF_DETAIL_CUDA_CALL(cudaDeviceDisablePeerAccess, (int peer), of_device(peer))
MEMPROF_DETAIL_CUDA_CALL(cudaRuntimeGetVersion, (int* version), version_of_runtime(version))
MEMPROF_DETAIL_CUDA_CALL(cudaDriverGetVersion, (int* version), version_of_runtime(version))
MEMPROF_DETAIL_CUDA_CALL(cudaProfilerStart, (), nothing())
MEMPROF_DETAIL_CUDA_CALL(cudaProfilerStop, (), nothing())

// --- errors ---------------------------------------------------------------------------------------------------------------

MEMPROF_DETAIL_CUDA_CALL(cudaGetLastError, (), last_result(true))
MEMPROF_DETAIL_CUDA_CALL(cudaPeekAtLastError, (), last_result(false))
MEMPROF_DETAIL_CUDA_FUNCTION(const char*, cudaGetErrorName, (int result)) { return text_of(result).name; }
MEMPROF_DETAIL_CUDA_FUNCTION(const char*, cudaGetErrorString, (int result)) { return text_of(result).text; }

// --- streams and events ---------------------------------------------------------------------------------------------------

MEMPROF_DETAIL_CUDA_CALL(cudaStreamCreate, (void** stream), make_stream(stream, 0, 0))
MEMPROF_DETAIL_CUDA_CALL(cudaStreamCreateWithFlags, (void** stream, unsigned flags), make_stream(stream, flags, 0))
MEMPROF_DETAIL_CUDA_CALL(cudaStreamCreateWithPriority, (void** stream, unsigned flags, int priority),
                         make_stream(stream, flags, priority))
MEMPROF_DETAIL_CUDA_CALL(cudaStreamDestroy, (void* stream), remove_stream(stream))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaStreamSynchronize, (void* stream), synchronize_stream(stream, unnamed))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaStreamQuery, (void* stream), synchronize_stream(stream, unnamed))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaStreamWaitEvent, (void* stream, void* event, unsigned),
                                   wait_for_event(stream, unnamed, event))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaStreamGetFlags, (void* stream, unsigned* flags),
                                   called_on(stream, unnamed, [&](simulated_runtime&, const simulated_stream& on) {
                                     return put(flags, on.flags);
                                   }))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaStreamGetPriority, (void* stream, int* priority),
                                   called_on(stream, unnamed, [&](simulated_runtime&, const simulated_stream& on) {
                                     return put(priority, on.priority);
                                   }))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaStreamGetId, (void* stream, unsigned long long* number),
                                   called_on(stream, unnamed, [&](simulated_runtime&, const simulated_stream& on) {
                                     return put(number, static_cast<unsigned long long>(on.handle));
                                   }))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaStreamGetDevice, (void* stream, int* device),
                                   called_on(stream, unnamed, [&](simulated_runtime&, const simulated_stream& on) {
                                     return put(device, static_cast<int>(on.device));
                                   }))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaStreamIsCapturing, (void*, int* status), give(status, 0))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaStreamAddCallback,
                                   (void* stream, void (*callback)(void*, int, void*), void* user, unsigned),
                                   called_on(stream, unnamed, [&](simulated_runtime&, const simulated_stream&) {
                                     callback(stream, 0, user);
                                     return runtime_result::done;
                                   }))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaLaunchHostFunc, (void* stream, void (*function)(void*), void* user),
                                   called_on(stream, unnamed, [&](simulated_runtime&, const simulated_stream&) {
                                     function(user);
                                     return runtime_result::done;
                                   }))
MEMPROF_DETAIL_CUDA_CALL(cudaEventCreate, (void** event), make_event(event))
MEMPROF_DETAIL_CUDA_CALL(cudaEventCreateWithFlags, (void** event, unsigned), make_event(event))
MEMPROF_DETAIL_CUDA_CALL(cudaEventDestroy, (void* event), remove_event(event))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaEventRecord, (void* event, void* stream), record_event_on(event, stream, unnamed))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaEventRecordWithFlags, (void* event, void* stream, unsigned),
                                   record_event_on(event, stream, unnamed))
MEMPROF_DETAIL_CUDA_CALL(cudaEventQuery, (void* event), of_event(event))
MEMPROF_DETAIL_CUDA_CALL(cudaEventSynchronize, (void* event), of_event(event))
MEMPROF_DETAIL_CUDA_CALL(cudaEventElapsedTime, (float* milliseconds, void* from, void* to), elapsed(milliseconds, from, to))
MEMPROF_DETAIL_CUDA_CALL(cudaEventElapsedTime_v2, (float* milliseconds, void* from, void* to), elapsed(milliseconds, from, to))

// --- kernels --------------------------------------------------------------------------------------------------------------

MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaLaunchKernel,
                                   (const void*, launch_shape grid, launch_shape block, void**, std::size_t, void* stream),
                                   launch(grid, block, stream, unnamed))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaLaunchCooperativeKernel,
                                   (const void*, launch_shape grid, launch_shape block, void**, std::size_t, void* stream),
                                   launch(grid, block, stream, unnamed))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(__cudaLaunchKernel,
                                   (void*, launch_shape grid, launch_shape block, void**, std::size_t, void* stream),
                                   launch(grid, block, stream, unnamed))
MEMPROF_DETAIL_CUDA_CALL_ON_STREAM(cudaLaunchKernelExC, (const launch_configuration* asked, const void*, void**),
                                   asked == nullptr ? ended(runtime_result::invalid_value)
                                                    : launch(asked->grid, asked->block, asked->stream, unnamed))
MEMPROF_DETAIL_CUDA_CALL(cudaFuncGetAttributes, (function_attributes * found, const void*), describe_function(found))
MEMPROF_DETAIL_CUDA_CALL(cudaFuncSetAttribute, (const void*, int, int), nothing())
MEMPROF_DETAIL_CUDA_CALL(cudaFuncSetCacheConfig, (const void*, int), nothing())
MEMPROF_DETAIL_CUDA_CALL(cudaGetFuncBySymbol, (void** found, const void* function), give(found, function))
MEMPROF_DETAIL_CUDA_CALL(cudaGetKernel, (void** found, const void* function), give(found, function))
MEMPROF_DETAIL_CUDA_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
                         (int* blocks, const void*, int threads, std::size_t shared_bytes),
                         active_blocks(blocks, threads, shared_bytes))
MEMPROF_DETAIL_CUDA_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
                         (int* blocks, const void*, int threads, std::size_t shared_bytes, unsigned),
                         active_blocks(blocks, threads, shared_bytes))

// --- what nvcc puts into a program ----------------------------------------------------------------------------------------

MEMPROF_DETAIL_CUDA_FUNCTION(unsigned, __cudaPushCallConfiguration,
                             (launch_shape grid, launch_shape block, std::size_t shared_bytes, void* stream)) {
  return push_launch({grid, block, shared_bytes, stream}) ? 0U : 1U;
}
MEMPROF_DETAIL_CUDA_CALL(__cudaPopCallConfiguration,
                         (launch_shape * grid, launch_shape* block, std::size_t* shared_bytes, void* stream),
                         pop_launch(grid, block, shared_bytes, stream))
MEMPROF_DETAIL_CUDA_CALL(__cudaGetKernel, (void** found, const void* function), know_kernel(found, function))
MEMPROF_DETAIL_CUDA_FUNCTION(void**, __cudaRegisterFatBinary, (void*)) {
  static void* handle = nullptr;
  return &handle;
}
MEMPROF_DETAIL_CUDA_FUNCTION(void, __cudaRegisterFatBinaryEnd, (void**)) {}
MEMPROF_DETAIL_CUDA_FUNCTION(void, __cudaUnregisterFatBinary, (void**)) {}
MEMPROF_DETAIL_CUDA_FUNCTION(char, __cudaInitModule, (void**)) { return 1; }
MEMPROF_DETAIL_CUDA_FUNCTION(void, __cudaRegisterFunction,
                             (void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*)) {}
MEMPROF_DETAIL_CUDA_FUNCTION(void, __cudaRegisterVar,
                             (void**, char* host, char*, const char*, int, std::size_t bytes, int, int)) {
  process_runtime().variables.add(host, bytes);
}

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda::runtime
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)

#undef MEMPROF_DETAIL_CUDA_FUNCTION
#undef MEMPROF_DETAIL_CUDA_CALL
#undef MEMPROF_DETAIL_CUDA_COPY
#undef MEMPROF_DETAIL_CUDA_CALL_ON_STREAM

#endif  // MEMPROF_ENABLED
