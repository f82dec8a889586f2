#pragma once

#include <ctime>

/// CPU time of the calling thread in seconds, as needed for Google Benchmark's manual time.
[[nodiscard]] inline double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}
