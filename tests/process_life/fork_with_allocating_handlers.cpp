// Fork handlers that were registered before the capture began, and that record until the ring of their thread is full: they run
// inside ours, and must not wait for the lock that ours hold.
// expected: child 0
// expected: parent 300 events of handlers, exact
#include <memprof/memprof.hpp>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace {

memprof::memory_space* handled_space = nullptr;

/// 100 events through a ring of 4.
void record_much() {
  const memprof::extend::event_sink sink;
  for (std::uintptr_t count = 1; count <= 50; ++count) {
    sink.allocate(*handled_space, reinterpret_cast<const void*>(count * 64), 8);
    sink.deallocate(*handled_space, reinterpret_cast<const void*>(count * 64), 8);
  }
}

int run_child() {
  if (!memprof::current_profile().spaces.empty()) return 1;
  auto capture = memprof::begin_capture({.ring_capacity = 4});
  record_much();
  capture.end();
  const memprof::profile& profile = capture.profile();
  const memprof::space_profile& seen = profile.space("handlers");
  return profile.exact && seen.allocation_count == 50 && seen.cumulative_peak == 8 ? 0 : 2;
}

}  // namespace

int main() {
  ::alarm(60);  // a deadlock ends here
  memprof::memory_space space{"handlers"};
  handled_space = &space;
  pthread_atfork(record_much, record_much, record_much);
  auto capture = memprof::begin_capture({.ring_capacity = 4});
  record_much();
  const pid_t child = fork();
  if (child == 0) _exit(run_child());
  int status = -1;
  waitpid(child, &status, 0);
  capture.end();
  std::printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  const memprof::profile& profile = capture.profile();
  const memprof::space_profile& seen = profile.space("handlers");
  std::printf("parent %lld events of handlers, %s\n", static_cast<long long>(seen.allocation_count + seen.deallocation_count),
              profile.exact ? "exact" : "not exact");
}
