#pragma once

#if defined(__linux__)
#include <catch2/catch_test_macros.hpp>

#include <sys/resource.h>
#include <unistd.h>
#include <fstream>

namespace memprof::test {

/// Calls `act` while the system gives the process at most so many bytes more.
template <class Act>
void with_memory_left(rlim_t left, Act&& act) {
  rlimit usual{};
  rlim_t pages = 0;
  std::ifstream{"/proc/self/statm"} >> pages;
  REQUIRE(::getrlimit(RLIMIT_AS, &usual) == 0);
  const rlimit few{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + left, usual.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_AS, &few) == 0);
  act();
  REQUIRE(::setrlimit(RLIMIT_AS, &usual) == 0);
}

}  // namespace memprof::test

#endif
