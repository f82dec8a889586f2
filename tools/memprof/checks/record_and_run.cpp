// record_and_run FILE COMMAND: runs COMMAND in a capture that writes FILE, prints what it prints, and ends without ending the
// capture, with the command's exit status.
#include <memprof/memprof.hpp>

#include <sys/wait.h>

#include <array>
#include <cstdlib>
#include <string_view>

int main(int count, char** arguments) {
  if (count != 3) return 1;
  static std::array<char, 3> blocks{};
  const memprof::memory_space space{"dram"};
  memprof::begin_capture({.trace_file = arguments[1]}).release();
  for (const char& block : blocks) memprof::extend::event_sink{}.allocate(space, &block, 1'048'576);
  memprof::snapshot("MODEL_CREATION");
  memprof::snapshot("\x1b(0ALARM\a");
  memprof::snapshot(std::string_view{"N\0UL \x9b 31m \xc2\x9b", 13});
  const int status = std::system(arguments[2]);
  std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
