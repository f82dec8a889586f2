// What `progress` writes to a terminal, and that it writes nothing to anything else.
#include "../progress.hpp"

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

namespace {

[[noreturn]] void fail(const char* what, const std::string& found) {
  std::string shown;
  for (const char each : found) shown += each == '\r' ? std::string{"<CR>"} : each == '\033' ? "<ESC>" : std::string{each};
  std::fprintf(stderr, "%s: \"%s\"\n", what, shown.c_str());
  std::exit(1);
}

/// Half of a file is read, then the work takes so long.
[[noreturn]] void work(std::chrono::milliseconds duration) {
  std::FILE* const file = std::tmpfile();
  const std::string bytes(8000, 'x');
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fflush(file);
  std::fseek(file, 4000, SEEK_SET);
  {
    const memprof_tool::progress shown{"reading run.memtrace", file};
    std::this_thread::sleep_for(duration);
  }
  std::fputs("the result", stderr);
  std::fflush(stderr);
  std::_Exit(0);
}

std::string read_all(int descriptor) {
  std::string all;
  std::array<char, 256> some{};
  for (::ssize_t got = 0; (got = ::read(descriptor, some.data(), some.size())) > 0;)
    all.append(some.data(), static_cast<std::size_t>(got));
  return all;
}

std::string on_a_terminal(std::chrono::milliseconds duration) {
  int terminal = -1;
  const ::pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) work(duration);
  if (child < 0) {
    std::puts("skipped: there is no terminal to test with");
    std::exit(0);
  }
  std::string shown = read_all(terminal);
  ::waitpid(child, nullptr, 0);
  return shown;
}

std::string through_a_pipe(std::chrono::milliseconds duration) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) std::exit(1);
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    work(duration);
  }
  ::close(ends[1]);
  std::string shown = read_all(ends[0]);
  ::waitpid(child, nullptr, 0);
  return shown;
}

}  // namespace

int main() {
  const std::string slow = on_a_terminal(std::chrono::milliseconds{1500});
  if (!slow.starts_with("\rreading run.memtrace  50 %  1 s\033[K")) fail("a slow reading does not say how far it is", slow);
  if (!slow.ends_with("\r\033[Kthe result")) fail("the line is not erased at the end", slow);
  if (slow.find('\n') != std::string::npos) fail("more than one line", slow);
  const std::string quick = on_a_terminal(std::chrono::milliseconds{100});
  if (quick != "the result") fail("a quick reading says something", quick);
  const std::string piped = through_a_pipe(std::chrono::milliseconds{1500});
  if (piped != "the result") fail("something goes to what is no terminal", piped);
}
