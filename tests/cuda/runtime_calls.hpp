#pragma once

#include <cstddef>

/// @file
/// CUDA's runtime as programs here call it, declared without CUDA's headers.

extern "C" {

struct channels {
  int x, y, z, w;
  int kind;
};
struct box {
  std::size_t width, height, depth;
};
struct pitched {
  void* address;
  std::size_t pitch, width, height;
};
struct shape {
  unsigned x, y, z;
};
struct pool_properties {
  int type;
  int handle_types;
  int location_type;
  int location;
  unsigned char rest[72];
};
struct pointer_facts {
  int type;
  int device;
  void* device_pointer;
  void* host_pointer;
  long reserved[8];
};
struct device_facts {
  char name[256];
  char rest[752];
};
struct box_copy {
  void* from_array;
  std::size_t from_position[3];
  pitched from;
  void* to_array;
  std::size_t to_position[3];
  pitched to;
  box size;
  int kind;
};

int cudaMalloc(void** address, std::size_t bytes);
int cudaMallocPitch(void** address, std::size_t* pitch, std::size_t width, std::size_t height);
int cudaMalloc3D(pitched* made, box size);
int cudaMallocManaged(void** address, std::size_t bytes, unsigned flags);
int cudaMallocHost(void** address, std::size_t bytes);
int cudaHostAlloc(void** address, std::size_t bytes, unsigned flags);
int cudaMallocArray(void** array, const channels* bits, std::size_t width, std::size_t height, unsigned flags);
int cudaMalloc3DArray(void** array, const channels* bits, box size, unsigned flags);
int cudaMallocMipmappedArray(void** array, const channels* bits, box size, unsigned levels, unsigned flags);
int cudaMallocAsync(void** address, std::size_t bytes, void* stream);
int cudaMallocAsync_ptsz(void** address, std::size_t bytes, void* stream);
int cudaMallocFromPoolAsync(void** address, std::size_t bytes, void* pool, void* stream);
int cudaFree(void* address);
int cudaFreeHost(void* address);
int cudaFreeArray(void* array);
int cudaFreeMipmappedArray(void* array);
int cudaFreeAsync(void* address, void* stream);
int cudaFreeAsync_ptsz(void* address, void* stream);
int cudaMemGetInfo(std::size_t* free, std::size_t* total);
int cudaPointerGetAttributes(pointer_facts* found, const void* address);

int cudaDeviceGetDefaultMemPool(void** pool, int device);
int cudaDeviceSetMemPool(int device, void* pool);
int cudaMemPoolCreate(void** pool, const pool_properties* properties);
int cudaMemPoolDestroy(void* pool);
int cudaMemPoolGetAttribute(void* pool, int attribute, void* value);
int cudaMemPoolSetAttribute(void* pool, int attribute, void* value);

int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind);
int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream);
int cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width, std::size_t height,
                 int kind);
int cudaMemcpy3D(const box_copy* asked);
int cudaMemcpyToSymbol(const void* variable, const void* from, std::size_t bytes, std::size_t offset, int kind);
int cudaMemcpyFromSymbol(void* to, const void* variable, std::size_t bytes, std::size_t offset, int kind);
int cudaMemset(void* address, int value, std::size_t bytes);
int cudaMemset2D(void* address, std::size_t pitch, int value, std::size_t width, std::size_t height);
int cudaGetSymbolAddress(void** address, const void* variable);
int cudaGetSymbolSize(std::size_t* bytes, const void* variable);

int cudaGetDeviceCount(int* count);
int cudaGetDevice(int* device);
int cudaSetDevice(int device);
int cudaDeviceReset();
int cudaDeviceSynchronize();
int cudaGetDeviceProperties(device_facts* found, int device);
int cudaDeviceGetAttribute(int* value, int attribute, int device);
int cudaDeviceGetLimit(std::size_t* value, int limit);
int cudaDeviceSetLimit(int limit, std::size_t value);
int cudaGetLastError();
int cudaPeekAtLastError();
const char* cudaGetErrorName(int result);
const char* cudaGetErrorString(int result);

int cudaStreamCreate(void** stream);
int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority);
int cudaStreamDestroy(void* stream);
int cudaStreamSynchronize(void* stream);
int cudaStreamSynchronize_ptsz(void* stream);
int cudaStreamWaitEvent(void* stream, void* event, unsigned flags);
int cudaStreamGetFlags(void* stream, unsigned* flags);
int cudaStreamGetPriority(void* stream, int* priority);
int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* user);
int cudaEventCreate(void** event);
int cudaEventDestroy(void* event);
int cudaEventRecord(void* event, void* stream);
int cudaEventSynchronize(void* event);
int cudaEventElapsedTime(float* milliseconds, void* from, void* to);

int cudaLaunchKernel(const void* function, shape grid, shape block, void** arguments, std::size_t shared, void* stream);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads, std::size_t shared);
unsigned __cudaPushCallConfiguration(shape grid, shape block, std::size_t shared, void* stream);
int __cudaPopCallConfiguration(shape* grid, shape* block, std::size_t* shared, void* stream);
void __cudaRegisterVar(void** handle, char* host, char* address, const char* name, int ext, std::size_t bytes, int constant,
                       int global);
}
