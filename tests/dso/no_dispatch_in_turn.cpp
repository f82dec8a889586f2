// Two plugins begin no_dispatch captures in turn, then the program touches memory that is not there: it is told so once, and then
// the program's own handler has the fault.
#include <dso/interface.hpp>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

namespace {

constexpr int own_status = 7;

[[noreturn]] void end_by_own_handler(int) { _exit(own_status); }

/// Runs in a child of the test.
[[noreturn]] void fault(void* const plugins[2]) {
  alarm(10);  // a fault that goes round between the plugins does not end by itself
  std::signal(SIGSEGV, end_by_own_handler);
  for (int turn = 0; turn < 4; ++turn) {
    reinterpret_cast<no_dispatch_plugin_function*>(dlsym(plugins[turn % 2], "plugin_capture_no_dispatch"))();
  }
  reinterpret_cast<no_dispatch_plugin_function*>(dlsym(plugins[0], "plugin_touch_phantom"))();
  _exit(0);
}

}  // namespace

int main() {
  void* plugins[2];
  const char* const files[2] = {DSO_TEST_FIRST_PLUGIN, DSO_TEST_SECOND_PLUGIN};
  for (int index = 0; index < 2; ++index) {
    // Global, since the second has to find the registry of the first, and this program has none.
    plugins[index] = dlopen(files[index], RTLD_NOW | RTLD_GLOBAL);
    if (plugins[index] == nullptr) return std::printf("cannot load %s: %s\n", files[index], dlerror()), 2;
  }
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return 2;
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    fault(plugins);
  }
  close(pipe_ends[1]);
  std::string said;
  char bytes[4096];
  for (ssize_t count = 0; (count = read(pipe_ends[0], bytes, sizeof bytes)) > 0;) {
    if (said.size() < sizeof bytes) said.append(bytes, static_cast<std::size_t>(count));
  }
  int status = 0;
  waitpid(child, &status, 0);
  const std::string explanation = "memprof: the program touched memory";
  const std::size_t first = said.find(explanation);
  const bool is_said_once = first != std::string::npos && said.find(explanation, first + 1) == std::string::npos;
  const bool is_handed_on = WIFEXITED(status) && WEXITSTATUS(status) == own_status;
  if (is_said_once && is_handed_on) return std::puts("all is as it should be"), 0;
  std::printf("status %d, stderr: %.1000s\n", status, said.c_str());
  return 1;
}
