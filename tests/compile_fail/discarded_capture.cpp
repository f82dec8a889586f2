// expected: unused-result
#include <memprof/memprof.hpp>

void profile_nothing() {
#ifdef MEMPROF_FAULT
  memprof::begin_capture();
#else
  auto capture = memprof::begin_capture();
#endif
}
