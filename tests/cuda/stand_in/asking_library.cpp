// A library that takes memory from CUDA, as cuBLAS takes a workspace.
#include "driver.hpp"

#include <cstddef>

extern "C" CUdeviceptr take_workspace(std::size_t bytes) {
  CUdeviceptr address = 0;
  return cuMemAlloc_v2(&address, bytes) == 0 ? address : 0;
}
extern "C" unsigned long long take_chunk(std::size_t bytes) {
  const int properties[8] = {1, 0, 1, 0};
  unsigned long long handle = 0;
  return cuMemCreate(&handle, bytes, properties, 0) == 0 ? handle : 0;
}
