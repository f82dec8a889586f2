// Linked with a file of -fno-exceptions that uses the same functions: here an error is thrown all the same, and both record into
// one capture.
#include <dso/interface.hpp>

#include <memprof/memprof.hpp>

#include <cstdio>
#include <string>

int main() {
  library_allocate(1);  // before anything of this file
  std::string caught;
  try {
    (void)memprof::begin_capture({.ring_capacity = 1});
  } catch (const memprof::error& problem) {
    caught = problem.what();
  }
  if (caught.find("ring_capacity") == std::string::npos) return 1;
  auto capture = memprof::begin_capture();
  library_allocate(100);
  capture.end();
  if (capture.profile().space("dso").allocations != 100 || !capture.profile().exact) return 2;
  std::puts("units with and without exceptions: all is as it should be");
}
