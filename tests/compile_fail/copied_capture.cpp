// expected: error:.*(deleted|no matching)
#include <memprof/memprof.hpp>

void end_it_twice() {
  auto capture = memprof::begin_capture();
#ifdef MEMPROF_FAULT
  auto copy = capture;
#endif
}
