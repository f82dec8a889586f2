// Fork handlers of the program that record, on a thread whose ring lies in a trace file: what they record in the parent is the
// parent's, and what they record in the child goes nowhere, least of all into the parent's file.
// expected: child: no capture, its own has 30
// expected: parent: 1111 bytes by handlers of the parent, 0 by those of children, exact
// expected: its file says the same
#include <memprof/memprof.hpp>

#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/trace_file.hpp>

#include <thread_sanitizer.hpp>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace {

/// Of a space for each side, so that nobody's ids depend on who comes first.
struct spaces {
  memprof::memory_space parent{"handlers of the parent"};
  memprof::memory_space child{"handlers of the child"};
};
spaces* all = nullptr;
char prepared;
char in_parent;
char in_child;

void record_before() { memprof::extend::event_sink{}.allocate(all->parent, &prepared, 1); }
void record_in_parent() { memprof::extend::event_sink{}.allocate(all->parent, &in_parent, 10); }
void record_in_child() {
  for (int count = 0; count < 100; ++count) memprof::extend::event_sink{}.allocate(all->child, &in_child + count, 7);
}

long long bytes_in(const memprof::profile& profile, const char* name) {
  const memprof::space_profile* const space = profile.find_space(name);
  return space == nullptr ? 0 : static_cast<long long>(space->allocations);
}

}  // namespace

int main() {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("memprof_handlers_" + std::to_string(getpid()) + ".memtrace")).string();
  // Before memprof's own, hence within them.
  pthread_atfork(record_before, record_in_parent, record_in_child);
  spaces made;
  all = &made;
  auto capture = memprof::begin_capture({.ring_capacity = 64, .trace_file = file});
  memprof::memory_resource memory{"cpu"};
  (void)memory.allocate(3);
  for (int round = 0; round < 101; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      const bool has_none = memprof::current_profile().spaces.empty();
      // A file of its own takes a thread.
      const std::string own_file = memprof_tests::has_thread_sanitizer ? std::string{} : file + ".child";
      auto own = memprof::begin_capture({.ring_capacity = 64, .trace_file = own_file});
      (void)memory.allocate(30);
      own.end();
      const bool is_right =
          bytes_in(own.profile(), "cpu") == 30 && (own_file.empty() || bytes_in(memprof::profile_of(own_file), "cpu") == 30);
      if (round == 0) {
        std::printf("child: %s, its own has %s\n", has_none ? "no capture" : "a capture", is_right ? "30" : "something else");
        std::fflush(stdout);
      }
      _exit(has_none && is_right ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) std::printf("a child's status is %d\n", status);
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  std::printf("parent: %lld bytes by handlers of the parent, %lld by those of children, %s\n",
              bytes_in(profile, "handlers of the parent"), bytes_in(profile, "handlers of the child"),
              profile.exact ? "exact" : "not exact");
  memprof::profile read = memprof::profile_of(file);
  read.cost = profile.cost;
  std::puts(read == profile ? "its file says the same" : "its file says something else");
  for (const char* const end : {"", ".child", ".child.old"}) std::filesystem::remove(file + end);
}
