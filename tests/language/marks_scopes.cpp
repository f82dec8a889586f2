// A file of a trainer that only says what the program does: it needs no other header. Compiled by a test with either value of
// MEMPROF_ENABLED.
#include <memprof/record.hpp>

void step(const float* weights, const char* name) {
  {
    auto scope = memprof::track_operation<"forward">(memprof::category::activation);
    auto inner = memprof::track_operation(name);
  }
  memprof::annotate(weights, {.name = "wte", .shape = "[65, 128]", .dtype = "float32", .category = memprof::category::parameter});
  memprof::snapshot("FORWARD_PASS");
  memprof::memory_checkpoint("after");
}
