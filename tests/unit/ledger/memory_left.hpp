#pragma once

#if defined(__linux__)
#include <catch2/catch_test_macros.hpp>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cstddef>
#include <fstream>

namespace memprof::test {

using namespace extend;

/// Calls `act` while the system gives the process at most so many bytes more. Skips the test case where the limit has no effect.
template <class Act>
void with_memory_left(rlim_t left, Act&& act) {
  rlimit usual{};
  rlim_t in_use = 0;
  std::ifstream{"/proc/self/statm"} >> in_use;
  REQUIRE(::getrlimit(RLIMIT_AS, &usual) == 0);
  const rlimit few{in_use * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + left, usual.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_AS, &few) == 0);
  const std::size_t too_much = 2 * static_cast<std::size_t>(left) + (std::size_t{64} << 20);
  if (void* const pages = ::mmap(nullptr, too_much, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); pages != MAP_FAILED) {
    (void)::munmap(pages, too_much);
    (void)::setrlimit(RLIMIT_AS, &usual);
    SKIP("the system does not enforce RLIMIT_AS: an emulator does not");
  }
  act();
  REQUIRE(::setrlimit(RLIMIT_AS, &usual) == 0);
}

}  // namespace memprof::test

#endif
