// JSON is written and read back without exceptions, and a damaged text ends the program with the byte offset. Run by ctest as a
// program that must exit with 0: the damage is read in a child.
#if __has_include(<nlohmann/json.hpp>)

#include <memprof/profile/json.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

int main() {
  memprof::profile written;
  written.segments = {{"END_TRACE", 0, 1}};
  if (memprof::parse_json(memprof::to_json(written).dump()) != written) {
    std::puts("the profile that was read is not the one that was written");
    return 1;
  }

  int channel[2];
  if (pipe(channel) != 0) return 2;
  const pid_t child = fork();
  if (child == 0) {
    dup2(channel[1], STDERR_FILENO);
    (void)memprof::parse_json(R"({"format": memprof})", "run.json");
    _exit(0);
  }
  close(channel[1]);
  char text[512] = {};
  const ssize_t got = read(channel[0], text, sizeof text - 1);
  int status = 0;
  waitpid(child, &status, 0);
  if (got <= 0 || !WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) {
    std::puts("a damaged text did not abort");
    return 1;
  }
  if (std::strstr(text, "'run.json': invalid JSON at byte 11") == nullptr) {
    std::printf("the text does not name file and offset: %s\n", text);
    return 1;
  }
  return 0;
}

#else

#include <cstdio>

int main() { std::puts("skipped: nlohmann/json is not installed"); }

#endif
