// What a user's project with libtorch does; light headers of both, so that it compiles quickly.
#include <memprof/backend/torch/version.hpp>
#include <memprof/memprof.hpp>

#include <c10/core/CPUAllocator.h>

int main() {
  auto capture = memprof::begin_capture();
  const c10::DataPtr block = c10::GetCPUAllocator()->allocate(64);
  capture.end();
  return block.get() != nullptr && capture.profile().complete ? 0 : 1;
}
