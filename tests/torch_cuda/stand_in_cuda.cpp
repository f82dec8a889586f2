// A stand-in for CUDA's runtime, driver and management library: enough of them for PyTorch's caching allocator, whose real code
// then runs where there is no GPU. Memory is a count of bytes and a row of addresses behind which nothing lies. Built against the
// headers of the CUDA version that libtorch was built with, so that the compiler compares the signatures.
//
// A stream has work to do from the first cudaMemsetAsync on until it, or the device, is synchronized.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace {

constexpr std::size_t page_bytes = std::size_t{2} << 20;

/// `STAND_IN_CUDA_BYTES`, or 8 GiB.
[[nodiscard]] std::size_t bytes_of_device() {
  const char* const text = std::getenv("STAND_IN_CUDA_BYTES");
  return text == nullptr ? std::size_t{8} << 30 : std::strtoull(text, nullptr, 10);
}

/// What a stream was given to do and what it has done; it is the object behind a cudaStream_t. 64 bytes apart, as libtorch uses
/// the lower bits.
struct alignas(64) stream_work {
  std::uint64_t given = 0;
  std::uint64_t done = 0;
};

/// Recorded when its stream had been given so much.
struct recorded_event {
  const stream_work* stream = nullptr;
  std::uint64_t given = 0;
};

/// The one device. Never destroyed: libtorch frees memory until the process ends.
struct device {
  std::mutex lock;
  std::size_t bytes = bytes_of_device();
  std::size_t used = 0;
  std::uintptr_t next_address = 0x7f0000000000;
  std::map<std::uintptr_t, std::size_t> blocks;
  stream_work default_stream;
  std::map<stream_work*, stream_work*> streams;

  /// False if the device is full.
  [[nodiscard]] bool take(std::size_t size) {
    if (size > bytes - used) return false;
    used += size;
    return true;
  }
  [[nodiscard]] std::uintptr_t new_range(std::size_t size) {
    const std::uintptr_t address = next_address;
    next_address += (size + page_bytes - 1) / page_bytes * page_bytes;
    return address;
  }
  [[nodiscard]] stream_work& work_of(cudaStream_t stream) {
    return stream == nullptr ? default_stream : *reinterpret_cast<stream_work*>(stream);
  }
};

[[nodiscard]] device& the_device() {
  static auto* const one = new device;
  return *one;
}

[[nodiscard]] recorded_event& work_behind(cudaEvent_t event) { return *reinterpret_cast<recorded_event*>(event); }

cudaError_t allocate(void** address, std::size_t size) {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  if (!self.take(size)) return cudaErrorMemoryAllocation;
  const std::uintptr_t taken = self.new_range(size);
  self.blocks[taken] = size;
  *address = reinterpret_cast<void*>(taken);
  return cudaSuccess;
}

cudaError_t deallocate(void* address) {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  const auto found = self.blocks.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == self.blocks.end()) return address == nullptr ? cudaSuccess : cudaErrorInvalidValue;
  self.used -= found->second;
  self.blocks.erase(found);
  return cudaSuccess;
}

}  // namespace

extern "C" {

// --- the runtime: the device ------------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* number) {
  *number = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->name, "stand-in");
  properties->totalGlobalMem = the_device().bytes;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "an error of the stand-in for CUDA";
}
const char* cudaGetErrorName(cudaError_t error) { return cudaGetErrorString(error); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  *total = self.bytes;
  *free = self.bytes - self.used;
  return cudaSuccess;
}

// --- the runtime: memory ----------------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** address, std::size_t size) { return allocate(address, size); }
cudaError_t cudaFree(void* address) { return deallocate(address); }
cudaError_t cudaMallocAsync(void** address, std::size_t size, cudaStream_t) { return allocate(address, size); }
cudaError_t cudaFreeAsync(void* address, cudaStream_t) { return deallocate(address); }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = nullptr;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
  *static_cast<std::uint64_t*>(value) = 0;
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return cudaSuccess; }
cudaError_t cudaMemsetAsync(void*, int, std::size_t, cudaStream_t stream) {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  ++self.work_of(stream).given;
  return cudaSuccess;
}

// --- the runtime: streams and events ----------------------------------------------------------------------------------

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -1;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  auto* const made = new stream_work;
  self.streams[made] = made;
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  stream_work& work = self.work_of(stream);
  work.done = work.given;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  self.default_stream.done = self.default_stream.given;
  for (const auto& [stream, work] : self.streams) work->done = work->given;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  const stream_work& work = self.work_of(stream);
  return work.done == work.given ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new recorded_event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &work_behind(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  work_behind(event) = {&self.work_of(stream), self.work_of(stream).given};
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  const recorded_event& recorded = work_behind(event);
  return recorded.stream == nullptr || recorded.stream->done >= recorded.given ? cudaSuccess : cudaErrorNotReady;
}
/// Whoever waits for an event makes its stream do its work.
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  const recorded_event& recorded = work_behind(event);
  if (recorded.stream == nullptr) return cudaSuccess;
  std::uint64_t& done = const_cast<stream_work*>(recorded.stream)->done;
  done = std::max(done, recorded.given);
  return cudaSuccess;
}

// --- the driver: pages that are mapped into reserved addresses --------------------------------------------------------

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t size, std::size_t, CUdeviceptr, unsigned long long) {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  *address = self.new_range(size);
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr, std::size_t) { return CUDA_SUCCESS; }
/// A handle is the address of its size.
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size, const CUmemAllocationProp*, unsigned long long) {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  if (!self.take(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(new std::size_t{size});
  return CUDA_SUCCESS;
}
/// libtorch unmaps pages before it releases them.
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  device& self = the_device();
  const std::lock_guard guard{self.lock};
  const auto* const size = reinterpret_cast<const std::size_t*>(handle);
  self.used -= *size;
  delete size;
  return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long) {
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr, std::size_t) { return CUDA_SUCCESS; }
CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) { return CUDA_SUCCESS; }
CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *bytes = page_bytes;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* one, int) {
  *one = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 0;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "an error of the stand-in for CUDA";
  return CUDA_SUCCESS;
}

/// What libtorch looks up and its allocator does not call without other processes or devices.
CUresult stand_in_not_supported() { return CUDA_ERROR_NOT_SUPPORTED; }

static cudaError_t find_driver_function(const char* symbol, void** function, cudaDriverEntryPointQueryResult* result) {
  *function = dlsym(RTLD_DEFAULT, symbol);
  if (*function == nullptr) *function = reinterpret_cast<void*>(&stand_in_not_supported);
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
#if CUDART_VERSION < 13000
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  return find_driver_function(symbol, function, result);
}
#endif
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return find_driver_function(symbol, function, result);
}
#endif

// --- the management library, without its header: a device that other processes do not use -----------------------------

constexpr int nvml_success = 0;
constexpr int nvml_not_supported = 3;

int nvmlInit_v2() { return nvml_success; }
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** handle) {
  *handle = nullptr;
  return nvml_success;
}
int nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void*) {
  *count = 0;
  return nvml_success;
}
int nvmlDeviceGetNvLinkRemoteDeviceType() { return nvml_not_supported; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2() { return nvml_not_supported; }
int nvmlSystemGetCudaDriverVersion_v2() { return nvml_not_supported; }

}  // extern "C"
