// A program that allocates on CUDA and knows nothing of memprof: 8 MiB of weights, 4 MiB on a stream, 3 MiB of pinned memory.
#include <cuda/stand_in/driver.hpp>
#if WITH_NVTX
#include <nvtx3/nvToolsExt.h>
#else
void nvtxRangePushA(const char*) {}
void nvtxRangePop() {}
#endif

#include <cstddef>
#include <cstdio>

int main() {
  constexpr std::size_t mib = std::size_t{1} << 20;
  void* context = nullptr;
  void* stream = nullptr;
  void* staging = nullptr;
  CUdeviceptr weights = 0;
  CUdeviceptr activations = 0;
  int failures = cuInit(0);
  failures += cuDevicePrimaryCtxRetain(&context, 0) + cuCtxSetCurrent(context) + cuStreamCreate(&stream, 0);
  nvtxRangePushA("train");
  failures += cuMemAlloc_v2(&weights, 8 * mib) + cuMemAllocHost_v2(&staging, 3 * mib);
  nvtxRangePushA("step");
  failures += cuMemAllocAsync(&activations, 4 * mib, stream) + cuMemFreeAsync(activations, stream);
  nvtxRangePop();
  nvtxRangePop();
  failures += cuStreamSynchronize(stream) + cuMemFreeHost(staging) + cuMemFree_v2(weights);
  std::puts(failures == 0 ? "trained" : "CUDA failed");
  return failures;
}
