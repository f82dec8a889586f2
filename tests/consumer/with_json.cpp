#include <memprof/memprof.hpp>
#include <memprof/profile/json.hpp>

int main() {
  auto capture = memprof::begin_capture();
  memprof::memory_resource memory{"cpu"};
  void* block = memory.allocate(1024);
  memory.deallocate(block, 1024);
  capture.end();
  return memprof::to_json(capture.profile()).at("format") == "memprof-profile" ? 0 : 1;
}
