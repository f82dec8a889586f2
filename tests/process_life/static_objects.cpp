// A capture that a static constructor begins: what is allocated before `main`, in it, and in static and thread-local destructors
// after it is all there when the last static destructor looks.
// expected: before main 100, main 20, thread-local destructor 3, static destructor 4000
// expected: total 4123, peak 4123, exact
#include <memprof/memprof.hpp>

#include <cstdio>
#include <thread>

namespace {

/// Allocates for good and says so.
void keep(std::size_t bytes, const char* where) {
  static auto* const memory = new memprof::memory_resource{"cpu"};
  (void)memory->allocate(bytes);
  std::printf("%s %zu", where, bytes);
}

struct capture_of_the_process {
  capture_of_the_process() { memprof::begin_capture().release(); }
  ~capture_of_the_process() {
    memprof::end_capture();
    const memprof::profile profile = memprof::current_profile();
    const memprof::space_profile& cpu = profile.space("cpu");
    std::printf("total %lld, peak %lld, %s\n", static_cast<long long>(cpu.allocations),
                static_cast<long long>(cpu.cumulative_peak), profile.exact ? "exact" : "not exact");
  }
};
const capture_of_the_process whole_process;

struct static_object {
  static_object() { keep(100, "before main"); }
  ~static_object() { keep(4000, ", static destructor"), std::puts(""); }
};
const static_object constructed_second;

struct thread_local_object {
  ~thread_local_object() { keep(3, ", thread-local destructor"); }
  int touched = 0;
};
// Constructed before the thread's first event, hence destroyed after the profiler's own thread-local object.
thread_local thread_local_object of_each_thread;

}  // namespace

int main() {
  std::thread worker{[] {
    of_each_thread.touched = 1;
    keep(20, ", main");
  }};
  worker.join();
}
