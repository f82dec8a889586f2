// What threads record is there after they are gone: before any drain, in destructors of thread-local objects, and however many
// threads there were.
// expected: gone before the drain 1000
// expected: in thread-local destructors 700 and 77
// expected: rings 8 at most, 2000 threads, 4000 events
#include <memprof/memprof.hpp>

#include <cstdio>
#include <thread>
#include <vector>

namespace {

const void* pointer(std::size_t number) { return reinterpret_cast<const void*>(number); }

/// Tells one event when its thread ends.
struct at_thread_end {
  const memprof::memory_space* space = nullptr;
  std::size_t bytes = 0;
  ~at_thread_end() {
    if (space != nullptr) memprof::extend::event_sink{}.allocate(*space, pointer(bytes), bytes);
  }
};
thread_local at_thread_end early;
thread_local at_thread_end only;

void exit_before_a_drain() {
  const memprof::memory_space space{"early"};
  auto capture = memprof::begin_capture();
  std::thread{[&] { memprof::extend::event_sink{}.allocate(space, pointer(16), 1000); }}.join();
  capture.end();
  std::printf("gone before the drain %lld\n", static_cast<long long>(capture.profile().space("early").cumulative_current));
}

void destructors_of_thread_local_objects() {
  const memprof::memory_space space{"late"};
  const memprof::memory_space only_space{"only"};
  auto capture = memprof::begin_capture({.ring_capacity = 2});
  for (int count = 0; count < 7; ++count) {
    std::thread{[&] {
      early.bytes = 100;
      early.space = &space;
      memprof::extend::event_sink{}.allocate(space, pointer(16), 1);
      memprof::extend::event_sink{}.deallocate(space, pointer(16), 1);
    }}.join();
    memprof::extend::event_sink{}.deallocate(space, pointer(100), 0);  // the next thread uses the address again
  }
  // Threads whose very first event comes from such a destructor.
  for (int count = 0; count < 7; ++count) {
    std::thread{[&] {
      only.bytes = 11;
      only.space = &only_space;
    }}.join();
    memprof::extend::event_sink{}.deallocate(only_space, pointer(11), 0);
  }
  capture.end();
  std::printf("in thread-local destructors %lld and %lld\n",
              static_cast<long long>(capture.profile().space("late").allocations - 7),
              static_cast<long long>(capture.profile().space("only").allocations));
}

void many_short_lived_threads() {
  const memprof::memory_space space{"many"};
  auto capture = memprof::begin_capture();
  constexpr int rounds = 500;
  constexpr int at_once = 4;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::thread> threads;
    for (std::size_t index = 1; index <= at_once; ++index) {
      threads.emplace_back([&, index] {
        memprof::extend::event_sink{}.allocate(space, pointer(16 * index), 8);
        memprof::extend::event_sink{}.deallocate(space, pointer(16 * index), 8);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  capture.end();
  const memprof::space_profile& seen = capture.profile().space("many");
  const bool is_bounded = memprof::abi_1::process_registry.ring_count <= 2 * at_once;
  std::printf("rings %s, %d threads, %lld events\n", is_bounded ? "8 at most" : "without bound", rounds * at_once,
              static_cast<long long>(seen.allocation_count + seen.deallocation_count));
}

}  // namespace

int main() {
  exit_before_a_drain();
  destructors_of_thread_local_objects();
  many_short_lived_threads();
}
