// Threads that end unnoticed: their first event comes in the last round of destructors of pthread keys, or they end by the bare
// system call. Their rings serve others all the same, and nothing is lost.
// expected: from the last round of key destructors 100 events, few rings
// expected: ended by the bare system call 200 events, few rings
#include <memprof/memprof.hpp>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>

namespace {

memprof::memory_space* key_space = nullptr;
std::atomic<std::size_t> next_address{16};

void record_pair() {
  const void* const address = reinterpret_cast<const void*>(next_address.fetch_add(16));
  memprof::extend::event_sink{}.allocate(*key_space, address, 8);
  memprof::extend::event_sink{}.deallocate(*key_space, address, 8);
}

long long events_in(const memprof::profile& profile, const char* space) {
  const memprof::space_profile& seen = profile.space(space);
  return static_cast<long long>(seen.allocation_count + seen.deallocation_count);
}

pthread_key_t last_round_key;

void first_events_in_the_last_round() {
  memprof::memory_space space{"last round"};
  key_space = &space;
  pthread_key_create(&last_round_key, [](void* rounds) {
    const auto left = reinterpret_cast<std::uintptr_t>(rounds) - 1;
    if (left == 0) return record_pair();
    pthread_setspecific(last_round_key, reinterpret_cast<void*>(left));
  });
  auto capture = memprof::begin_capture();
  const std::uint32_t rings = memprof::abi_1::process_registry.ring_count;
  for (int count = 0; count < 50; ++count) {
    std::thread{[] { pthread_setspecific(last_round_key, reinterpret_cast<void*>(4)); }}.join();
  }
  const long long events = events_in(memprof::current_profile(), "last round");
  capture.end();
  pthread_key_delete(last_round_key);
  std::printf("from the last round of key destructors %lld events, %s\n", events,
              memprof::abi_1::process_registry.ring_count <= rings + 8 ? "few rings" : "rings without bound");
}

void threads_without_destructors() {
  memprof::memory_space space{"no destructors"};
  key_space = &space;
  auto capture = memprof::begin_capture();
  const std::uint32_t rings = memprof::abi_1::process_registry.ring_count;
  for (int count = 0; count < 100; ++count) {
    static std::atomic<bool> is_done;
    is_done = false;
    std::thread{[] {
      record_pair();
      is_done = true;
      ::syscall(SYS_exit, 0);
    }}.detach();
    while (!is_done) std::this_thread::yield();
    ::usleep(200);
  }
  const long long events = events_in(memprof::current_profile(), "no destructors");
  capture.end();
  std::printf("ended by the bare system call %lld events, %s\n", events,
              memprof::abi_1::process_registry.ring_count <= rings + 8 ? "few rings" : "rings without bound");
}

}  // namespace

int main() {
#if defined(__SANITIZE_THREAD__)
  // Its runtime takes leave of a thread before these events come.
  std::puts("skipped: the thread sanitizer does not support events of threads that it has seen end");
  return 77;
#endif
  first_events_in_the_last_round();
  threads_without_destructors();
}
