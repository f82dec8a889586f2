#include <memprof/memprof.hpp>

void record_with_other_string() {
  memprof::memory_resource memory{"cpu"};
  auto scope = memprof::track_operation<"other">();
  void* const block = memory.allocate(1000);
  memory.deallocate(block, 1000);
  memprof::snapshot("OTHER");
}
