// memprof in a source with device code, which nvcc compiles.
#include <memprof/backend/cuda.hpp>
#include <memprof/memprof.hpp>

#include <cstddef>

__global__ void fill(float* values, float with) { values[threadIdx.x] = with; }

int main() {
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  constexpr std::size_t count = 256;
  float* values = nullptr;
  {
    auto scope = memprof::track_operation<"forward">();
    if (cudaMalloc(&values, count * sizeof(float)) == cudaSuccess) fill<<<1, count>>>(values, 1.0F);
  }
  memprof::snapshot("FORWARD_PASS");
  cudaFree(values);
  capture.end();
  return memprof::to_text(capture.profile()).empty() ? 1 : 0;
}
