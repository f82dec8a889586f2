// `overflow::drop` with many short-lived threads: their number of rings stays that of threads alive at once, and what little each
// of them records is kept.
// expected: 6000 threads, 12000 events, rings 8 at most
#include <memprof/memprof.hpp>

#include <cstdio>
#include <thread>
#include <vector>

int main() {
  const memprof::memory_space space{"short"};
  auto capture = memprof::begin_capture({.overflow_policy = memprof::overflow::drop});
  for (int round = 0; round < 1500; ++round) {
    std::vector<std::thread> threads;
    for (std::uintptr_t index = 1; index <= 4; ++index) {
      threads.emplace_back([&, index] {
        memprof::extend::event_sink{}.allocate(space, reinterpret_cast<const void*>(16 * index), 8);
        memprof::extend::event_sink{}.deallocate(space, reinterpret_cast<const void*>(16 * index), 8);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  capture.end();
  const memprof::space_profile& seen = capture.profile().space("short");
  std::printf("6000 threads, %lld events, rings %s\n", static_cast<long long>(seen.allocation_count + seen.deallocation_count),
              memprof::abi_1::process_registry.ring_count <= 8 ? "8 at most" : "without bound");
}
