// A program that records libtorch, and does not simulate it.
#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>

#if !MEMPROF_SEPARATE_COMPILATION || !MEMPROF_TORCH_SEPARATE_COMPILATION
#error "memprof::torch_compiled says to all files that link it that they leave the rest to the library"
#endif

int main() {
  auto capture = memprof::begin_capture<memprof::torch_backend>();
  const c10::DataPtr block = c10::GetCPUAllocator()->allocate(64);
  capture.end();
  const bool has_simulation = at::CUDAHooksRegistry()->Has("CUDAHooks");  // of the library's other file
  return capture.profile().space("cpu").cumulative_peak == 64 && !has_simulation ? 0 : 1;
}
