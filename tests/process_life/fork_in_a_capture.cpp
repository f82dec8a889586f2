// `fork` inside a capture, while other threads record: the child starts with none and may begin its own; the parent's profile is
// as if nothing had happened.
// expected: children 20 of 20
// expected: parent 20100, exact, 0 unmatched, current 100
// expected: threads balanced
#include <memprof/memprof.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

/// What a child checks; its exit status.
int run_child(memprof::memory_resource& memory, memprof::capture_guard& of_parent, void* block_of_parent) {
  if (!memprof::current_profile().spaces.empty()) return 1;
  of_parent.end();  // ends nothing here
  memprof::snapshot("NONE");
  if (!memprof::current_profile().segments.empty()) return 2;
  try {
    (void)of_parent.profile();
    return 3;
  } catch (const memprof::error&) {
  }
  (void)memory.allocate(7);  // not recorded
  auto capture = memprof::begin_capture({.ring_capacity = 2});
  {
    auto scope = memprof::track_operation<"in the child">();
    void* const block = memory.allocate(50);
    memory.deallocate(block, 50);
    (void)memory.allocate(30);
  }
  memory.deallocate(block_of_parent, 100);
  capture.end();
  const memprof::profile& profile = capture.profile();
  const memprof::space_profile& cpu = profile.space("cpu");
  if (cpu.cumulative_peak != 50 || cpu.cumulative_current != 30) return 4;
  if (cpu.anomalies.unmatched_frees.count != 1) return 5;
  if (profile.find_operation("in the child") == nullptr || profile.operations.size() != 1) return 6;
  if (profile.find_space("recording meanwhile") != nullptr) return 7;
  return 0;
}

}  // namespace

int main() {
  memprof::memory_resource memory{"cpu"};
  auto capture = memprof::begin_capture({.ring_capacity = 16});
  auto outer = memprof::track_operation<"in the parent">();
  void* const kept = memory.allocate(100);

  const memprof::memory_space space{"recording meanwhile"};
  std::atomic<bool> is_over{false};
  std::atomic<int> recording{0};
  std::vector<std::thread> threads;
  for (std::uintptr_t index = 1; index <= 2; ++index) {
    threads.emplace_back([&, index] {
      for (int round = 0; !is_over; ++round) {
        memprof::extend::event_sink{}.allocate(space, reinterpret_cast<const void*>(16 * index), 10);
        memprof::extend::event_sink{}.deallocate(space, reinterpret_cast<const void*>(16 * index), 10);
        if (round == 0) ++recording;
      }
    });
  }

  // A thread that starts may hold locks of malloc, which not every malloc (AddressSanitizer's, for one) frees in a child.
  while (recording != 2) std::this_thread::yield();
  int good_children = 0;
  for (int count = 0; count < 20; ++count) {
    const pid_t child = fork();
    if (child == 0) _exit(run_child(memory, capture, kept));
    void* const block = memory.allocate(1000);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      ++good_children;
    } else {
      std::printf("a child's status is %d\n", status);
    }
    memory.deallocate(block, 1000);
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  capture.end();

  std::printf("children %d of 20\n", good_children);
  const memprof::profile& profile = capture.profile();
  const memprof::space_profile& cpu = profile.space("cpu");
  std::printf("parent %lld, %s, %lld unmatched, current %lld\n", static_cast<long long>(cpu.allocations),
              profile.exact ? "exact" : "not exact", static_cast<long long>(cpu.anomalies.unmatched_frees.count),
              static_cast<long long>(cpu.cumulative_current));
  const memprof::space_profile& others = profile.space("recording meanwhile");
  std::puts(others.cumulative_current == 0 && others.allocation_count == others.deallocation_count ? "threads balanced"
                                                                                                   : "threads not balanced");
}
