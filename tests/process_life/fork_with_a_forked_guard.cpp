// A child that returns through its copy of the parent's guard, and a grandchild: nothing is ended or freed twice.
// expected: grandchild
// expected: child
// expected: parent 640
#include <memprof/memprof.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace {

/// Forks; the child goes on and, once it has waited for its own child, exits through `main`.
bool is_child_after_fork() {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) return true;
  waitpid(child, nullptr, 0);
  return false;
}

}  // namespace

int main() {
  memprof::memory_resource memory;
  auto capture = memprof::begin_capture();
  void* const block = memory.allocate(640);
  if (is_child_after_fork()) {
    auto own = memprof::begin_capture();
    if (is_child_after_fork()) {
      memory.deallocate(block, 640);
      std::puts("grandchild");
      return 0;
    }
    std::puts("child");
    return 0;
  }
  capture.end();
  std::printf("parent %lld\n", static_cast<long long>(capture.profile().space("cpu").cumulative_current));
  memory.deallocate(block, 640);
}
