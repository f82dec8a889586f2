// expected: unused-result
#include <memprof/memprof.hpp>

void operation() {
#ifdef MEMPROF_FAULT
  memprof::track_operation<"forward">();
#else
  auto scope = memprof::track_operation<"forward">();
#endif
}
