// record_limited FILE: a capture whose trace file keeps the newest 65,536 bytes of events.
#include <memprof/memprof.hpp>

#include <unistd.h>

int main(int count, char** arguments) {
  if (count != 2) return 1;
  auto capture = memprof::begin_capture({.trace_file = arguments[1], .trace_limit = 65'536});
  const memprof::memory_space space{"dram"};
  const memprof::extend::event_sink sink;
  for (int round = 0; round < 100'000; ++round) {
    sink.allocate(space, &round, 1024);
    sink.deallocate(space, &round);
    // The file goes on with its oldest events until its writer has caught up.
    if (round % 10'000 == 9'999) ::usleep(20'000);
  }
  capture.end();
}
