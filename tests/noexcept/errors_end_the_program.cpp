// Without exceptions a misuse ends the program with the text of the error. Run by ctest as a program that must exit with 0: the
// misuse happens in a child.
#include <memprof/memprof.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

int main() {
  int channel[2];
  if (pipe(channel) != 0) return 2;

  const pid_t child = fork();
  if (child == 0) {
    dup2(channel[1], STDERR_FILENO);
    const auto first = memprof::begin_capture();
    const auto second = memprof::begin_capture();
    _exit(0);
  }
  close(channel[1]);

  char text[512] = {};
  std::size_t length = 0;
  while (length + 1 < sizeof text) {
    const ssize_t got = read(channel[0], text + length, sizeof text - 1 - length);
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }

  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) {
    std::puts("a second capture did not abort");
    return 1;
  }
  if (std::strstr(text, "already active") == nullptr) {
    std::printf("the text does not say what is wrong: %s\n", text);
    return 1;
  }
}
