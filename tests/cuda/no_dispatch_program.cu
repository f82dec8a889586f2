// What nvcc puts into a program, with the runtime that has no device: launches, variables of device code, and the names that the
// per-thread default stream gives to calls. Exit status 1 if a number is wrong.
#include <memprof/backend/cuda_no_dispatch.hpp>
#include <memprof/memprof.hpp>
#include <memprof/trace/device_presets.hpp>

#include <cstddef>
#include <cstdio>

namespace {

constexpr int count = 1024;
__constant__ float factors[count];
__device__ int counter;

__global__ void scale(float* out, const float* in, float factor) {
  const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
  out[index] = in[index] * factor * factors[index];
  if (index == 0) ++counter;
}

bool is_right = true;

void expect(bool is_so, const char* what) {
  if (is_so) return;
  std::fprintf(stderr, "no_dispatch_program: %s\n", what);
  is_right = false;
}
void require(cudaError_t result, const char* what) { expect(result == cudaSuccess, what); }

/// Arguments of a launch may launch themselves.
float launched_factor(float* out, cudaStream_t stream) {
  scale<<<2, 512, 0, stream>>>(out, out, 1.0F);
  return 2.0F;
}

void run() {
  float on_host[count];
  for (float& each : on_host) each = 1.0F;
  require(cudaMemcpyToSymbol(factors, on_host, sizeof on_host), "cudaMemcpyToSymbol");
  expect(cudaMemcpyToSymbol(counter, on_host, sizeof on_host) == cudaErrorInvalidValue, "a variable of 4 bytes");
  expect(cudaGetLastError() == cudaErrorInvalidValue, "the last error");
  cudaStream_t stream = nullptr;
  require(cudaStreamCreate(&stream), "cudaStreamCreate");
  float* out = nullptr;
  float* in = nullptr;
  require(cudaMallocAsync(&out, sizeof on_host, stream), "cudaMallocAsync");
  require(cudaMallocAsync(&in, sizeof on_host, nullptr), "cudaMallocAsync on the thread's own stream");
  require(cudaMemcpyAsync(in, on_host, sizeof on_host, cudaMemcpyHostToDevice), "cudaMemcpyAsync");
  int threads = 0;
  int blocks = 0;
  require(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, scale), "cudaOccupancyMaxPotentialBlockSize");
  expect(threads == 768 && blocks == 2 * 128, "the best launch on 128 processors for 1,536 threads each");
  scale<<<1, 1024, 0, stream>>>(out, in, launched_factor(out, stream));
  require(cudaGetLastError(), "a launch");
  scale<<<1, 2048, 0, stream>>>(out, in, 1.0F);
  expect(cudaGetLastError() == cudaErrorInvalidConfiguration, "a launch of too many threads");
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = 1;
  configuration.blockDim = 1024;
  configuration.stream = stream;
  require(cudaLaunchKernelEx(&configuration, scale, out, static_cast<const float*>(in), 1.0F), "cudaLaunchKernelEx");
  require(cudaMemcpy(on_host, out, sizeof on_host, cudaMemcpyDeviceToHost), "cudaMemcpy");
  expect(on_host[0] == 0 && on_host[count - 1] == 0, "what comes from the device is zeros");
  int counted = 7;
  require(cudaMemcpyFromSymbol(&counted, counter, sizeof counted), "cudaMemcpyFromSymbol");
  expect(counted == 0, "so is what comes from a variable of device code");
  cudaDeviceProp device{};
  require(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  expect(device.multiProcessorCount == 128 && device.memoryPoolsSupported == 1, "the properties of the device");
  require(cudaFreeAsync(out, stream), "cudaFreeAsync");
  require(cudaFreeAsync(in, nullptr), "cudaFreeAsync on the thread's own stream");
  require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  require(cudaStreamDestroy(stream), "cudaStreamDestroy");
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

}  // namespace

int main() {
  auto capture = memprof::begin_capture<memprof::cuda_no_dispatch>({.device = memprof::device_preset("gpu-24gb")});
  run();
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile& space = profile.space("cuda:0");
  expect(space.cumulative_peak == 2 * 4 * count, "the peak");
  expect(space.streams.size() == 2 && space.streams[1].stream == "default of each thread", "the thread's own stream");
  return is_right ? 0 : 1;
}
