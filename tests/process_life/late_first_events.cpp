// Threads whose first event comes when their thread-local objects are gone already, from the destructor of a pthread key: their
// rings serve others, nobody reads their memory, and nothing is lost.
// expected: from key destructors 1600 events, rings of threads alive at once
// expected: operations of late destructors 10 20 30 40
#include <memprof/memprof.hpp>

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

const void* pointer(std::size_t number) { return reinterpret_cast<const void*>(number); }

memprof::memory_space* key_space = nullptr;
std::atomic<std::size_t> next_address{16};

void record_pair() {
  const std::size_t address = next_address.fetch_add(16);
  memprof::extend::event_sink{}.allocate(*key_space, pointer(address), 8);
  memprof::extend::event_sink{}.deallocate(*key_space, pointer(address), 8);
}

long long events_in(const memprof::profile& profile, const char* space) {
  const memprof::space_profile& seen = profile.space(space);
  return static_cast<long long>(seen.allocation_count + seen.deallocation_count);
}

void first_events_in_key_destructors() {
  memprof::memory_space space{"keys"};
  key_space = &space;
  pthread_key_t key;
  pthread_key_create(&key, [](void*) { record_pair(); });
  auto capture = memprof::begin_capture();
  for (int round = 0; round < 50; ++round) {
    std::vector<std::thread> threads;
    for (int index = 0; index < 16; ++index) threads.emplace_back([key] { pthread_setspecific(key, &key_space); });
    for (std::thread& thread : threads) thread.join();
    for (int count = 0; count < 2; ++count) (void)memprof::current_profile();  // a drain that grants looks at every thread
  }
  pthread_key_delete(key);
  const long long events = events_in(memprof::current_profile(), "keys");
  capture.end();
  std::printf("from key destructors %lld events, %s\n", events,

              memprof::abi_1::process_registry.ring_count <= 32 ? "rings of threads alive at once" : "rings without bound");
}

/// Opens an operation when its thread ends, and waits in it for the other threads.
struct late_operation {
  static inline std::atomic<int> waiting{0};
  int number = 0;
  ~late_operation() {
    if (number == 0) return;
    const auto scope = memprof::track_operation("late " + std::to_string(number));
    ++waiting;
    while (waiting < 4) std::this_thread::yield();
    const auto bytes = static_cast<std::size_t>(10 * number);
    memprof::extend::event_sink{}.allocate(*key_space, pointer(next_address.fetch_add(64)), bytes);
  }
};
thread_local late_operation late;

void operations_in_late_destructors() {
  memprof::memory_space space{"late operations"};
  key_space = &space;
  auto capture = memprof::begin_capture();
  std::vector<std::thread> threads;
  for (int number = 1; number <= 4; ++number) {
    threads.emplace_back([number] {
      late.number = number;
      record_pair();  // whatever is registered by a first event is destroyed before
    });
  }
  for (std::thread& thread : threads) thread.join();
  capture.end();
  std::printf("operations of late destructors");
  const memprof::profile profile = capture.profile();
  for (int number = 1; number <= 4; ++number) {
    const memprof::operation_profile* const found = profile.find_operation("late " + std::to_string(number));
    std::printf(" %lld", found == nullptr || found->usage.empty() ? 0LL : static_cast<long long>(found->usage[0].self_allocated));
  }
  std::puts("");
}

}  // namespace

int main() {
  first_events_in_key_destructors();
  operations_in_late_destructors();
}
