#include <memprof/memprof.hpp>

// One kibibyte through a resource must be the peak.
int main() {
  auto capture = memprof::begin_capture();
  memprof::memory_resource memory{"cpu"};
  void* block = memory.allocate(1024);
  memory.deallocate(block, 1024);
  capture.end();
  return capture.profile().space("cpu").cumulative_peak == 1024 ? 0 : 1;
}
