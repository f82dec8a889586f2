// What a program includes must pass the warnings of a strict project, which are errors here.
#include <memprof/memprof.hpp>
#if __has_include(<nlohmann/json.hpp>) && !defined(WITHOUT_JSON)
#include <memprof/profile/json.hpp>
#endif

int main() {
  auto capture = memprof::begin_capture();
  memprof::memory_resource memory{"cpu"};
  {
    const auto scope = memprof::track_operation<"weights">();
    void* block = memory.allocate(1024);
    memprof::annotate(block, {.name = "wte", .shape = "[16, 64]", .dtype = "uint8"});
    memory.deallocate(block, 1024);
  }
  memprof::snapshot("FORWARD_PASS");
  capture.end();
  memprof::print_memory_usage();
#if __has_include(<nlohmann/json.hpp>) && !defined(WITHOUT_JSON)
  memprof::write_json(capture.profile(), "memory_profile.json");
#endif
}
