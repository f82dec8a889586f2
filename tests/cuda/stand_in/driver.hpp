#pragma once

#include <cstddef>
#include <cstdint>

/// @file
/// CUDA's driver as programs here call it: functions that `libcuda.so.1` has, declared without CUDA's headers. The stand-in for
/// it counts bytes and has no device: addresses of device memory must not be used.

extern "C" {

using CUdeviceptr = unsigned long long;

int cuInit(unsigned flags);
int cuDriverGetVersion(int* version);
int cuDeviceGetCount(int* count);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* is_active);
int cuCtxGetCurrent(void** context);
int cuCtxSetCurrent(void* context);
int cuCtxGetDevice(int* device);
int cuCtxPushCurrent_v2(void* context);
int cuCtxPopCurrent_v2(void** context);
int cuCtxCreate_v2(void** context, unsigned flags, int device);
int cuCtxDestroy_v2(void* context);
int cuCtxSynchronize();
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total);

int cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes);
int cuMemAllocPitch_v2(CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height, unsigned element);
int cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned flags);
int cuMemFree_v2(CUdeviceptr address);
int cuMemAllocHost_v2(void** address, std::size_t bytes);
int cuMemFreeHost(void* address);

int cuStreamCreate(void** stream, unsigned flags);
int cuStreamSynchronize(void* stream);
int cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, void* stream);
int cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes, void* pool, void* stream);
int cuMemFreeAsync(CUdeviceptr address, void* stream);
int cuDeviceGetDefaultMemPool(void** pool, int device);
int cuMemPoolCreate(void** pool, const void* properties);
int cuMemPoolDestroy(void* pool);
int cuMemPoolGetAttribute(void* pool, int attribute, void* value);
int cuMemPoolSetAttribute(void* pool, int attribute, void* value);

int cuMemCreate(unsigned long long* handle, std::size_t bytes, const void* properties, unsigned long long flags);
int cuMemRelease(unsigned long long handle);
int cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset, unsigned long long handle, unsigned long long flags);
int cuMemUnmap(CUdeviceptr address, std::size_t bytes);

/// How the stand-in for CUPTI listens to the one for the driver: a call of `receive(user, domain, number, data)`.
void stand_in_listen(void (*receive)(void*, int, std::uint32_t, const void*), void* user);
/// The device and the number of a context.
int stand_in_device_of(void* context, std::uint32_t* device);
int stand_in_number_of(void* context, std::uint32_t* number);
}
