// expected: error:.*(backend|constraint|no matching)
#include <memprof/memprof.hpp>

void profile_an_integer() {
#ifdef MEMPROF_FAULT
  auto capture = memprof::begin_capture<int>();
#else
  auto capture = memprof::begin_capture();
#endif
}
